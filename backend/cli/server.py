"""`serve`: scores and reasons over HTTP, for programs that wait."""

from __future__ import annotations

from typing import Annotated

import typer

from backend.cli.output import Bits, Log, check_extra, check_port, in_json, open_glassleaf, say
from backend.i18n import Text
from backend.services.scoring import KEY_BITS, cipher_named

NEEDED = ("fastapi", "httptools", "prometheus_client", "uvicorn")  # what the extra [server] adds
app = typer.Typer(add_completion=False)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8700,
    address: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's own need tokens.")
    ] = "127.0.0.1",
    cipher: Annotated[str, typer.Option(help="As for `score`. Default: rlwe, where it holds a model's scores.")] = "",
    bits: Bits = KEY_BITS,
    ops_port: Annotated[
        int,
        typer.Option(help="Port of 127.0.0.1 for /live, /ready and /metrics (Prometheus); 0 = none.", min=0, max=65535),
    ] = 0,
    log: Log = "text",
) -> None:
    """Score people and name reasons over HTTP, for programs that wait (docs/online.md)."""
    json_logs = in_json(log)
    check_extra(Text("The server needs", "服务器需要"), "server", NEEDED)
    from backend.server.app import Settings
    from backend.server.run import serve as serve_on

    check_port(address, port)
    with open_glassleaf() as glassleaf:
        say(f"Programs may ask on http://{address}:{port} (Ctrl-C ends it).")
        settings = Settings(cipher_named(cipher) if cipher else None, bits)
        serve_on(glassleaf, settings, address, port, ops_port, json_logs=json_logs)
