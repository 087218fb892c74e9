"""The auditor's round for a user: every Host's sample of requests is opened by the Guest and checked (simulation)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from backend.privacy.request_audit import Replayed, replay
from backend.protocols.simulation.simulator import FederationRuntime
from backend.store.party_store import PartyStore


@dataclass(frozen=True)
class HostReplay:
    """What was found in one Host's sample about one model."""

    host: str
    model_id: str
    found: Replayed


def replay_requests(runtime: FederationRuntime, store: PartyStore) -> tuple[HostReplay, ...]:
    """Look at every row that the Hosts have kept; those that are well are forgotten.

    Parameters
    ----------
    store : PartyStore
        The Guest's, which hands over its halves of models.
    """
    out = []
    for host in runtime.hosts:
        log, registered = runtime.logged(host)
        by_model = defaultdict(list)
        for row in log.rows() if log is not None else ():
            by_model[row.model_id].append(row)
        for model_id, rows in by_model.items():
            found = replay(
                rows, runtime.open_request, store.artefact(model_id), registered(model_id), runtime.key_floor
            )
            bad = {number for number, _ in found.problems}
            if log is not None:
                log.forget([row.number for row in rows if row.number not in bad])
            out.append(HostReplay(host, model_id, found))
    return tuple(out)
