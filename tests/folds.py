"""Batches of decision vectors along a chain of Hosts, without parties: keys, plans, masks, and what a Host makes of them."""

from functools import cache

import numpy as np

from backend.crypto.interface import FoldPlan
from backend.crypto.rlwe.parameters import PARAMETERS
from backend.crypto.rlwe.scheme import RlweSecretKey

ONE_HOST, TWO_HOSTS, THREE_HOSTS, LARGE, LARGEST = PARAMETERS
N = 8192


@cache
def secret_key(name):
    return RlweSecretKey.generate(PARAMETERS[name])


def chain(conditions):
    """Plans of Hosts where entry e needs condition ``conditions[e, i]`` of Host i, 0 being none."""
    hosts, incoming, plans = conditions.shape[1], [tuple(map(int, c)) for c in conditions], []
    origin = tuple(range(len(incoming)))
    for place in range(hosts):
        rest = [entry[1:] for entry in incoming]
        outgoing = sorted(set(rest))
        target = tuple(outgoing.index(r) for r in rest)
        plans.append(FoldPlan(target, tuple(e[0] != 0 for e in incoming), len(outgoing), origin, place, hosts))
        incoming, origin = outgoing, tuple(target[e] for e in origin)
    return plans


def masks(plans, n, draw):
    return [(draw.random((n, len(plan.is_own))) < 0.6) | ~np.array(plan.is_own, dtype=bool) for plan in plans]


def send(guest, values):
    return [guest.encrypt(values[:, p.start : p.stop]) for p in guest.pieces(*values.shape)]


def through(host, pieces, keep, plan):
    fold = host.start_fold(keep, plan)
    for piece in pieces:
        fold.add(piece)
    return list(fold.finish())


def one_host(m):
    return chain(np.ones((m, 1), dtype=int) * np.arange(1, m + 1)[:, None])[0]
