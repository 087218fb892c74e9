"""The auditor's round for a user: every Host's sample of requests is opened by the Guest and checked (simulation)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import msgpack

from backend.privacy.request_audit import LoggedTerms, Replayed, replay, replay_terms
from backend.protocols.guest_runtime import GuestRuntime
from backend.store.accountant import REASONS, SCORE
from backend.store.party_store import PartyStore
from backend.store.schema import LoggedRow
from backend.trees.folding import fold_structure
from backend.trees.serialization import load_guest


@dataclass(frozen=True)
class HostReplay:
    """The replay of one Host's sample about one model."""

    host: str
    model_id: str
    found: Replayed


def replay_requests(runtime: GuestRuntime, store: PartyStore) -> tuple[HostReplay, ...]:
    """Look at every row that the Hosts have kept; those that are well are forgotten.

    Parameters
    ----------
    store : PartyStore
        The Guest's, which hands over its partial models.
    """
    out = []
    for host in runtime.hosts:
        log, registered = runtime.operator.logged(host)
        by_model = defaultdict(list)
        # Questions about many people at once are of no model; `re-perform` looks at them.
        for row in log.rows((SCORE, REASONS)) if log is not None else ():
            by_model[row.model_id].append(row)
        for model_id, logged_rows in by_model.items():
            about = store.artefact(model_id), registered(model_id), runtime.keys.floor
            # What a Host made of the request before it came here, `re-perform` recomputes.
            first = host == first_host(about[0])
            rows = [row for row in logged_rows if first and row.public_key]
            if not rows:
                continue
            scores = replay([row for row in rows if row.kind == SCORE], runtime.open_request, *about)
            terms = [_terms(host, row) for row in rows if row.kind == REASONS]
            terms_replay = replay_terms(terms, lambda row: runtime.open_terms(row.public_key, row.terms), *about)
            replayed = Replayed(scores.rows + terms_replay.rows, scores.problems + terms_replay.problems)
            bad = {number for number, _ in replayed.problems}
            if log is not None:
                log.forget([row.number for row in rows if row.number not in bad])
            out.append(HostReplay(host, model_id, replayed))
    return tuple(out)


def first_host(partial_model: str) -> str:
    """Return the Host that gets a Guest's requests first hand, by the Guest's partial model; empty if no Host has a split."""
    model = load_guest(partial_model)
    steps = fold_structure(model.skeletons, model.guest, model.hosts).steps
    return steps[0].host if steps else ""


def _terms(host: str, row: LoggedRow) -> LoggedTerms:
    """Terms of reasons as a Host keeps them: with what came with them."""
    terms, shares, features, value_bits, groups = msgpack.unpackb(row.vector)
    sizes = tuple(shares), tuple(features), value_bits, tuple(groups)
    return LoggedTerms(row.number, row.public_key, terms, host, *sizes)
