"""What each party sees of a scoring at this moment, from the bytes of this very run: a strip a party, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import palette, person
from app.texts import Texts, markdown, percent, signed, size
from app.view_models import NUMBERS, View, crossings

if TYPE_CHECKING:
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.results import ScoreBatch
    from backend.services.demonstration import HostView

# a number that no party here can read; one that a Host keeps; one that it rules out
CLOSED = "■"
OPEN = "□"
OUT = "·"
MAX_SQUARES = 60  # squares in a strip
COLUMNS_NAMED = 3  # columns in a strip; the hover names all
ABREAST = 4  # strips
BYTES = 4  # between two spaces

Look = Callable[[str], "HostView"]


@dataclass(frozen=True)
class ScoringMoment:
    """A scoring at one moment.

    Attributes
    ----------
    entries : sequence of TranscriptEntry
        The messages so far.
    people : sequence of str
        Ids asked about.
    batch : ScoreBatch or None
        The answer, once it is decrypted.
    look : callable or None
        Host → its own view of the one person; synthetic people only.
    turn : str
        Whose turn it is; empty if no party works.
    """

    entries: Sequence[TranscriptEntry]
    people: Sequence[str] = ()
    batch: ScoreBatch | None = None
    look: Look | None = field(default=None, repr=False)
    turn: str = ""

    @property
    def carried(self) -> bool:
        """Whether a message has carried encrypted numbers."""
        return any(entry.kind in NUMBERS for entry in self.entries)


def draw(t: Texts, view: View, scene: ScoringMoment, key: str) -> None:
    """Draw a strip for each party, the Guest's first, with the names of its columns."""
    parties = (view.model.guest, *view.model.hosts)
    for first in range(0, len(parties), ABREAST):
        row = parties[first : first + ABREAST]
        for column, party in zip(st.columns(min(len(parties), ABREAST), gap="small"), row, strict=False):
            with column.container(border=True, key=f"{key}_{party}", gap="xsmall"):
                _strip(t, view, scene, party, key)


def _strip(t: Texts, view: View, scene: ScoringMoment, party: str, key: str) -> None:
    if party == scene.turn:
        now = ":material/arrow_right_alt: "
    else:
        now = ""
    st.markdown(f"{now}**{palette.name(t, view.federation, party)}**")
    _columns(t, view, party)
    if party == view.model.guest:
        _guest(t, view, scene)
    else:
        # first, so that what it opens is in view
        look = scene.look if scene.turn in ("", party) else None
        if look is not None and st.toggle(t("transcript.look"), key=f"{key}_look_{party}"):
            _looked(t, look(party))
        _host(t, view, scene, party)


def _columns(t: Texts, view: View, party: str) -> None:
    """Draw the names of its columns; their values are shown by the party itself alone."""
    features = [feature for owner, feature in view.model.dictionary if owner == party]
    names = [markdown(t.brief(feature)) for feature in features[:COLUMNS_NAMED]]
    if len(features) > COLUMNS_NAMED:
        listed = t("words.comma").join(names)
    else:
        listed = t.listed(names)
    if len(features) > COLUMNS_NAMED:
        more = t("transcript.more", n=len(features) - COLUMNS_NAMED)
    else:
        more = ""
    every = "  \n".join(markdown(t.meaning(feature)) for feature in features)
    st.caption(t("transcript.columns", names=listed, more=more), help=every if more else None)


def _guest(t: Texts, view: View, scene: ScoringMoment) -> None:
    sent, back = crossings(scene.entries, view.model.guest)
    ways = (("sent", sent), ("back", back))
    texts = []
    for way, entries in ways:
        if entries:
            texts.append(_bytes(t, f"transcript.{way}", entries, scene.people))
    if scene.batch is not None:
        texts.append(f":material/lock_open: {_sum(t, view, scene.batch)}")
    if texts:
        st.markdown("\n\n".join(texts))  # one element: many small ones would make the page slow


def _sum(t: Texts, view: View, batch: ScoreBatch) -> str:
    """Return what the Guest reads in the end: one number a person."""
    good = [score for score in batch.scores if score.scored]
    if len(good) != 1:
        return t("transcript.sums", n=len(good))
    score = good[0]
    words = t("transcript.sum", units=f"{score.units:,}".replace("-", "−"), score=signed(score.margin))
    if view.task != "binary":
        return words
    return words + t("transcript.chance", chance=percent(score.probability))


def _host(t: Texts, view: View, scene: ScoringMoment, party: str) -> None:
    sent, came = crossings(scene.entries, party)
    if not came:
        st.caption(t("transcript.nothing" if scene.batch is not None else "transcript.nothing_yet"))
        return
    if len(scene.people) == 1:
        people = markdown(scene.people[0])
    else:
        people = f"{len(scene.people):,}"
    texts = [t("transcript.reads_id" if len(scene.people) == 1 else "transcript.reads_ids", id=people)]
    texts += [_bytes(t, "transcript.came", came, scene.people), squares(came[0].entries)]
    if sent:
        last = sent[0].receiver == view.model.guest
        texts.append(_bytes(t, "transcript.answered" if last else "transcript.passed_on", sent, scene.people))
        texts.append(squares(1 if last else sent[0].entries))
    st.markdown("\n\n".join(filter(None, texts)))
    st.caption(f":material/lock: {t('transcript.unread')}")


def squares(entries: int) -> str:
    """Encrypted numbers, none of which can be read."""
    if entries > MAX_SQUARES:
        more = f" +{entries - MAX_SQUARES:,}"
    else:
        more = ""
    if entries:
        return f":gray[{CLOSED * min(entries, MAX_SQUARES)}]{more}"
    return ""


def _bytes(t: Texts, key: str, entries: Sequence[TranscriptEntry], people: Sequence[str]) -> str:
    """Return what was sent or came, with the first bytes of a ciphertext as they went over the wire."""
    words = {
        "numbers": f"{entries[0].entries:,}",
        "each": t("transcript.each") if len(people) > 1 else "",
        "size": size(sum(entry.unreadable for entry in entries)),
    }
    sample = entries[0].sample
    first_bytes = " ".join(sample[at : at + BYTES].hex() for at in range(0, len(sample), BYTES))
    return (
        t(key, **words) + "  \n" + (f"`{first_bytes} …`" if first_bytes else f":gray[{t('transcript.in_the_clear')}]")
    )


def _looked(t: Texts, host_view: HostView) -> None:
    """Draw a Host's own view: in the synthetic demo alone."""
    st.caption(f":material/science: {t('transcript.look_note')}")
    if not host_view.values:
        st.markdown(t("transcript.no_record"))
        return
    facts = {}
    for feature, value in host_view.values:
        facts[markdown(t.meaning(feature))] = f"**{markdown(person.shown(t, feature, value))}**"
    st.table(facts, border="horizontal", alt=t("transcript.look"))
    marks = "".join({True: OPEN, False: OUT, None: CLOSED}[entry] for entry in host_view.entries[:MAX_SQUARES])
    st.markdown(marks + (f" +{len(host_view.entries) - MAX_SQUARES:,}" if len(host_view.entries) > MAX_SQUARES else ""))
    n_unknown = len(host_view.entries) - host_view.kept - host_view.ruled_out
    st.caption(
        t("transcript.look_squares", kept=f"{host_view.kept:,}", out=f"{host_view.ruled_out:,}", other=f"{n_unknown:,}")
    )
