"""A rule pack: one body of law as versioned data, read from YAML and checked before it is used."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from backend.assurance.phrases import Phrase
from backend.data.csv_file import shown
from backend.data.validation import sentences
from backend.errors import RulePackError

Status = Literal["prohibited", "conditional", "indicator", "informational"]
Text = Annotated[str, StringConstraints(min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Location = tuple[int | str, ...]


class Rule(BaseModel):
    """One rule of a pack.

    Attributes
    ----------
    id : str
        Unique over all packs, as `Party.name` is written.
    title, title_zh, explanation, explanation_zh, remedy, remedy_zh : str
    citation : str
        The provision.
    status : str
        What the rule says about using such a feature.
    effective_from, effective_to : date
        In force from and through these days; without an end where `effective_to` is absent.
    as_of : date or None
        When the rule was last checked against its source; None = the pack's.
    sensitivity : tuple of str
        The dictionary tags that name this rule.
    phrases, exclusions : tuple of str
        What to look for in name and meaning, English and Chinese, and what takes it back; see `phrases`.
    meaning_decides : bool
        For words with other senses: a hit in the name counts for nothing where the meaning holds an exclusion, no hit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Key
    title: Text
    title_zh: Text
    citation: Text
    status: Status
    effective_from: dt.date
    effective_to: dt.date | None = None
    as_of: dt.date | None = None
    sensitivity: tuple[Key, ...] = ()
    phrases: Annotated[tuple[Text, ...], Field(min_length=1)]
    phrases_zh: tuple[Text, ...] = ()
    exclusions: tuple[Text, ...] = ()
    exclusions_zh: tuple[Text, ...] = ()
    meaning_decides: bool = False
    explanation: Text
    explanation_zh: Text
    remedy: Text
    remedy_zh: Text

    def in_force(self, day: dt.date) -> bool:
        """Whether the rule applies on that day."""
        return self.effective_from <= day and (self.effective_to is None or day <= self.effective_to)


class RulePack(BaseModel):
    """The rules of one body of law.

    Attributes
    ----------
    name, version, title, title_zh : str
    jurisdiction : str
    source : str
        Where the text of the law is found.
    as_of : date
    lists : dict of str to tuple of str
        Words that phrases name as ``{list}``.
    rules : tuple of Rule
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Key
    version: Text
    title: Text
    title_zh: Text
    jurisdiction: Text
    source: Text
    as_of: dt.date
    lists: dict[str, tuple[Text, ...]] = {}
    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]

    @cached_property
    def compiled(self) -> Mapping[str, tuple[tuple[Phrase, ...], tuple[Phrase, ...]]]:
        """Rule id → its phrases and its exclusions, ready to be looked for."""
        return {
            rule.id: (
                tuple(Phrase.of(phrase, self.lists) for phrase in (*rule.phrases, *rule.phrases_zh)),
                tuple(Phrase.of(phrase, self.lists) for phrase in (*rule.exclusions, *rule.exclusions_zh)),
            )
            for rule in self.rules
        }

    @model_validator(mode="after")
    def _usable(self) -> Self:
        ids = [rule.id for rule in self.rules]
        repeated = sorted({rule_id for rule_id in ids if ids.count(rule_id) > 1})
        if repeated:
            raise ValueError(f"every rule id once; {', '.join(repeated)} occurs again")
        _ = self.compiled  # compiles every phrase, so that a bad one is refused here
        return self


def read_rule_pack(file: Path) -> RulePack:
    """Read and check a rule pack.

    Raises
    ------
    RulePackError
        With every problem found: file, line, field, found, expected.
    """
    try:
        node = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        problems = list(_repeated_keys(file.name, node))
        data = {} if node is None else yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RulePackError(f"{file.name}: cannot be read ({error}); expected a rule pack in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise RulePackError(
            f"{file.name}{line}: found text that is not YAML ({getattr(error, 'problem', error)}). Correct that line."
        ) from None
    problems += sentences(file.name, RulePack, data, lambda location: _line(node, location))
    if problems:
        raise RulePackError("\n".join(problems))
    return RulePack.model_validate(data)


def _repeated_keys(file: str, node: yaml.Node | None) -> Iterator[str]:
    """Keys that a mapping holds twice; YAML would silently keep the last."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield f"{file}, line {key.start_mark.line + 1}: found the key {shown(key.value)} twice. Delete one."
            seen.add(key.value)
            yield from _repeated_keys(file, value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated_keys(file, value)


def _line(node: yaml.Node | None, location: Sequence[int | str]) -> int:
    """The line, counted from 1, of the field at `location`, or of what is nearest above it."""
    for step in location:
        if isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
        else:
            inner = None
        if inner is None:
            break
        node = inner
    return 1 if node is None else int(node.start_mark.line) + 1
