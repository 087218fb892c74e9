"""Fits a model's outputs to the federation's label: the same task, the classes by name and in the label's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from backend.data.csv_file import listed, shown
from backend.data.label import Label
from backend.errors import ModelError
from backend.trees.ensemble import Leaf
from backend.trees.importers.whole import WholeModel, WholeTree, numbered


def fit_to_label(model: WholeModel, label: Label, label_is: str | None = None) -> WholeModel:
    """Make a model predict the federation's label.

    Parameters
    ----------
    label : Label
        Its classes define names and order; its positive value is what a higher score means.
    label_is : str, optional
        Two outcomes only: the label's text that a higher score of the model speaks for, whatever the file names it.

    Returns
    -------
    WholeModel
        With the label's classes. The notes say what could not be checked.

    Raises
    ------
    ModelError
        The label is of another task, or has other classes.
    """
    found = _described(model.outputs.task, model.outputs.classes)
    wanted = _described(label.task, label.classes)
    if found != wanted:
        raise ModelError(
            f"{model.file}: found a model that predicts {found}, expected {wanted} as the federation's label "
            f"{shown(label.column)} has it. Import it into a federation with such a label, or train one for this label."
        )
    if label.task == "binary":
        if label_is is not None:
            return model if label_is == label.positive else _turned_round(model)
        return _oriented_to(model, label.positive)
    return _in_order_of(model, label.classes) if label.task == "classes" else model


def _described(task: str, classes: Sequence[str]) -> str:
    return {"binary": "two outcomes", "classes": f"{len(classes)} classes", "number": "a number"}[task]


def _oriented_to(model: WholeModel, positive: str) -> WholeModel:
    """Turn scores round where the file's other outcome is the positive one."""
    if not model.outcomes or model.outcomes[-1] == positive:
        return model
    if model.outcomes[0] != positive:
        note = (
            f"A higher score speaks for {shown(model.outcomes[-1])}, against {shown(model.outcomes[0])}; the label's "
            f"positive value is {shown(positive)}. Check that they mean the same; if not, say which it is with --label-is."
        )
        return replace(model, notes=(*model.notes, note))
    return _turned_round(model)


def _turned_round(model: WholeModel) -> WholeModel:
    """-m for a logit m, 1 - s for a share s."""
    whole = 1.0 / len(model.trees) if model.outputs.link == "identity" else 0.0
    return replace(
        model,
        outcomes=model.outcomes[::-1],
        base_scores=tuple(0.0 - score for score in model.base_scores),
        trees=_with_leaves(model.trees, lambda leaf: replace(leaf, weight=whole - leaf.weight)),
    )


def _in_order_of(model: WholeModel, classes: tuple[str, ...]) -> WholeModel:
    names, notes = model.outputs.classes, model.notes
    if set(names) != set(classes):
        if names != numbered(len(classes)):
            raise ModelError(
                f"{model.file}: found the classes {listed([shown(name) for name in names])}, expected the label's "
                f"{listed([shown(name) for name in classes])}. Train on the label's texts, or on their numbers 0, 1, 2 …"
            )
        notes += (
            f"The file numbers its classes; 0 … {len(classes) - 1} are taken for {listed([shown(c) for c in classes], len(classes))} "
            "in this order. Check that the training numbered them so.",
        )
        names = classes
    order = [names.index(name) for name in classes]
    return replace(
        model,
        base_scores=tuple(model.base_scores[k] for k in order),
        trees=_with_leaves(
            model.trees, lambda leaf: replace(leaf, weights=tuple(leaf.weights[k] for k in order if leaf.weights))
        ),
        outputs=replace(
            model.outputs, classes=classes, of_tree=tuple(classes.index(names[k]) for k in model.outputs.of_tree)
        ),
        notes=notes,
    )


def _with_leaves(trees: tuple[WholeTree, ...], change: Callable[[Leaf], Leaf]) -> tuple[WholeTree, ...]:
    return tuple(tuple(change(node) if isinstance(node, Leaf) else node for node in tree) for tree in trees)
