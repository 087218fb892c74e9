"""What a report says of the model itself: which it is, of whose features, and what each of them does. Knows the report alone."""

from __future__ import annotations

from backend.i18n import brief
from backend.reports.blocks import Bar, Bars, Block, Facts
from backend.reports.sections.writer import NONE, Writer, minute, percent, whole

TOP = 3  # features named in a sentence


def identity(write: Writer) -> list[Block]:
    """Which model this is and how it decides."""
    i, s = write.content.identity, write.content.structure
    named = i.cipher in ("none", "ranks", "paillier")
    facts = write.facts(
        {
            "model": i.model,
            "federation": write.words.either(i.title, i.title_zh),
            "predicts": write.words.either(i.predicts, i.predicts_zh),
            "created": minute(i.created),
            "algorithm": write.words.named("algorithm.", f"name_{i.algorithm}").removeprefix("name_"),
            "grown_on": write(f"cipher_{i.cipher}", bits=i.key_bits) if named else i.cipher,
            "training_seconds": f"{i.training_seconds:,.1f} s",
            "score_bits": str(i.score_bits),
            "structure": write("structure_is", trees=s.trees, leaves=s.leaves, depth=s.depth, splits=s.splits),
            "aggregation": write(f"aggregation_{s.aggregation}", n=s.outputs),
            "left_out": ", ".join(i.left_out) or write("nothing"),
            "guest_hash": i.guest_sha256,
        }
    )
    hosts = ((write("host_hash", party=write.party(host)), digest) for host, digest in i.host_sha256.items())
    parameters = ((_parameter(write, name), value) for name, value in i.parameters.items())
    return [Facts((*facts.rows, *hosts)), write.heading("parameters"), Facts(tuple(parameters))]


def _parameter(write: Writer, name: str) -> str:
    """As the Train page names it; a few stand on no page."""
    on_page = write.words.named("parameter.", name)
    return write.words.named("document.parameter_", name) if on_page == name else on_page


def parties(write: Writer) -> list[Block]:
    """Who takes part, with how much."""
    table = write.table(
        write.content.parties,
        ("party", 5, lambda p: write.party(p.name)),
        ("role", 2, lambda p: write.role(p.role)),
        ("records", 2, lambda p: whole(p.records)),
        ("features_used", 3, lambda p: write("part_of", part=p.used, whole=p.features)),
        ("splits", 2, lambda p: whole(p.splits)),
        ("gain", 2, lambda p: percent(p.gain_share)),
        numeric=("records", "splits", "gain"),
    )
    return [table, write.note("parties_note")]


def features(write: Writer) -> list[Block]:
    """Used features: how much, and in which direction."""
    used = [f for f in write.content.features if f.splits]
    unused = [write.meaning(f) for f in write.content.features if not f.splits]
    names = [p.name for p in write.content.parties]
    longest = max((f.gain_share for f in used), default=1.0) or 1.0
    bars = (
        Bar(brief(write.meaning(f)), f.gain_share / longest, percent(f.gain_share), names.index(f.party)) for f in used
    )
    table = write.table(
        used,
        ("feature", 8, lambda f: write.feature(f.name)),
        ("party", 4, lambda f: write.party(f.party)),
        ("gain", 3, lambda f: percent(f.gain_share)),
        ("splits", 2, lambda f: whole(f.splits)),
        ("expected", 3, lambda f: write.direction(f.expected)),
        (
            "learned",
            4,
            lambda f: write.direction(f.learned) + (write("contradicts", n=f.against) if f.contradicts else ""),
        ),
        ("strength", 3, lambda f: f"{f.strength:+.2f}"),
        numeric=("gain", "splits", "strength"),
    )
    return [
        Bars(used_features(write), tuple(map(write.party, names)), tuple(bars)),
        table,
        write.text("unused", listed=write.listed(unused)) if unused else write.text("all_used"),
        write.note("features_note"),
    ]


def used_features(write: Writer) -> str:
    """How many features are used, and which most, as a sentence."""
    used = [f for f in write.content.features if f.splits]
    top = write.listed(f"{brief(write.meaning(f))} ({percent(f.gain_share)})" for f in used[:TOP])
    return write("answer_use", used=len(used), offered=len(write.content.features), top=top)


def dictionary(write: Writer) -> list[Block]:
    """Every disclosed feature, used or not."""
    table = write.table(
        write.content.features,
        (
            "feature",
            7,
            lambda f: write("named", meaning=write.meaning(f), name=f.name) + (f" [{f.unit}]" if f.unit else ""),
        ),
        ("party", 4, lambda f: write.party(f.party)),
        ("kind", 3, lambda f: write.words(f"features.{f.kind}")),
        ("sensitivity", 3, lambda f: f.sensitivity or NONE),
        ("expected", 3, lambda f: write.direction(f.expected)),
        ("codes", 6, lambda f: write.listed(f"{code} = {text}" for code, text in f.codes.items()) or NONE),
    )
    return [table]
