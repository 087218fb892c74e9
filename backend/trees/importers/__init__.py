"""Models that other libraries trained, read from their own files; the file's bytes say which library, not its name.

A file is parsed, never executed: pickles are refused. The result is a `WholeModel`, which `partition` divides between the parties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.data.csv_file import shown
from backend.errors import ModelError
from backend.trees.importers.lightgbm_file import read_lightgbm
from backend.trees.importers.reading import parse_json, read_bytes
from backend.trees.importers.sklearn_file import FORMAT, read_sklearn
from backend.trees.importers.ubjson import parse_ubjson
from backend.trees.importers.whole import WholeModel
from backend.trees.importers.xgboost_file import read_xgboost

EXAMPLE = '{"home": ["own", "rent"]}'


def read_model(path: Path, features: Sequence[str] | None = None) -> WholeModel:
    """Read a tree ensemble from a library's model file.

    Parameters
    ----------
    features : sequence of str, optional
        Names for the model's columns, in their order, instead of those in the file (``f0``, ``Column_0`` … where it has none).

    Raises
    ------
    ModelError
        The file cannot be read, is damaged, or holds something whose predictions are not made of sums of leaf weights.
    """
    model = _read(path.name, read_bytes(path))
    if features is None:
        return model
    if len(features) != len(model.features):
        raise ModelError("feature_names_do_not_fit", file=path.name, found=len(features), expected=len(model.features))
    return replace(model, features=tuple(features))


def read_categories(path: Path) -> dict[str, tuple[str | None, ...]]:
    """Read a JSON object of feature → texts in the order of the model's category codes; null is the empty cell."""
    document = parse_json(path.name, read_bytes(path))
    if not isinstance(document, dict):
        raise ModelError("categories_no_object", file=path.name, example=EXAMPLE)
    for feature, texts in document.items():
        if not (isinstance(texts, list) and all(text is None or isinstance(text, str) for text in texts)):
            raise ModelError("categories_no_list", file=path.name, feature=shown(feature), example=EXAMPLE)
    return {feature: tuple(texts) for feature, texts in document.items()}


def _read(name: str, data: bytes) -> WholeModel:
    if data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L"):  # a UBJ key's length; JSON has '"' or space
        return read_xgboost(name, parse_ubjson(name, data))
    if data.lstrip()[:1] in (b"{", b"["):
        return _read_json(name, parse_json(name, data))
    if data.startswith((b"tree\n", b"tree\r\n")):
        return read_lightgbm(name, data)
    if data.startswith((b"\x80", b"PK\x03\x04", b"\x78\x9c")):
        raise ModelError("model_is_pickle", file=name)
    raise ModelError("model_of_unknown_format", file=name)


def _read_json(name: str, document: Any) -> WholeModel:
    keys = set(document) if isinstance(document, dict) else set()
    if "learner" in keys:
        return read_xgboost(name, document)
    if document == {} or keys & {"format"}:
        if keys and document["format"] == FORMAT:
            return read_sklearn(name, document)
        raise ModelError("model_of_other_format", file=name, format=FORMAT)
    if "tree_info" in keys:
        raise ModelError("model_is_lightgbm_dump", file=name)
    if isinstance(document, list):
        raise ModelError("model_is_xgboost_dump", file=name)
    raise ModelError("model_of_unknown_format", file=name)
