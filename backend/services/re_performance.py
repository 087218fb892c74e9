"""Re-performance for a user: a Guest's half of a sample, and what an auditor finds with the halves of all parties."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from backend.errors import GlassleafError, ModelError
from backend.privacy.re_performance import GuestHalf, RePerformed, load_guest_half, re_perform
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.host_half import HostHalf, load_half, rows_of
from backend.protocols.scoring.opening import open_vector
from backend.protocols.scoring.packing import canaries
from backend.protocols.scoring.statement import load_statement
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_guest

__all__ = ["RePerformed", "guest_half", "re_perform_all", "re_perform_files"]


def guest_half(runtime: GuestRuntime, store: PartyStore, halves: Sequence[HostHalf]) -> GuestHalf:
    """Return the Guest's half of the samples that Hosts hand over: what it stated when it had the scores, and openings.

    Parameters
    ----------
    store : PartyStore
        The Guest's, which hands over its partial models.
    """
    models: dict[str, str] = {}
    statements = {}
    riding = {}
    opened = {}
    for half in halves:
        for row in half.rows:
            with suppress(ModelError):
                models[row.model_id] = models.get(row.model_id) or store.artefact(row.model_id)
            if row.request not in statements and runtime.journal is not None:
                text = runtime.journal.stated_scores(row.request)
                if text is not None:
                    statements[row.request] = load_statement(text)
            if not row.vector or row.model_id not in models:
                continue
            # What was not made under a key of this Guest stays closed; the auditor counts it as such.
            with suppress(GlassleafError):
                key = runtime.keys.of(row.public_key)
                trees = len(load_guest(models[row.model_id]).trees)
                numbers = canaries(key.seed, row.model_id, (row.person,), trees)[:, 0]
                riding[row.request, row.place] = tuple(numbers.tolist())
                opened[half.host, row.number] = open_vector(key, row.vector)
    return GuestHalf(runtime.guest.name, models, statements, riding, opened)


def re_perform_all(runtime: GuestRuntime, store: PartyStore) -> RePerformed:
    """Recompute the scores in the samples of all Hosts (simulation)."""
    own = {host: runtime.operator.half(host, ()) for host in runtime.hosts}
    halves = [
        runtime.operator.half(host, [row for other in own if other != host for row in rows_of(own[other])])
        for host in runtime.hosts
    ]
    return re_perform(guest_half(runtime, store, halves), halves, runtime.keys.floor)


def re_perform_files(half: str, samples: Sequence[str]) -> RePerformed:
    """Recompute the scores of which the Guest's half and the Hosts' samples are at hand, as text; needs no federation.

    Raises
    ------
    SecurityError
        If one of them cannot be read.
    """
    return re_perform(load_guest_half(half), [load_half(text) for text in samples])
