"""A Guest in a process of its own that may open few files; prints its port and, for each line on standard input, what it can still do."""

import json
import resource
import sys
from pathlib import Path

from backend.link.config import LinkOptions
from backend.link.peers import LinkSettings
from backend.link.wire import LinkWire
from backend.ops.open_files import nearly_all_open

FILES = 160


def standing(wire):
    """Whether the process can open a file and says that it is ready, and whether its Host is there."""
    try:
        Path(__file__).open().close()
    except OSError:
        return {"opens": False}
    return {"opens": True, "nearly_all_open": nearly_all_open(), "host": wire.links()["shop"].up}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    made = LinkWire(
        "bank", Path(sys.argv[1]), Path(sys.argv[2]), LinkSettings(LinkOptions(bind="localhost:0"), handshake=60.0)
    )
    sys.stdout.write(f"{made.port}\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        sys.stdout.write(json.dumps(standing(made)) + "\n")
        sys.stdout.flush()
