"""Rule packs: each one body of law as versioned data, read from YAML and validated before use; the built-in and the custom ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.compliance.concepts import Concept, Key, Lists, Pattern, Phrasing, Vocabulary
from backend.compliance.phrases import Phrase
from backend.data.bounded_text import parse_yaml, read_bounded, yaml_loader
from backend.data.csv_file import shown
from backend.data.dictionary import Bilingual, limited
from backend.data.federation import Place, Product
from backend.data.strict_model import FieldError
from backend.data.validation import field_problems, place
from backend.errors import RulePackError
from backend.i18n import NO_TEXT, Text
from backend.remark import Remark

RULES = Path(str(files("backend.compliance") / "rules"))
WORDS = RULES / "words.yaml"
MAX_BYTES = 1_000_000  # a pack is written by hand; the largest built-in file has 30 KB
NOT_SENSITIVE = "none"  # the tag by which an owner states that a feature is not sensitive


def _in_both(text: Text) -> Text:
    """Refuse a text that lacks Chinese."""
    if not text.zh:
        raise FieldError("expected_both_languages")
    return text


Status = Literal["prohibited", "conditional", "indicator", "informational"]
Scope = Literal["feature", "model"]
Force = Literal["in_force", "not_yet", "ended"]
Addressee = Literal["bank", "host", "vendor"]  # who lends and scores; who supplies features; who supplies the software
# whether a rule was compared with its text on the day `as_of`; none = no statute names it
Checked = Literal["source", "not", "none"]
MAX_QUOTE = 400  # letters: enough for the words that matter
Check = Literal["", "elderly"]  # further measurement that a rule for features asks for
Titled = Annotated[Bilingual, limited(2000, 1, paragraphs=True)]
InBoth = Annotated[Titled, AfterValidator(_in_both)]
_Model = TypeVar("_Model", bound=BaseModel)


class LegalRule(Concept):
    """One rule of a pack.

    A rule for features refers to a concept or has phrases. A rule for models has neither: it is a duty that always applies.

    Attributes
    ----------
    id : str
        Unique over all packs, as `Party.name` is written.
    scope : {"feature", "model"}
    title, explanation, remedy : Text
        The remedy is what to do.
    citation : Text
        The provision.
    status : str
        Legal status of using such a feature or model.
    effective_from, effective_to : date
        In force from and through these days; without an end where `effective_to` is absent.
    as_of : date or None
        When the rule was last checked against its source; None = the pack's.
    concept, concepts : str or None, tuple of str
        Keys in `words.yaml`; `concepts` where a rule names several.
    whom : tuple of {"bank", "host", "vendor"}
        Of whom it demands something.
    checked : {"source", "not", "none"} or None
        Whether it was compared with its official text on the day `as_of`, if any statute names it; None = as the pack.
    quote : str
    quote_from : Text
        The official wording in the language of the law, and where it was read on the day `as_of`; without one the rule is a paraphrase.
    evidence : Text
        Models only: what Glassleaf offers towards the duty, and what it does not.
    check : {"", "elderly"}
        ``elderly``: the rule is kept where the age of elderly applicants has no negative factor
        (:mod:`backend.fairness.age_discrimination`).
    """

    id: Key
    scope: Scope = "feature"
    title: InBoth
    citation: Titled
    status: Status
    effective_from: dt.date
    effective_to: dt.date | None = None
    as_of: dt.date | None = None
    concept: str | None = None
    concepts: tuple[str, ...] = ()
    whom: tuple[Addressee, ...] = ("bank",)
    checked: Checked | None = None
    quote: str = ""
    quote_from: Bilingual = NO_TEXT
    explanation: InBoth
    remedy: InBoth
    evidence: Bilingual = NO_TEXT
    check: Check = ""

    def force(self, day: dt.date) -> Force:
        """Return if the rule is in force on that day, not yet, or no longer."""
        if day < self.effective_from:
            return "not_yet"
        if self.effective_to is not None and day > self.effective_to:
            return "ended"
        return "in_force"

    @property
    def tags(self) -> tuple[str, ...]:
        """The dictionary tags that decide this rule."""
        return (*self.sensitivity, *(tag for key in self.looks_for for tag in words().concepts[key].sensitivity))

    @property
    def looks_for(self) -> tuple[str, ...]:
        """The concepts that it names."""
        if self.concept is None:
            return self.concepts
        return (self.concept, *self.concepts)


class PackHead(BaseModel):
    """What identifies a pack.

    Attributes
    ----------
    source : Text
        Where the text of the law is found.
    as_of : date
        When it was last checked against the law.
    checked : {"source", "not", "none"}
        Whether the pack was compared with the official text on that day.
    applies_to : Text
        Its scope: whom and what it covers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Key
    version: Phrasing
    title: InBoth
    jurisdiction: Phrasing
    source: Titled
    as_of: dt.date
    checked: Checked = "source"
    applies_to: Bilingual = NO_TEXT


class RulePack(PackHead):
    """The rules of one body of law.

    Attributes
    ----------
    places : tuple of str
        Where it is law; empty = everywhere.
    products : tuple of str
        What it is law for; empty = everything.
    lists : dict of str to tuple of str
        Word lists that the pack's phrases refer to as ``{list}``, in addition to those of `words.yaml`.
    """

    places: tuple[Place, ...] = ()
    products: tuple[Product, ...] = ()
    lists: Lists = {}
    rules: Annotated[tuple[LegalRule, ...], Field(min_length=1)]

    def is_law(self, places: Sequence[Place], product: Product | Literal[""]) -> bool:
        """Return whether it applies to people who live in one of these places, and to this product; empty = any.

        The law of a country and that of its parts apply together: for people in the United States whose state is not given.
        """
        here = not places or not self.places or any(_overlap(a, b) for a in places for b in self.places)
        return here and (not product or not self.products or product in self.products)

    @property
    def all_lists(self) -> Lists:
        """The pack's own lists and those of `words.yaml`."""
        return {**words().lists, **self.lists}

    @cached_property
    def tags(self) -> frozenset[str]:
        """The dictionary tags that decide one of the rules."""
        return frozenset(tag for rule in self.rules for tag in rule.tags)

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """Rule id → its compiled phrases; rules for features with phrases of their own only."""
        return {
            rule.id: rule.pattern(self.all_lists)
            for rule in self.rules
            if rule.scope == "feature" and not rule.looks_for
        }


@dataclass(frozen=True, kw_only=True)
class CitedRule:
    """A rule of a pack, as results cite it.

    Attributes
    ----------
    effective_from, effective_to : str
        ISO days; `effective_to` is empty if there is no end.
    as_of : str
        ISO day on which it was last checked.
    whom : tuple of {"bank", "host", "vendor"}
        Of whom it demands something.
    checked : {"source", "not", "none"}
        Whether it was compared with its official text on that day, if any statute names it.
    quote, quote_from : str, Text
        Official wording and where it was read; empty = all that is said of it is a paraphrase.
    """

    rule_id: str
    title: Text
    pack: Text
    citation: Text
    jurisdiction: str
    status: Status
    effective_from: str
    effective_to: str
    as_of: str
    whom: tuple[Addressee, ...] = ("bank",)
    checked: Checked = "source"
    quote: str = ""
    quote_from: Text = NO_TEXT


def cited(pack: RulePack, rule: LegalRule) -> dict[str, Any]:
    """Return the fields of :class:`CitedRule`."""
    return {
        "rule_id": rule.id,
        "title": rule.title,
        "pack": pack.title,
        "citation": rule.citation,
        "jurisdiction": pack.jurisdiction,
        "status": rule.status,
        "effective_from": rule.effective_from.isoformat(),
        "effective_to": rule.effective_to.isoformat() if rule.effective_to else "",
        "as_of": (rule.as_of or pack.as_of).isoformat(),
        "whom": rule.whom,
        "checked": rule.checked or pack.checked,
        "quote": rule.quote,
        "quote_from": rule.quote_from,
    }


def _overlap(first: str, second: str) -> bool:
    """Return whether one place is the other one, or a part of it."""
    return first == second or first.startswith(f"{second}_") or second.startswith(f"{first}_")


@cache
def words() -> Vocabulary:
    """Return the built-in concepts and lists; read once."""
    return _read(WORDS, Vocabulary)[0]


def read_rule_pack(file: Path) -> RulePack:
    """Read and validate a rule pack.

    Raises
    ------
    RulePackError
        With every problem: file, line, field, found, expected.
    """
    pack, node = _read(file, RulePack)
    problems = []
    for index, rule in enumerate(pack.rules):
        misfits = [
            *_misfits(rule),
            *_bad_quote(rule, rule.checked or pack.checked),
            *_bad_phrases(rule, pack.all_lists),
        ]
        if rule.id in {earlier.id for earlier in pack.rules[:index]}:
            misfits.append(("id", Remark("rule_id_repeated", {"rule": rule.id})))
        for field, why in misfits:
            where = place(file.name, _line(node, ("rules", index, field)))
            problems.append(Remark("rule_does_not_fit", {"where": where, "rule": rule.id, "field": field, "why": why}))
    if problems:
        raise RulePackError(problems=problems)
    return pack


@cache
def load_packs() -> tuple[RulePack, ...]:
    """Return the built-in rule packs, in the order of their file names; read once."""
    return tuple(read_rule_pack(file) for file in _built_in_files())


def _built_in_files() -> list[Path]:
    return [file for file in sorted(RULES.glob("*.yaml")) if file != WORDS]


@cache
def built_in_versions() -> Mapping[str, str]:
    """Name → version of the built-in packs, from the part above their rules: reading all of them takes as long as a score."""
    heads = (file.read_text(encoding="utf-8").partition("\nrules:")[0] for file in _built_in_files())
    read = [yaml.load(head, Loader=yaml_loader()) for head in heads]  # noqa: S506 - makes texts, lists and tables only
    return {head["name"]: head["version"] for head in read}


@cache
def statutory() -> frozenset[str]:
    """Return the concepts that a built-in rule based on a statute names."""
    rules = ((pack, rule) for pack in load_packs() for rule in pack.rules)
    return frozenset(key for pack, rule in rules if (rule.checked or pack.checked) != "none" for key in rule.looks_for)


def read_own_packs(folder: Path) -> tuple[tuple[RulePack, ...], tuple[Text, ...]]:
    """Read the custom packs of a folder (``*.yaml``, ``*.yml``), in the order of their file names; the folder may be absent.

    Returns
    -------
    packs : tuple of RulePack
        Those that are valid in addition to the built-in ones.
    problems : tuple of Text
        Why the others cannot: file, line, reason.
    """
    packs: list[RulePack] = []
    problems: list[Text] = []
    for file in _own_files(folder):
        try:
            pack = read_rule_pack(file)
            _refuse_clash(file, pack, (*load_packs(), *packs))
        except RulePackError as error:
            problems += [Text(remark.sentence("en"), remark.sentence("zh")) for remark in error.remarks]
        else:
            packs.append(pack)
    return tuple(packs), tuple(problems)


def add_rule_pack(file: Path, folder: Path) -> RulePack:
    """Validate a custom pack and keep a copy in `folder` under the pack's name; a newer version replaces the older.

    Raises
    ------
    RulePackError
        The pack is invalid, clashes with another, or is there already in this version.
    """
    pack = read_rule_pack(file)
    target = folder / f"{pack.name}.yaml"
    others = list(load_packs())
    for own_file in _own_files(folder):
        try:
            stored = read_rule_pack(own_file)
        except RulePackError:
            continue
        if stored.name != pack.name:
            others.append(stored)
        elif stored.version == pack.version:
            raise RulePackError("pack_version_exists", file=file.name, version=pack.version, pack=pack.name)
        else:
            target = own_file
    _refuse_clash(file, pack, others)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = target.with_suffix(".part")
    partial.write_bytes(file.read_bytes())
    partial.replace(target)
    return pack


def _own_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.suffix in {".yaml", ".yml"})


def _refuse_clash(file: Path, pack: RulePack, others: Sequence[RulePack]) -> None:
    """Refuse a pack whose name or a rule id of which another pack has."""
    if any(pack.name == each.name for each in others):
        raise RulePackError("pack_name_taken", file=file.name, pack=pack.name)
    other_ids = {rule.id for each in others for rule in each.rules}
    clashes = [rule.id for rule in pack.rules if rule.id in other_ids]
    if clashes:
        raise RulePackError("rule_ids_taken", file=file.name, rules=tuple(clashes))


def _misfits(rule: LegalRule) -> Iterator[tuple[str, Remark]]:
    """Yield fields that do not go together: the field, and what was found, expected, to do."""
    search = [field for field in Concept.model_fields if getattr(rule, field)]
    concepts = tuple(words().concepts)
    if rule.effective_to is not None and rule.effective_to < rule.effective_from:
        yield "effective_to", Remark("rule_ends_first", {"end": rule.effective_to, "start": rule.effective_from})
    if NOT_SENSITIVE in rule.sensitivity:
        yield "sensitivity", Remark("rule_tag_none")
    if rule.scope == "model":
        for field in (*search, *(field for field in ("concept", "concepts") if getattr(rule, field))):
            yield field, Remark("model_rule_searches")
        if not rule.evidence.en or not rule.evidence.zh:
            yield "evidence", Remark("duty_without_evidence")
        return
    if rule.evidence:
        yield "evidence", Remark("feature_rule_has_evidence")
    unknown = [key for key in rule.looks_for if key not in words().concepts]
    if not rule.looks_for:
        if not rule.phrases and not rule.chinese_phrases:
            yield "phrases", Remark("rule_without_phrases", {"concepts": concepts})
    elif unknown:
        field = "concept" if rule.concept else "concepts"
        yield field, Remark("rule_unknown_concept", {"concept": unknown[0], "concepts": concepts})
    elif search:
        yield search[0], Remark("rule_concept_and_phrases")


def _bad_quote(rule: LegalRule, checked: Checked) -> Iterator[tuple[str, Remark]]:
    """Yield a quotation without where it was read, or the reverse; one of a text that was not read; one that is too long."""
    read = rule.quote_from
    if (rule.quote or read) and not (rule.quote and read.en and read.zh):
        yield "quote_from" if rule.quote else "quote", Remark("quote_incomplete")
    if rule.quote and checked != "source":
        yield "checked", Remark("quote_unchecked", {"checked": checked})
    if len(rule.quote) > MAX_QUOTE:
        yield "quote", Remark("quote_too_long", {"letters": len(rule.quote), "limit": MAX_QUOTE})


def _bad_phrases(rule: LegalRule, lists: Lists) -> Iterator[tuple[str, Remark]]:
    for field in ("phrases", "chinese_phrases", "exclusions", "chinese_exclusions", "names", "codes", "units"):
        for phrase in getattr(rule, field):
            try:
                Phrase.of(phrase, lists)
            except FieldError as error:
                yield field, error.remark


def _read(file: Path, model: type[_Model]) -> tuple[_Model, yaml.Node | None]:
    """Return a YAML file as `model`, and the node tree with line numbers."""
    data = read_bounded(file, RulePackError, max_bytes=MAX_BYTES)
    node, values = parse_yaml(file.name, data, RulePackError, MAX_BYTES)
    problems = list(_repeated_keys(file.name, node))
    problems += field_problems(file.name, model, values, line_of=lambda location: _line(node, location))
    if problems:
        raise RulePackError(problems=problems)
    return model.model_validate(values), node


def _repeated_keys(file: str, node: yaml.Node | None) -> Iterator[Remark]:
    """Keys that occur twice in a mapping; YAML would silently keep the last."""
    if isinstance(node, yaml.MappingNode):
        keys_seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys_seen:
                    where = place(file, key.start_mark.line + 1)
                    yield Remark("key_repeated", {"where": where, "key": shown(key.value)})
                keys_seen.add(key.value)
            yield from _repeated_keys(file, value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated_keys(file, value)


def _line(node: yaml.Node | None, location: Sequence[int | str]) -> int:
    """Return the line, counted from 1, of the field at `location`, or of what is nearest above it."""
    for step in location:
        inner = None
        if isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
        if inner is None:
            break
        node = inner
    return 1 if node is None else int(node.start_mark.line) + 1
