"""A Guest in a process of its own, which passes on what Hosts send each other; prints its port, and a line for each message it gets."""

import sys
from pathlib import Path

from backend.link.config import LinkOptions
from backend.link.peers import LinkSettings
from backend.link.wire import LinkWire


def main(agreement: str, keys: str) -> None:
    with LinkWire("bank", Path(agreement), Path(keys), LinkSettings(LinkOptions(bind="localhost:0"))) as wire:
        wire.open()
        say(wire.port)
        while delivery := wire.receive():
            say(delivery.sender, len(delivery.message.key))
            kept.append(delivery)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


kept = []  # what the Guest was sent itself stays in its memory

if __name__ == "__main__":
    main(*sys.argv[1:])
