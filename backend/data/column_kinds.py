"""Facts read off a table: a column's kind from its cells, the label's task and its positive value.

What cannot be told is refused with the words that settle it. What is not described has its column's name as meaning.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import BOOLEANS, TableText, shown, to_column
from backend.data.decimal_mark import POINT, Marks
from backend.data.dictionary import Feature, Kind
from backend.data.federation import capped
from backend.data.label import MAX_CLASSES, MIN_CLASSES, Label, Task
from backend.data.missing import is_no_outcome, looks_missing
from backend.data.number_forms import written_number
from backend.data.overview import look_like_dates
from backend.data.party_file import AMOUNT
from backend.data.validation import field_problems
from backend.errors import FederationError
from backend.i18n import NO_MEANING, Text
from backend.remark import Remark

LEADING_ZERO = re.compile(r"0\d+")
MIN_SIGNS = 3  # different texts with a sign, from which on a column is taken for numbers
ODD_CELLS = 0.1  # share of a column of numbers that may be something else, and is then refused by its lines
YES_AND_NO = ("y", "yes", "n", "no")
MIN_SHORT_FORMS = 3  # of these that a column has, from which on its letters mean yes and no
MAX_CODES = 100  # different texts up to which an undescribed column counts as categorical
MAX_CLASS_NUMBERS = 10  # different whole numbers up to which a label may be codes as well as amounts
# negative → positive label if none is named, compared without case; of 1 and 2 either may be the bad outcome
PLAIN = {"0": "1", "no": "yes", "false": "true", "0.0": "1.0"}


def guess(text: TableText, column: str, missing: Sequence[str], *, numbers: bool = False) -> Feature:
    """Yes/no, numbers or codes, by the cells; numbers stay numbers beside a text such as ``NA``, which is then refused by its line.

    Parameters
    ----------
    numbers : bool
        Whether the form of the cells has shown that these are numbers.
    """
    counts = Counter(cell for cell in text.cells(column) if cell and cell not in missing)
    plain_texts = [cell for cell in counts if not looks_missing(cell)]
    values = {cell.casefold() for cell in plain_texts}
    if numbers:
        kind = Kind.NUMERIC
    elif values <= BOOLEANS.keys() and len({BOOLEANS[value] for value in values}) == 2:
        kind = Kind.BOOLEAN
    elif any(LEADING_ZERO.fullmatch(cell) for cell in plain_texts):
        kind = Kind.CATEGORICAL  # a zip code, an account: as a number it would lose its zeros
    elif (plain_texts or not counts) and label_numbers(plain_texts, text.marks) is not None:
        kind = Kind.NUMERIC
    elif _mostly_numbers(counts, text.marks):
        kind = Kind.NUMERIC  # so that the odd cells are refused by their lines
    else:
        kind = Kind.CATEGORICAL
    return Feature.model_construct(name=column, meaning=Text(f"{readable(column)} {NO_MEANING}"[-500:]), kind=kind)


def _mostly_numbers(counts: Mapping[str, int], marks: Marks) -> bool:
    """Return whether nearly all cells are numbers, of so many values that they are not codes."""
    column, unread = to_column(list(counts), AMOUNT, marks)
    if len(counts) - len(unread) <= MAX_CLASS_NUMBERS:
        return False
    total = sum(counts.values())
    odd = sum(counts[cell] for cell in unread.values())
    return odd <= ODD_CELLS * total and len(column) > len(unread)


def code_problems(text: TableText, guessed: Iterable[Feature]) -> list[Remark]:
    """Return a problem for each column that is taken for codes and has too many different texts."""
    problems = []
    for feature in guessed:
        codes = {cell: None for cell in text.cells(feature.name) if cell and cell not in feature.missing}
        if feature.kind is not Kind.CATEGORICAL:
            continue
        signs = []
        for cell in codes:
            number = written_number(cell)
            if number is not None and number.sign:
                signs.append(cell)
        if len(signs) >= MIN_SIGNS and 2 * len(signs) > len(codes):
            cells = tuple(shown(cell) for cell in signs)
            problems.append(
                Remark("numbers_with_signs", {"file": text.name, "feature": shown(feature.name), "cells": cells})
            )
            continue
        alike = alike_texts(codes)
        if alike:
            values = {
                "file": text.name,
                "feature": shown(feature.name),
                "cells": tuple(map(shown, alike[0])),
                "option": shlex.quote(feature.name),
            }
            problems.append(Remark("codes_alike", values))
            continue
        if len(codes) <= MAX_CODES:
            continue
        where = {"file": text.name, "feature": shown(feature.name), "found": len(codes), "limit": MAX_CODES}
        if look_like_dates(codes):
            problems.append(Remark("texts_look_like_dates", {**where, "option": shlex.quote(feature.name)}))
            continue
        unread = to_column(text.cells(feature.name), feature.model_copy(update={"kind": Kind.NUMERIC}))[1]
        row, cell = next(iter(unread.items()))
        problems.append(Remark("too_many_codes", {**where, "cell": shown(cell), "line": text.lines[row]}))
    return problems


def alike_texts(texts: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the texts that mean the same, one tuple a meaning.

    They differ in case or inner spaces alone, or all texts are ways to write yes and no.

    Examples
    --------
    >>> alike_texts(["Male", "female", "male", "MALE"])
    [('MALE', 'Male', 'male')]
    >>> alike_texts(["Y", "yes", "1", "N", "0"]), alike_texts(["1", "2", "yes"])
    ([('1', 'Y', 'yes'), ('0', 'N')], [])
    """
    texts = list(texts)
    yes_or_no = {text: BOOLEANS.get(text.casefold()) for text in texts}
    all_yes_or_no = None not in yes_or_no.values()
    by_form: dict[object, list[str]] = {}
    for text in texts:
        form = yes_or_no[text] if all_yes_or_no else " ".join(text.casefold().split())
        by_form.setdefault(form, []).append(text)
    return [tuple(sorted(spellings)) for spellings in by_form.values() if len(spellings) > 1]


def short_forms(texts: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the ways to write yes, and those to write no, beside other codes; none if a letter may mean something else.

    Examples
    --------
    >>> short_forms(["Y", "yes", "no", "perhaps"]), short_forms(["N", "S", "no"])
    ([('Y', 'yes')], [])
    """
    by_value: dict[float, list[str]] = {}
    spelled = set()
    for text in texts:
        if text.casefold() in YES_AND_NO:
            by_value.setdefault(BOOLEANS[text.casefold()], []).append(text)
            spelled.add(text.casefold())
    if len(spelled) < MIN_SHORT_FORMS:
        return []
    return [tuple(sorted(same_value)) for same_value in by_value.values() if len(same_value) > 1]


def label_of(
    text: TableText,
    column: str,
    task: str | None,
    positive: str | None,
    meaning: str | None,
    described: Feature | None,
    sign: str = "",
) -> Label:
    """Return the label for the federation file; what the caller leaves open is inferred from its cells. `sign` is that of its amounts."""
    where = {"file": text.name, "label": shown(column)}
    values = _ordered({cell for cell in text.cells(column) if cell == positive or not is_no_outcome(cell)})
    if len(values) < 2:
        raise FederationError("label_does_not_differ", **where, n=len(values))
    alike = alike_texts(values)
    if alike and task != "number":
        option = shlex.quote(column)
        raise FederationError("label_values_alike", **where, values=tuple(map(shown, alike[0])), option=option)
    data: dict[str, object] = {
        "column": column,
        "task": task or (_task(values, where) if positive is None else "binary"),
    }
    if positive is not None:
        data["positive"] = positive  # which a task without a positive value refuses
    elif data["task"] == "binary":
        data["positive"] = _positive(values, where)
    if data["task"] == "classes":
        refuse(_class_problems(text, column, values, where))
        data["classes"] = tuple(values)
    if data["task"] == "number":
        if described and described.unit:
            data["unit"] = described.unit
        else:
            data["unit"] = Text(sign)
    if "positive" in data:
        guessed = f"{readable(column)} is {data['positive']}"
    else:
        guessed = readable(column)
    if described:
        data["meaning"] = Text(meaning or described.meaning.en, described.meaning.zh)
    else:
        data["meaning"] = meaning or f"{guessed} {NO_MEANING}"
    refuse(field_problems(text.name, Label, data, ("label",)))
    return Label.model_validate(data)


def _task(values: Sequence[str], where: Mapping[str, str]) -> Task:
    """Infer the task from the label's different values; whole numbers that may be codes as well as amounts are refused."""
    numbers = label_numbers(values)
    if len(values) == 2:
        return "binary"
    if numbers is None:
        return "classes"
    if len(values) > MAX_CLASS_NUMBERS or np.any(numbers % 1):
        return "number"
    raise FederationError("label_task_unclear", **where, found=len(values), values=tuple(values))


def label_numbers(values: Sequence[str], marks: Marks = POINT) -> NDArray[np.float64] | None:
    """Return the values as numbers, or None if one of them is no number."""
    column, unread = to_column(values, AMOUNT, marks)
    return None if unread else column.astype(np.float64)


def _ordered(values: Iterable[str]) -> list[str]:
    """Return texts in their order, or by value if all are numbers."""
    texts = sorted(values)
    numbers = label_numbers(texts)
    if numbers is None:
        return texts
    return [texts[i] for i in np.argsort(numbers, kind="stable")]


def _positive(values: Sequence[str], where: Mapping[str, str]) -> str:
    """Return the one of the label's two values that plainly means 1."""
    cells = tuple(shown(value) for value in values)
    if len(values) != 2:
        raise FederationError("label_not_two_values", **where, found=len(values), values=cells)
    first, second = values
    for positive, negative in ((first, second), (second, first)):
        if PLAIN.get(negative.casefold()) == positive.casefold():
            return positive
    raise FederationError("label_positive_unclear", **where, values=cells)


def _class_problems(text: TableText, column: str, values: Sequence[str], where: Mapping[str, str]) -> list[Remark]:
    """Return why the label's different values cannot be classes; `values` in their order."""
    cells = tuple(shown(value) for value in values)
    counted = {**where, "found": len(values), "values": cells, "least": MIN_CLASSES, "limit": MAX_CLASSES}
    if len(values) < MIN_CLASSES:
        return [Remark("label_too_few_classes", counted)]
    unread = to_column(text.cells(column), AMOUNT)[1]
    if len(values) > MAX_CLASSES and unread:
        row, cell = next(iter(unread.items()))
        return [Remark("label_too_many_classes", {**counted, "cell": shown(cell), "line": text.lines[row]})]
    if len(values) > MAX_CLASSES:
        return [Remark("label_too_many_numbers", counted)]
    numbers = label_numbers(values)
    if numbers is None:
        same = []
    else:
        same = np.flatnonzero(numbers[1:] == numbers[:-1]).tolist()
    return [Remark("label_classes_alike", {**where, "first": cells[i], "second": cells[i + 1]}) for i in same]


def readable(name: str) -> str:
    """Return a column's or file's name as words: ``LIMIT_BAL`` → ``Limit bal``, ``paidOnTime`` → ``Paid on time``."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).strip() or name
    words = []
    for word in spaced.split():
        words.append(word if word.isupper() and len(word) < 4 and not name.isupper() else word.lower())
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def refuse(problems: Sequence[Remark]) -> None:
    """Raise FederationError with every problem, if there is one."""
    if problems:
        raise FederationError(problems=capped(problems))
