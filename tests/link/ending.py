"""A Guest in a process of its own that ends, once it is told to on standard input, without shutting its wire down; prints its port."""

import sys
from pathlib import Path

from backend.link.config import LinkOptions
from backend.link.peers import LinkSettings
from backend.link.wire import LinkWire

if __name__ == "__main__":
    wire = LinkWire("bank", Path(sys.argv[1]), Path(sys.argv[2]), LinkSettings(LinkOptions(bind="localhost:0")))
    sys.stdout.write(f"{wire.port}\n")
    sys.stdout.flush()
    sys.stdin.readline()
