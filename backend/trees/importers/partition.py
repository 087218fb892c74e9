"""Divides an imported model between the parties: every split's threshold goes to the owner of its feature and to no other party."""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from backend.data.csv_file import listed, shown
from backend.data.dictionary import Feature, Kind
from backend.data.federation import capped
from backend.data.label import Label
from backend.errors import ModelError
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, NodeKey, Split, SplitRule
from backend.trees.importers.labels import fit_to_label
from backend.trees.importers.whole import WholeModel, WholeSplit

MAX_UNITS = 1 << 53  # beyond, float64 is no longer exact


@dataclass(frozen=True)
class PartialModels:
    """The Guest's partial model, each Host's, and what they were made of.

    Attributes
    ----------
    whole : WholeModel
        The model as it predicts the federation's label: scores turned round and classes put in order where that was needed.
    codes : mapping of str to mapping of str to int
        Categorical feature → the federation's text, empty for an empty cell → category code.
    """

    guest: GuestModel
    hosts: dict[str, HostModel]
    whole: WholeModel
    codes: Mapping[str, Mapping[str, int]]


def split_between_parties(
    model: WholeModel,
    dictionary: Sequence[tuple[str, Feature]],
    label: Label,
    guest: str,
    hosts: Sequence[str],
    score_bits: int,
    categories: Mapping[str, Sequence[str | None]] | None = None,
    label_is: str | None = None,
) -> PartialModels:
    """Make the parties' partial models.

    Parameters
    ----------
    dictionary : sequence of (str, Feature)
        Owner and disclosed feature: `Federation.features()`.
    label : Label
        The federation's: the model must predict it, and its classes name the outputs.
    hosts : sequence of str
        In the order of the scoring chain; each gets a partial model, even one without a split.
    score_bits : int
        Leaf weights are scored as multiples of 2**-score_bits. A margin is then off the library's raw one by at most
        (trees + 1)·2**-(score_bits+1), and by the library's own rounding; only trees that add to it count.
    categories : mapping of str to sequence of str or None, optional
        Feature → the federation's text of each category code, for what the file does not name; None is the empty cell.
    label_is : str, optional
        Two outcomes only: the label's text that a higher score speaks for.

    Raises
    ------
    ModelError
        The model predicts something else than the label, or sums that `score_bits` cannot hold; else with every
        problem found: a feature that no party holds, is of another kind, or whose codes have no known text.
    """
    model = fit_to_label(model, label, label_is)
    _check_size(model, score_bits)
    columns = _columns(model, dictionary, {guest, *hosts}, categories or {})
    rules: dict[str, dict[NodeKey, SplitRule]] = {party: {} for party in (guest, *hosts)}
    trees = []
    for t, tree in enumerate(model.trees):
        nodes: list[Split | Leaf] = []
        for i, node in enumerate(tree):
            if isinstance(node, Leaf):
                nodes.append(node)
                continue
            column = columns[node.feature]
            rules[column.owner][t, i] = column.rule(node)
            name = column.feature.name
            nodes.append(Split(column.owner, name, node.left, node.right, node.default_left, node.gain, node.cover))
        trees.append(GuestTree(tuple(nodes)))
    partial_model = GuestModel(
        guest=guest,
        hosts=tuple(hosts),
        trees=tuple(trees),
        base_scores=model.base_scores,
        score_bits=score_bits,
        dictionary=tuple((p, f) for p, f in dictionary if f.name in model.features and p in rules),
        rules=rules[guest],
        outputs=model.outputs,
    )
    others = {
        host: HostModel(host, guest, partial_model.hosts, partial_model.skeletons, rules[host], secrets.token_hex(16))
        for host in hosts
    }
    codes = {c.feature.name: {text: code for code, text in c.texts.items()} for c in columns.values() if c.texts}
    return PartialModels(partial_model, others, model, codes)


def _check_size(model: WholeModel, score_bits: int) -> None:
    """Refuse margins that may grow beyond what is added up exactly."""
    reach = model.reach
    max_reach = MAX_UNITS >> score_bits
    if reach > max_reach:
        raise ModelError(
            f"{model.file}: found scores of up to {reach:,.0f}, expected at most {max_reach:,} with {score_bits} score bits. "
            "Choose fewer score bits, or train on a label in larger units."
        )


@dataclass(frozen=True)
class _Column:
    """A column of the model as the federation knows it; `texts` are a categorical one's, by code, empty for an empty cell."""

    owner: str
    feature: Feature
    texts: Mapping[int, str]

    def rule(self, split: WholeSplit) -> SplitRule:
        if split.threshold is None:
            listed_ones = frozenset(self.texts[code] for code in split.codes)
            others = frozenset(self.texts.values()) - listed_ones
            left, right = (listed_ones, others) if split.codes_left else (others, listed_ones)
            default_left = "" in left or (split.default_left and "" not in right)
            return SplitRule(self.feature.name, default_left, None, left - {""}, right - {""})
        if self.feature.kind is Kind.CATEGORICAL:
            left = frozenset(code for code in self.feature.categories if float(code) < split.threshold)
            right = frozenset(self.feature.categories) - left
            return SplitRule(self.feature.name, split.default_left, None, left, right)
        return SplitRule(self.feature.name, split.default_left, split.threshold)


def _columns(
    model: WholeModel,
    dictionary: Sequence[tuple[str, Feature]],
    parties: set[str],
    categories: Mapping[str, Sequence[str | None]],
) -> dict[int, _Column]:
    """Every column that some split asks about; raises ModelError with all problems."""
    held = {feature.name: (party, feature) for party, feature in dictionary if party in parties}
    problems = [
        f"{model.file}: category texts were given for {shown(name)}, which is none of its columns. Correct the name."
        for name in categories
        if name not in model.features
    ]
    columns = {}
    splits: dict[int, list[WholeSplit]] = defaultdict(list)
    for node in chain.from_iterable(model.trees):
        if isinstance(node, WholeSplit):
            splits[node.feature].append(node)
    for i in sorted(splits):
        name = model.features[i]
        if name not in held:
            problems.append(
                f"{model.file}: found splits on {shown(name)}, expected a feature that a party holds: "
                f"{listed([shown(known) for known in held])}. Name the model's columns as the federation does, or add the feature to it."
            )
            continue
        owner, feature = held[name]
        try:
            texts = _texts(model, i, splits[i], feature, categories.get(name))
        except ModelError as error:
            problems.append(str(error))
            continue
        columns[i] = _Column(owner, feature, texts)
    if problems:
        raise ModelError("\n".join(capped(problems)))
    return columns


def _texts(
    model: WholeModel, column: int, splits: Sequence[WholeSplit], feature: Feature, given: Sequence[str | None] | None
) -> dict[int, str]:
    """The federation's text of each category code; none for a column of numbers."""
    where = f"{model.file}, feature {shown(feature.name)}"
    categorical = {split.threshold is None for split in splits}
    if len(categorical) > 1:
        raise ModelError(
            f"{where}: found splits by threshold and by category, expected one kind. Save the model again."
        )
    if not categorical.pop():
        if feature.kind is Kind.CATEGORICAL and not (feature.categories and all(map(_is_number, feature.categories))):
            raise ModelError(
                f"{where}: the model cuts it as a number, the federation has it as {feature.kind}. Give it the kind "
                "numeric there, list codes that are numbers, or train it as a categorical feature."
            )
        return {}
    if feature.kind is not Kind.CATEGORICAL:
        raise ModelError(
            f"{where}: the model has it as categorical, the federation as {feature.kind}. Give it the kind categorical "
            "there, or train it as a number."
        )
    texts = _named(where, model.categories.get(column), feature, given)
    unnamed = sorted({code for split in splits for code in split.codes} - set(texts))
    if unnamed:
        raise ModelError(
            f"{where}: the file does not legibly say which category the code {unnamed[0]} is, and the federation lists no such "
            f"code; expected a text for each of {listed([str(code) for code in unnamed])}. Give the categories in the "
            "order of their codes (--categories), or train on pandas categories."
        )
    return texts


def _named(
    where: str, in_file: Sequence[str] | None, feature: Feature, given: Sequence[str | None] | None
) -> dict[int, str]:
    """Code → text, as given, else as in the file, else the disclosed codes that are whole numbers themselves."""
    if given is None and in_file is None:
        return {int(code): code for code in feature.categories if code.isdecimal() and str(int(code)) == code}
    texts = tuple((text or "").strip() for text in (given if given is not None else in_file or ()))  # as cells are read
    if len(set(texts)) != len(texts):
        raise ModelError(f"{where}: found two category codes with one text, expected a text of its own for each.")
    blank = [text for text in texts if text in feature.missing or (not text and None not in (given or ()))]
    if blank:
        raise ModelError(
            f"{where}: found the category {shown(blank[0])}, which the model tells apart from a missing value and the federation "
            f"counts as one: its scores would not be the model's. {_advice(blank[0], feature)}"
        )
    strange = [text for text in texts if text and text not in feature.categories]
    if feature.categories and strange and (given is not None or len(strange) == len(texts)):
        raise ModelError(
            f"{where}: found the categories {listed([shown(text) for text in strange], 5)}, expected the federation's codes "
            f"{listed([shown(code) for code in feature.categories], 5)}. Give them in the order of the model's codes (--categories)."
        )
    return dict(enumerate(texts))


def _advice(text: str, feature: Feature) -> str:
    if not text:
        return "If that category is the empty cell, say so with --categories, null in its place; or train with such cells left missing."
    return (
        f"If it is a category, take {shown(text)} out of 'missing' in the federation file; if it is a missing value, train with such "
        "cells left missing."
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
