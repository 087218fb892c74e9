"""Fits a model's outputs to the federation's label: the same task, the classes by name and in the label's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from backend.data.csv_file import shown
from backend.data.label import Label
from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.ensemble import Leaf
from backend.trees.importers.whole import WholeModel, WholeTree, numbered


def fit_to_label(model: WholeModel, label: Label, label_is: str | None = None) -> WholeModel:
    """Make a model predict the federation's label.

    Parameters
    ----------
    label : Label
        Its classes define names and order; a higher score means its positive value.
    label_is : str, optional
        For two outcomes only: the label's text that a higher score of the model means, whatever its name in the file.

    Returns
    -------
    WholeModel
        With the label's classes. The notes say what could not be checked.

    Raises
    ------
    ModelError
        The label is of another task, or has other classes.
    """
    of_model = _predicted(model.outputs.task, model.outputs.classes)
    expected = _predicted(label.task, label.classes)
    if of_model != expected:
        column = shown(label.column)
        raise ModelError("model_of_other_task", file=model.file, found=of_model, expected=expected, label=column)
    if label.task == "binary":
        if label_is is not None:
            if label_is == label.positive:
                return model
            return _turned_round(model)
        return _oriented_to(model, label.positive)
    if label.task == "classes":
        return _in_order_of(model, label.classes)
    return model


def _predicted(task: str, classes: Sequence[str]) -> Remark:
    """Return what a model or a label of this task gives."""
    if task == "classes":
        return Remark("this_many_classes", {"count": len(classes)})
    return Remark("two_outcomes" if task == "binary" else "a_number")


def _oriented_to(model: WholeModel, positive: str) -> WholeModel:
    """Turn scores round where the file's other outcome is the positive one."""
    if not model.outcomes or model.outcomes[-1] == positive:
        return model
    if model.outcomes[0] != positive:
        for_text = shown(model.outcomes[-1])
        against = shown(model.outcomes[0])
        values = {"outcome": for_text, "other": against, "positive": shown(positive)}
        return replace(model, notes=(*model.notes, Remark("outcome_written_otherwise", values)))
    return _turned_round(model)


def _turned_round(model: WholeModel) -> WholeModel:
    """Return a model that predicts -m for a logit m, 1 - s for a share s."""
    if model.outputs.link == "identity":
        total = 1.0 / len(model.trees)
    else:
        total = 0.0
    return replace(
        model,
        outcomes=model.outcomes[::-1],
        base_scores=tuple(0.0 - score for score in model.base_scores),
        trees=_with_leaves(model.trees, lambda leaf: replace(leaf, weight=total - leaf.weight)),
    )


def _in_order_of(model: WholeModel, classes: tuple[str, ...]) -> WholeModel:
    names = model.outputs.classes
    notes = model.notes
    if set(names) != set(classes):
        if names != numbered(len(classes)):
            raise ModelError(
                "model_of_other_classes",
                file=model.file,
                found=tuple(map(shown, names)),
                expected=tuple(map(shown, classes)),
            )
        values = {"last": len(classes) - 1, "classes": tuple(map(shown, classes))}
        notes = (*notes, Remark("classes_are_numbered", values))
        names = classes
    order = [names.index(name) for name in classes]
    of_tree = tuple(classes.index(names[k]) for k in model.outputs.of_tree)

    def in_order(leaf: Leaf) -> Leaf:
        if not leaf.weights:
            return leaf
        return replace(leaf, weights=tuple(leaf.weights[k] for k in order))

    return replace(
        model,
        base_scores=tuple(model.base_scores[k] for k in order),
        trees=_with_leaves(model.trees, in_order),
        outputs=replace(model.outputs, classes=classes, of_tree=of_tree),
        notes=notes,
    )


def _with_leaves(trees: tuple[WholeTree, ...], change: Callable[[Leaf], Leaf]) -> tuple[WholeTree, ...]:
    return tuple(tuple(change(node) if isinstance(node, Leaf) else node for node in tree) for tree in trees)
