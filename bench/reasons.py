"""What reasons cost beside the score alone and beside plain `phe`, and whether the names are those of plain SHAP values.

One thread and processor seconds; the parties take turns, so that each one's are its own. An operator's view: all halves and records are in
one hand here. The peer does what SECURITY.md sketches with `phe`'s floats, leaf by leaf; its operations are counted and one of each is
timed, nothing is charged for refreshing or for finding the largest, so its figure is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import phe
from numpy.typing import NDArray

from backend.crypto.cipher import KeySide, WeightedPublicSide
from backend.crypto.paillier import PaillierKeySide, PaillierPublicSide, SecretKey
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.data.table import PartyTable, read_table
from backend.protocols.inference.ranking.guest import RankingGuest
from backend.protocols.inference.ranking.host import RankingHost
from backend.protocols.inference.reasons.guest_side import CompiledTerms, as_row
from backend.protocols.inference.reasons.host_side import CompiledFactors, PersonTerms
from backend.protocols.inference.reasons.terms import ReasonShape, unpacked
from backend.service import Glassleaf
from backend.store.party_store import PartyStore
from backend.trees.artefact import load_host
from backend.trees.ensemble import NodeKey, Rule
from backend.trees.shap import paths, shap_values
from bench.alignment import Meter
from bench.cases import Case, credit_card_case
from bench.setting import ABSENT, add_demo, fresh_home, run, say

KEYS = (2048, 3072)
PEOPLE = 3  # of whom each is timed; the first pays for tables and is left out
NAMES = 4
FAITHFUL = 200  # samples whose names are compared
DITHER = (2.0**-6, 2.0**-4)  # widths on the margin


@dataclass(frozen=True)
class Parties:
    """A case with what reasons need of it, worked out once."""

    case: Case
    terms: CompiledTerms
    factors: list[CompiledFactors]

    @classmethod
    def of(cls, case: Case) -> Parties:
        """Compile both sides."""
        terms = CompiledTerms(case.model)
        steps = case.guest.folding.steps
        factors = [CompiledFactors(case.halves[s.host], s, terms.shares_of(s.host)) for s in steps]
        return cls(case, terms, factors)

    def record(self, party: str, sample: str) -> tuple[dict[str, NDArray[Any]], bool]:
        """One person's columns at a party, ``(1,)`` each, and whether it holds a record."""
        table = self.case.tables[party]
        at = table.row_of.get(sample, -1)
        return dict(table.take(np.array([max(at, 0)])).columns), at >= 0


def measure(keys: Sequence[int] = KEYS, people: int = PEOPLE, faithful: int = FAITHFUL) -> dict[str, Any]:
    """Both models, the second where its data is there."""
    found = [case for case in (demo_case(), credit_card_case()) if case is not None]
    rows, faith = [], []
    for case in found:
        parties = Parties.of(case)
        for bits in keys:
            say(f"{case.title}, {bits} bits")
            rows.append(cost_of(parties, bits, people))
        faith.append(faithfulness(parties, faithful))
    return {"names": NAMES, "rows": rows, "faithfulness": faith} | ({} if len(found) > 1 else {"skipped": ABSENT})


def demo_case() -> Case:
    """The built-in demo with its first model."""
    with fresh_home() as home:
        door = Glassleaf(home, pools=False)
        name = add_demo(door)
        record = door.models(name)[0]
        model, federation = door.guest_model(record.id), door.federation(name)
        halves = {h: load_host(PartyStore(home / "parties" / name / h).artefact(record.id)) for h in model.hosts}
        tables = {p.name: read_table(federation, p.name) for p in federation.parties}
        door.close()
    return Case(f"demo, {record.n_trees} trees of depth {record.depth}", model, halves, tables)


def asked(
    parties: Parties, shape: ReasonShape, key: KeySide, side: WeightedPublicSide, sample: str, meter: Meter
) -> tuple[list[Any], PersonTerms]:
    """One person's encrypted contributions at the last Host."""
    columns, _ = parties.record(parties.case.model.guest, sample)
    terms = meter.of("guest", parties.terms.encode, columns, shape)
    numbers = as_row([*terms.base, *terms.packs, *terms.constant])
    sent = meter.sent("guest", meter.of("guest", key.encrypt, numbers))
    for place, factors in enumerate(parties.factors):
        columns, held = parties.record(factors.step.host, sample)
        kept = meter.of("host", factors.decide, columns, held)
        person = PersonTerms(side, factors, shape, place + 1)
        if place + 1 == len(parties.factors):
            return meter.of("host", person.last, sent, kept), person
        sent = meter.sent("host", meter.of("host", person.passed_on, sent, kept))
    raise AssertionError("a model without Hosts has no last one")


def explain(parties: Parties, key: PaillierKeySide, public: PaillierPublicSide, sample: str) -> tuple[Meter, Meter]:
    """Reasons of one person; what the contributions cost, and what the ranking does."""
    shape, weighing, ranking = parties.terms.shape(NAMES, key.bits), Meter(), Meter()
    values_enc, person = asked(parties, shape, key, public, sample, weighing)
    guest = RankingGuest(key, shape.ranking)
    host = RankingHost(public, person.spread(values_enc), shape.ranking)
    shares = ranking.sent("host", ranking.of("host", host.share, ranking.sent("guest", guest.open())))
    choices = ranking.sent("guest", ranking.of("guest", guest.choose, shares))
    ranking.of("guest", guest.names, ranking.sent("host", ranking.of("host", host.garble, choices)))
    return weighing, ranking


def scored(case: Case, key: PaillierKeySide, public: PaillierPublicSide, sample: str) -> Meter:
    """The score alone of one person."""
    meter = Meter()
    own = case.tables[case.model.guest]
    one = own.take(np.array([own.row_of[sample]]))
    _, entries = meter.of("guest", case.guest.encode, one.columns, 1)
    sent = meter.sent("guest", meter.of("guest", key.encrypt, entries))
    for host, name, plan in zip(case.hosts, case.chain, case.plans, strict=True):
        table = case.tables[name]
        at = table.row_of.get(sample, -1)
        columns = table.take(np.array([max(at, 0)])).columns
        fold = public.start_fold(meter.of("host", host.decide, columns, np.array([at >= 0])), plan)
        meter.of("host", fold.add, sent)
        sent = meter.sent("host", meter.of("host", lambda fold=fold: next(iter(fold.finish()))))
    meter.of("guest", key.decrypt, sent, 1)
    return meter


def cost_of(parties: Parties, bits: int, people: int) -> dict[str, Any]:
    """One model under one key size: medians of processor seconds, bytes, ratios."""
    case = parties.case
    secret = SecretKey.generate(bits, floor=min(bits, 2048))
    key, public = PaillierKeySide(secret), PaillierPublicSide(secret.public)
    key.obfuscators.take(1)
    samples = case.tables[case.model.guest].ids[: people + 1]
    runs = [(explain(parties, key, public, s), scored(case, key, public, s)) for s in samples][1:]
    shape = parties.terms.shape(NAMES, bits)
    row: dict[str, Any] = {**case.facts(), "key_bits": bits, "features": sum(shape.features)}
    row["ciphertexts"] = parties.terms.ciphertexts(shape)
    for name, pick in (("terms", lambda r: r[0][0]), ("ranking", lambda r: r[0][1]), ("score", lambda r: r[1])):
        for party in ("guest", "host"):
            row[f"{name}_{party}_seconds"] = median(pick(r).seconds[party] for r in runs)
        row[f"{name}_bytes"] = sum(pick(runs[0]).bytes.values())
        row[f"{name}_messages"] = pick(runs[0]).messages
    row["seconds"] = sum(row[f"{n}_{p}_seconds"] for n in ("terms", "ranking") for p in ("guest", "host"))
    row["score_seconds"] = row["score_guest_seconds"] + row["score_host_seconds"]
    row["to_score"] = row["seconds"] / row["score_seconds"]
    row |= _peer(parties, bits)
    row["ratio"] = row["peer_seconds"] / (row["terms_guest_seconds"] + row["terms_host_seconds"])
    return row


def _peer(parties: Parties, bits: int) -> dict[str, Any]:
    """Plain `phe`: leaf by leaf, an encryption for every size of subsets, a product for every Host feature and size."""
    model = parties.case.model
    encryptions = products = 0
    for path in paths(model.trees):
        names = {(model.trees[t].splits[i].owner == model.guest, model.trees[t].splits[i].feature) for t, i, _ in path}
        own = sum(of_guest for of_guest, _ in names)
        theirs = len(names) - own
        if theirs:
            encryptions += own + 1 + own * own
            products += theirs * (own + 1) + own * own
    public, _ = phe.generate_paillier_keypair(n_length=bits)
    began = process_time()
    numbers = [public.encrypt(0.1 * i) for i in range(1, 6)]
    encrypted = (process_time() - began) / len(numbers)
    began = process_time()
    _ = sum((number * (0.3 + 0.01 * i) for i, number in enumerate(numbers[1:])), numbers[0])
    multiplied = (process_time() - began) / (len(numbers) - 1)
    return {
        "peer_encryptions": encryptions,
        "peer_products": products,
        "peer_seconds": encryptions * encrypted + products * multiplied,
    }


def faithfulness(parties: Parties, people: int) -> dict[str, Any]:
    """The four names by the protocol's own integers against plain SHAP values; and under dither, which nobody adds to them."""
    case = parties.case
    own = case.tables[case.model.guest]
    samples = [own.ids[i] for i in np.random.default_rng(7).choice(len(own.ids), people, replace=False)]
    shape = parties.terms.shape(NAMES, 0)
    exact = _plain(parties, samples)
    found = np.empty_like(exact)
    for i, sample in enumerate(samples):
        values, _ = asked(parties, shape, PlainKeySide(), PlainPublicSide(), sample, Meter())
        found[i] = np.array(unpacked(values, shape), dtype=np.float64) / float(1 << shape.scale)
    names, draw = [_top(row) for row in exact], np.random.default_rng(8)
    kept = {
        str(width): float(
            np.mean(
                [
                    _top(row + draw.uniform(-width / 2, width / 2, len(row))) == n
                    for row, n in zip(exact, names, strict=True)
                ]
            )
        )
        for width in DITHER
    }
    return {
        "model": case.title,
        "people": people,
        "same_names": float(np.mean([_top(row) == n for row, n in zip(found, names, strict=True)])),
        "largest_error": float(np.abs(found - exact).max()),
        "error_bound": parties.terms.error_bound,
        "same_under_dither_of_contributions": kept,
    }


def _top(values: NDArray[np.float64]) -> frozenset[int]:
    best = np.argsort(-values)[:NAMES]
    return frozenset(int(i) for i in best if values[i] > 0)


def _plain(parties: Parties, samples: Sequence[str]) -> NDArray[np.float64]:
    """``(n, features)`` in the protocol's order, all columns in one hand."""
    case = parties.case
    rules: dict[NodeKey, Rule] = dict(case.model.rules)
    columns: dict[str, NDArray[Any]] = {}
    for party, table in case.tables.items():
        if party in case.halves:
            rules |= case.halves[party].rules
        columns |= _joined(table, samples)
    names, values = shap_values(case.model, rules, columns, len(samples))
    return values[:, [names.index(feature) for _, feature in parties.terms.items]]


def _joined(table: PartyTable, samples: Sequence[str]) -> dict[str, NDArray[Any]]:
    """A party's columns for some people; missing where it holds no record."""
    rows = np.array([table.row_of.get(sample, -1) for sample in samples])
    out = {}
    for name, column in table.take(np.maximum(rows, 0)).columns.items():
        out[name] = np.where(rows < 0, np.array(None if column.dtype == object else np.nan, dtype=column.dtype), column)
    return out


def describe(found: dict[str, Any]) -> str:
    """The result as text."""
    lines = [
        f"{r['model']}, {r['key_bits']} bits: {r['seconds']:.2f} s ({r['to_score']:.1f} times a score, 1/{r['ratio']:.0f} of phe), "
        f"{r['ciphertexts']:,} ciphertexts, {r['terms_bytes'] + r['ranking_bytes']:,} bytes"
        for r in found["rows"]
    ]
    lines += [
        f"{f['model']}: same four names for {f['same_names']:.1%} of {f['people']}; under dither of contributions "
        + ", ".join(f"{share:.1%} at {width}" for width, share in f["same_under_dither_of_contributions"].items())
        for f in found["faithfulness"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    run(__doc__, measure, describe)
