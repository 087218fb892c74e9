"""Partial models as canonical JSON and their content hashes; the schema is checked on the way in, nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from backend.data.dictionary import Feature
from backend.data.medians import Medians
from backend.errors import ModelError
from backend.trees.backgrounds import ScoreBands
from backend.trees.ensemble import (
    Fork,
    GuestModel,
    GuestTree,
    HostModel,
    Layout,
    Leaf,
    NodeKey,
    Skeleton,
    Split,
    SplitRule,
)
from backend.trees.outputs import Outputs

FORMAT = 2
HOST_FORMAT = 3
# Format 1 had one output, one weight a leaf, and no split whose larger values go left. Before format 3 a Host received neither the
# layout of scores nor the hash of the Guest's partial model.
READ = {"guest": (1, FORMAT), "host": (1, 2, HOST_FORMAT)}
_OUTPUTS = TypeAdapter(Outputs)
_RULE = TypeAdapter(SplitRule)
_LAYOUT = TypeAdapter(Layout | None)
_BANDS: TypeAdapter[ScoreBands | None] = TypeAdapter(ScoreBands | None)


def content_hash(text: str) -> str:
    """SHA-256 of an artefact's canonical text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def dump_guest(model: GuestModel) -> str:
    """Return the Guest's partial model as canonical JSON."""
    dictionary = []
    for party, feature in model.dictionary:
        dictionary.append([party, feature.model_dump(mode="json", exclude={"missing"})])
    outputs = asdict(model.outputs)
    if not outputs["spread"]:
        del outputs["spread"]
    document = {
        "format": FORMAT,
        "half": "guest",
        "guest": model.guest,
        "hosts": list(model.hosts),
        "base_scores": list(model.base_scores),
        "score_bits": model.score_bits,
        "dictionary": dictionary,
        "trees": dump_trees(model.trees),
        "rules": _rules(model.rules),
        "outputs": outputs,
        "sides_hidden": model.sides_hidden,
        **_medians(model.medians),
    }
    if model.bands is not None:
        document["bands"] = asdict(model.bands)
    return _canonical(document)


def _medians(of: Medians) -> dict[str, Any]:
    """Only if there are any, so that earlier models keep their hash."""
    if of:
        return {"medians": {name: list(pair) for name, pair in of.items()}}
    return {}


def _read_medians(data: dict[str, Any]) -> Medians:
    return {name: (float(low), float(high)) for name, (low, high) in data.get("medians", {}).items()}


def load_guest(text: str) -> GuestModel:
    """Read what :func:`dump_guest` wrote; raises ModelError if the text is damaged."""
    data = _parse(text, "guest")
    try:
        base_scores = data.get("base_scores") or [data["base_score"]]
        dictionary = []
        for party, feature in data["dictionary"]:
            dictionary.append((party, Feature.model_validate(feature)))
        return GuestModel(
            guest=data["guest"],
            hosts=tuple(data["hosts"]),
            trees=load_trees(data["trees"]),
            base_scores=tuple(float(score) for score in base_scores),
            score_bits=int(data["score_bits"]),
            dictionary=tuple(dictionary),
            rules=_read_rules(data["rules"]),
            outputs=_OUTPUTS.validate_python(data.get("outputs", {})),
            sides_hidden=bool(data.get("sides_hidden", False)),
            medians=_read_medians(data),
            bands=_BANDS.validate_python(data.get("bands")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError("guest_half_damaged") from error


def dump_host(model: HostModel) -> str:
    """Return a Host's partial model as canonical JSON."""
    return _canonical(
        {
            "format": HOST_FORMAT,
            "half": "host",
            "host": model.host,
            "guest": model.guest,
            "hosts": list(model.hosts),
            "skeletons": [dump_skeleton(s) for s in model.skeletons],
            "rules": _rules(model.rules),
            "salt": model.salt,
            "layout": None if model.layout is None else asdict(model.layout),
            "guest_hash": model.guest_hash,
            **_medians(model.medians),
        }
    )


def load_host(text: str) -> HostModel:
    """Read what :func:`dump_host` wrote; raises ModelError if the text is damaged."""
    data = _parse(text, "host")
    try:
        return HostModel(
            host=data["host"],
            guest=data["guest"],
            hosts=tuple(data["hosts"]),
            skeletons=tuple(load_skeleton(s) for s in data["skeletons"]),
            rules=_read_rules(data["rules"]),
            salt=str(data["salt"]),
            layout=_LAYOUT.validate_python(data.get("layout") or None),
            guest_hash=str(data.get("guest_hash", "")),
            medians=_read_medians(data),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError("host_half_damaged") from error


def structure_hash(model: HostModel) -> str:
    """Return the SHA-256 of what a Host's answers depend on: the trees in which it owns a split, in any order, and its rules in them.

    It covers no salt, name, layout or hash of the Guest: the same trees under another id have the same structure.
    """
    rules: dict[int, dict[NodeKey, SplitRule]] = {}
    for (tree, node), rule in model.rules.items():
        rules.setdefault(tree, {})[0, node] = rule
    trees = []
    for t, rules_of_tree in rules.items():
        trees.append(_canonical({"forks": dump_skeleton(model.skeletons[t]), "rules": _rules(rules_of_tree)}))
    return content_hash("\n".join(sorted(trees)))


def dump_trees(trees: Sequence[GuestTree]) -> list[list[dict[str, Any]]]:
    """Trees of the Guest alone, for a store."""
    return [[_node(n) for n in tree.nodes] for tree in trees]


def load_trees(trees: Any) -> tuple[GuestTree, ...]:
    """Inverse of :func:`dump_trees`."""
    return tuple(GuestTree(tuple(_read_node(n) for n in tree)) for tree in trees)


def dump_skeleton(skeleton: Skeleton) -> list[list[Any]]:
    """``[node, owner, left, right]`` per fork."""
    return [[i, f.owner, f.left, f.right] for i, f in sorted(skeleton.forks.items())]


def load_skeleton(forks: Any) -> Skeleton:
    """Read what :func:`dump_skeleton` wrote; raises ModelError unless the forks make one binary tree rooted at node 0."""
    skeleton = Skeleton({int(i): Fork(str(owner), int(left), int(right)) for i, owner, left, right in forks})
    children = [c for f in skeleton.forks.values() for c in (f.left, f.right)]
    # no node has two parents, so the walk to the leaves ends; it reaches every fork if a tree has one leaf more than forks
    is_forest = len(children) == len(set(children)) and 0 not in children
    if not is_forest or len(skeleton.leaves) != len(skeleton.forks) + 1:
        raise ModelError("tree_shape_damaged")
    return skeleton


def _node(node: Split | Leaf) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"weight": node.weight, "cover": node.cover, "weights": list(node.weights)}
    return {name: getattr(node, name) for name in Split.__slots__}


def _read_node(data: Mapping[str, Any]) -> Split | Leaf:
    if "weight" in data:
        return Leaf(data["weight"], data["cover"], tuple(data.get("weights", ())))
    return Split(**data)


def _rules(rules: Mapping[NodeKey, SplitRule]) -> list[dict[str, Any]]:
    return [{"tree": tree, "node": node, **_rule(rule)} for (tree, node), rule in sorted(rules.items())]


def _rule(rule: SplitRule) -> dict[str, Any]:
    fields = {name: getattr(rule, name) for name in SplitRule.__slots__}
    return fields | {name: sorted(fields[name]) for name in ("left_categories", "right_categories")}


def _read_rules(data: list[dict[str, Any]]) -> dict[NodeKey, SplitRule]:
    return {(rule["tree"], rule["node"]): _RULE.validate_python(rule) for rule in data}


def _canonical(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _parse(text: str, side: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise _unreadable(side) from error
    if not isinstance(data, dict) or data.get("format") not in READ[side] or data.get("half") != side:
        raise _unreadable(side)
    return data


def _unreadable(side: str) -> ModelError:
    """Return the error that a text is not a partial model of this side."""
    if side == "guest":
        return ModelError("guest_half_unreadable", format=FORMAT)
    return ModelError("host_half_unreadable", format=HOST_FORMAT)
