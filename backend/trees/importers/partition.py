"""Divides an imported model between the parties: every split's threshold goes to the owner of its feature and to no other party."""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from backend.data.csv_file import shown
from backend.data.dictionary import Feature, Kind
from backend.data.federation import capped
from backend.data.label import Label
from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, NodeKey, Split, SplitRule
from backend.trees.importers.labels import fit_to_label
from backend.trees.importers.whole import WholeModel, WholeSplit

SORTED_ALIKE = 10  # codes from 0 on that are in the same order as numbers and as texts
MAX_UNITS = 1 << 53  # beyond, float64 is no longer exact


@dataclass(frozen=True)
class PartialModels:
    """The Guest's partial model, each Host's, and what they were made of.

    Attributes
    ----------
    whole_model : WholeModel
        The model as it predicts the federation's label: scores turned round and classes put in order if necessary.
    codes : mapping of str to mapping of str to int
        Categorical feature → the federation's text, empty for an empty cell → category code.
    """

    guest: GuestModel
    hosts: dict[str, HostModel]
    whole_model: WholeModel
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
        The federation's label: the model must predict it, and its classes name the outputs.
    hosts : sequence of str
        In the order of the scoring chain; each gets a partial model, even one without a split.
    score_bits : int
        Leaf weights are scored as multiples of 2**-score_bits. A margin then differs from the library's raw one by at most
        (trees + 1)·2**-(score_bits+1), and by the library's own rounding; only trees that add to it count.
    categories : mapping of str to sequence of str or None, optional
        Feature → the federation's text of each category code that the file does not name; None is the empty cell.
    label_is : str, optional
        For two outcomes only: the label's text that a higher score means.

    Raises
    ------
    ModelError
        The model does not predict the label, or its sums are too large for `score_bits`; else with every problem: a feature that no
        party has, that is of another kind, or whose codes have no known text.
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
    host_models = {}
    for host in hosts:
        salt = secrets.token_hex(16)
        host_models[host] = HostModel(host, guest, partial_model.hosts, partial_model.skeletons, rules[host], salt)
    codes = {}
    for column in columns.values():
        if column.texts:
            codes[column.feature.name] = {text: code for code, text in column.texts.items()}
    return PartialModels(partial_model, host_models, model, codes)


def _check_size(model: WholeModel, score_bits: int) -> None:
    """Refuse margins that may grow beyond what is added up exactly."""
    reach = model.reach
    max_reach = MAX_UNITS >> score_bits
    if reach > max_reach:
        raise ModelError("scores_too_large", file=model.file, found=reach, limit=max_reach, bits=score_bits)


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
            left_codes, right_codes = (listed_ones, others) if split.codes_left else (others, listed_ones)
            default_left = "" in left_codes or (split.default_left and "" not in right_codes)
            return SplitRule(self.feature.name, default_left, None, left_codes - {""}, right_codes - {""})
        if self.feature.kind is Kind.CATEGORICAL:
            left_codes = frozenset(code for code in self.feature.categories if float(code) < split.threshold)
            right_codes = frozenset(self.feature.categories) - left_codes
            return SplitRule(self.feature.name, split.default_left, None, left_codes, right_codes)
        return SplitRule(self.feature.name, split.default_left, split.threshold)


def _columns(
    model: WholeModel,
    dictionary: Sequence[tuple[str, Feature]],
    parties: set[str],
    categories: Mapping[str, Sequence[str | None]],
) -> dict[int, _Column]:
    """Return every column that a split asks about; raises ModelError with all problems."""
    by_name = {feature.name: (party, feature) for party, feature in dictionary if party in parties}
    problems = []
    for name in categories:
        if name not in model.features:
            problems.append(Remark("categories_of_no_column", {"file": model.file, "name": shown(name)}))
    columns = {}
    splits: dict[int, list[WholeSplit]] = defaultdict(list)
    for node in chain.from_iterable(model.trees):
        if isinstance(node, WholeSplit):
            splits[node.feature].append(node)
    for i in sorted(splits):
        name = model.features[i]
        if name not in by_name:
            names = tuple(shown(feature) for feature in by_name)
            problems.append(
                Remark("split_on_unknown_feature", {"file": model.file, "name": shown(name), "known": names})
            )
            continue
        owner, feature = by_name[name]
        try:
            texts = _texts(model, i, splits[i], feature, categories.get(name))
        except ModelError as error:
            problems += error.remarks
            continue
        placeholder = model.placeholder
        if not texts and placeholder is not None and not _reads_as_missing(feature, placeholder):
            values = {"file": model.file, "feature": shown(name), "number": f"{placeholder:g}"}
            problems.append(Remark("placeholder_not_missing", values))
        columns[i] = _Column(owner, feature, texts)
    if problems:
        raise ModelError(problems=capped(problems))
    return columns


def _reads_as_missing(feature: Feature, placeholder: float) -> bool:
    """Return whether a feature counts the number as missing that stood for a missing value in training."""
    numbers = [float(text) for text in feature.missing if _is_number(text)]
    return placeholder in numbers


def _texts(
    model: WholeModel,
    column: int,
    splits: Sequence[WholeSplit],
    feature: Feature,
    given_texts: Sequence[str | None] | None,
) -> dict[int, str]:
    """Return the federation's text of each category code; empty for a column of numbers."""
    where = {"file": model.file, "feature": shown(feature.name)}
    categorical = {split.threshold is None for split in splits}
    if len(categorical) > 1:
        raise ModelError("splits_of_two_kinds", **where)
    if not categorical.pop():
        if feature.kind is Kind.CATEGORICAL and not (feature.categories and all(map(_is_number, feature.categories))):
            raise ModelError("model_cuts_as_number", **where, kind=feature.kind.value)
        return {}
    if feature.kind is not Kind.CATEGORICAL:
        raise ModelError("model_has_categories", **where, kind=feature.kind.value)
    used_codes = sorted({code for split in splits for code in split.codes})
    if given_texts is None and column not in model.categories:
        texts = _proven(where, feature, used_codes, model.seen_codes.get(column))
    else:
        texts = _named(where, model.categories.get(column), feature, given_texts)
    unnamed = sorted(set(used_codes) - set(texts))
    if unnamed:
        raise ModelError("category_codes_unnamed", **where, first=unnamed[0], codes=tuple(unnamed))
    return texts


def _named(
    where: Mapping[str, str], in_file: Sequence[str] | None, feature: Feature, given_texts: Sequence[str | None] | None
) -> dict[int, str]:
    """Return the text of each code: from `given_texts`, else from the file."""
    if given_texts is not None:
        texts_by_code = given_texts
    else:
        texts_by_code = in_file or ()
    texts = tuple((text or "").strip() for text in texts_by_code)  # stripped as cells are
    if len(set(texts)) != len(texts):
        raise ModelError("category_text_repeated", **where)
    blank = [text for text in texts if text in feature.missing or (not text and None not in (given_texts or ()))]
    if blank:
        raise ModelError(
            "category_counts_as_missing", **where, category=shown(blank[0]), advice=_advice(blank[0], feature)
        )
    if given_texts is None:
        _check_numbers(where, texts, feature)
    strange = [text for text in texts if text and text not in feature.categories]
    if feature.categories and strange and (given_texts is not None or len(strange) == len(texts)):
        raise ModelError(
            "categories_not_of_federation",
            **where,
            found=tuple(map(shown, strange)),
            expected=tuple(map(shown, feature.categories)),
        )
    return dict(enumerate(texts))


def _check_numbers(where: Mapping[str, str], texts: Sequence[str], feature: Feature) -> None:
    """Raise ModelError if the file's texts are numbers that may be places among the federation's codes, which are numbers, too."""
    codes = list(feature.categories)
    if not codes or not all(map(is_whole, [*texts, *codes])):
        return
    counted = set(texts) == {str(place) for place in range(len(texts))}
    if not set(texts) <= set(codes) or (counted and len(texts) < len(codes)):
        raise ModelError("category_codes_unproven", **where, codes=tuple(texts), known=tuple(codes))


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number as libraries count codes."""
    return text.isascii() and text.isdecimal() and str(int(text)) == text


def _proven(
    where: Mapping[str, str], feature: Feature, used_codes: Sequence[int], trained_codes: frozenset[int] | None
) -> dict[int, str]:
    """Return the text of each code if the model's codes are surely the federation's, which are whole numbers; nothing is guessed.

    A model's code 1 may be the federation's code 1 or its second code. Both are the same if the federation counts from 0, in the same
    order as texts, and all its codes occurred in training, the last one included. If the federation does not count from 0, the model's
    codes are the federation's if exactly these occurred.

    Raises
    ------
    ModelError
        The codes may be places in a list.
    """
    federation_codes = {int(code): code for code in feature.categories if is_whole(code)}
    if not federation_codes or len(federation_codes) < len(feature.categories):
        return federation_codes  # the caller asks for the missing text
    from_zero = federation_codes.keys() == set(range(len(federation_codes)))
    if from_zero and not federation_codes.keys() >= set(used_codes):
        return federation_codes  # as above
    if from_zero:
        # A split separates two codes, so if there are two codes, both occurred.
        if trained_codes is not None:
            all_occurred = trained_codes == federation_codes.keys()
        else:
            all_occurred = len(federation_codes) <= 2 or max(federation_codes) in used_codes
        proven = all_occurred and len(federation_codes) <= SORTED_ALIKE
    else:
        proven = trained_codes == federation_codes.keys()
    if proven:
        return federation_codes
    if trained_codes is not None:
        occurred = tuple(sorted(trained_codes))
    else:
        occurred = tuple(used_codes)
    raise ModelError("category_codes_unproven", **where, codes=occurred, known=tuple(federation_codes.values()))


def _advice(text: str, feature: Feature) -> Remark:
    """Return what to do about a category that the federation counts as missing."""
    if not text:
        return Remark("advice_empty_category")
    return Remark("advice_take_out_of_missing", {"text": shown(text)})


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
