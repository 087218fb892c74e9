"""Serves an application on an address, which is this machine's own unless programs need tokens."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import uvicorn

from backend.errors import ParameterError
from backend.server.app import Settings, create_app
from backend.server.tokens import Tokens
from backend.services import Glassleaf

CLOSING = 10  # seconds that requests get to end


def serve(glassleaf: Glassleaf, settings: Settings, address: str, port: int) -> None:
    """Serve until stopped.

    Raises
    ------
    ParameterError
        There are no tokens, and the address is not this machine's own.
    """
    settings = replace(settings, open_to_all=not Tokens(glassleaf.home).all())
    if settings.open_to_all and not is_local(address):
        raise ParameterError(
            f"{address} is reached from other machines, and there is no token: make one with `glassleaf tokens add NAME`, or serve on "
            "127.0.0.1."
        )
    app = create_app(glassleaf, settings)
    uvicorn.run(app, host=address, port=port, access_log=False, server_header=False, timeout_graceful_shutdown=CLOSING)


def is_local(address: str) -> bool:
    """Whether only this machine's own programs reach an address; a name other than ``localhost`` may be anybody's."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"
