"""Which kinds of message there are on a link, and the hash by which two parties see that they mean the same by them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import get_type_hints

from backend.protocols.transport.message import MESSAGES

PROTOCOLS = (
    "alignment",
    "approvals",
    "audit_head",
    "explanations",
    "group_sums",
    "imports",
    "purposes",
    "scoring",
    "training",
)
"""Folders of :mod:`backend.protocols` whose messages an agreement may allow."""
ALWAYS = "transport"  # how a conversation opens and ends, refusals, acknowledgements


@cache
def kinds_of(protocol: str) -> tuple[str, ...]:
    """The kinds of message of one protocol, sorted."""
    module = f"backend.protocols.{protocol}.messages"
    import_module(module)
    return tuple(sorted(name for name, kind in MESSAGES.items() if kind.__module__ == module))


@cache
def all_kinds() -> frozenset[str]:
    """Every kind that an agreement may allow."""
    return frozenset(kind for protocol in PROTOCOLS for kind in kinds_of(protocol))


@cache
def schemas_hash() -> str:
    """SHA-256 over names, fields, types and longest lengths of all kinds: equal where two parties read messages alike."""
    described = {}
    for name in sorted(all_kinds() | set(kinds_of(ALWAYS))):
        described[name] = [MESSAGES[name].MAX_BYTES, [[f.name, _type(name, f.name)] for f in fields(MESSAGES[name])]]
    return hashlib.sha256(json.dumps(described, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


def _type(kind: str, field: str) -> str:
    return str(get_type_hints(MESSAGES[kind])[field])
