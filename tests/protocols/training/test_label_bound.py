"""What a Host is told of in training tells no more about labels than the bound says, worked out again from the messages."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joints import joined

from backend.errors import ParameterError
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.forest import grow as grow_forest
from backend.protocols.training.label_bound import LabelBound, told_bits
from backend.protocols.training.messages import AskBinSums, Gradients, SplitRows, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import unpack_rows
from backend.protocols.training.secureboost import grow
from backend.protocols.transport.codec import decode
from backend.trees.ensemble import Split

SMALL = {"trees": 4, "depth": 3, "bins": 12, "cipher": "none"}


def parameters(**kwargs):
    return SecureBoostParameters(**(SMALL | kwargs))


def told_sets(parties, trees, per_round=1):
    """(tree, node) → the records that counted there, of every node that some Host was told of or can work out."""
    n, told, counted, joint_rows = len(parties.joint.parts), {}, {}, {}
    for _, _, _, blob in parties.sent:
        message = decode(blob)
        if isinstance(message, Gradients):
            counted |= {message.tree + c: unpack_rows(message.rows, n) for c in range(per_round)}
        elif isinstance(message, AskBinSums):
            keys = zip(message.trees, message.nodes, strict=True)
            told |= {key: unpack_rows(rows, n) for key, rows in zip(keys, message.rows, strict=True)}
        elif isinstance(message, TakeSplit):
            joint_rows[message.tree, message.node] = unpack_rows(message.rows, n)
            told[message.tree, message.node] = joint_rows[message.tree, message.node] & counted[message.tree]
        elif isinstance(message, SplitRows):
            split = trees[message.tree].nodes[message.node]
            inside = np.flatnonzero(joint_rows[message.tree, message.node])
            left = np.zeros(n, dtype=bool)
            left[inside[unpack_rows(message.left, len(inside))]] = True
            told[message.tree, split.left] = left & counted[message.tree]
    for t, tree in enumerate(trees):
        for i, split in tree.splits.items():  # what is left of a parent
            for known, other in ((split.left, split.right), (split.right, split.left)):
                if (t, i) in told and (t, known) in told:
                    told[t, other] = told[t, i] & ~told[t, known]
    return told, counted


def bits_of(inside, counted, labels):
    """Divergence of the labels of a set, and of its complement, from those of all: term by term."""
    out = 0.0
    for rows in (inside, counted & ~inside):
        own = labels[rows]
        shares = [((own == c).mean(), (labels[counted] == c).mean()) for c in set(own.tolist())]
        out = max(out, sum(p * log2(p / q) for p, q in shares))
    return out


def most_told(parties, trees, per_round=1):
    told, counted = told_sets(parties, trees, per_round)
    return max(bits_of(rows, counted[t], parties.joint.labels) for (t, _), rows in told.items())


CASES = [
    ("binary", {}),
    ("binary", {"row_sample": 0.5, "column_sample": 0.5}),
    ("binary", {"goss_top": 0.3, "goss_other": 0.2}),
    ("binary", {"depth": 1}),
    ("classes", {}),
]


@pytest.mark.parametrize(("task", "extra"), CASES)
@pytest.mark.parametrize("bound", [0.3, 0.15])
def test_no_set_that_a_host_is_told_of_or_can_work_out_tells_more_than_the_bound(task, extra, bound):
    with joined(3, n=600, task=task) as parties:
        grown = grow(parties.joint, parameters(label_bound=bound, **extra))
        told = most_told(parties, grown.trees, 3 if task == "classes" else 1)
    assert 0.0 < told <= bound
    assert grown.label_bits == pytest.approx(told)


@pytest.mark.parametrize(("task", "extra"), CASES)
def test_without_a_bound_they_tell_more_and_the_model_says_how_much(task, extra):
    with joined(3, n=300, task=task) as parties:
        grown = grow(parties.joint, parameters(**extra))
        told = most_told(parties, grown.trees, 3 if task == "classes" else 1)
    assert told > 0.2 and grown.label_bits == pytest.approx(told)


def test_the_first_tree_at_the_guest_is_not_counted_and_one_tree_there_tells_nothing():
    with joined(3, n=300) as parties:
        grown = grow(parties.joint, parameters(complete=True))
        assert grown.label_bits == pytest.approx(most_told(parties, grown.trees))
    with joined(3, n=300) as parties:
        assert grow(parties.joint, parameters(trees=1, complete=True)).label_bits == 0.0


def test_a_forests_sets_are_measured_too():
    with joined(3, n=300) as parties:
        assert grow_forest(parties.joint, ForestParameters(trees=2, depth=3, cipher="none")).label_bits > 0.2


@pytest.mark.parametrize("task", ["binary", "classes"])
def test_a_bound_that_nothing_reaches_changes_no_model(task):
    models = []
    for bound in (0.0, 4.0):
        with joined(5, n=500, task=task) as parties:
            grown = grow(parties.joint, parameters(label_bound=bound))
            models.append((grown.trees, parties.rules(grown.rules), grown.units.tolist()))
    assert models[0] == models[1]


def test_with_a_bound_that_everything_exceeds_the_trees_are_the_guests_own():
    with joined(5, n=200) as parties:
        grown = grow(parties.joint, parameters(label_bound=1e-9))
        alone = {split.owner for tree in grown.trees for split in tree.splits.values()}
        asked = [decode(blob) for _, _, kind, blob in parties.sent if kind in ("AskBinSums", "TakeSplit")]
    assert alone == {parties.joint.guest} and grown.label_bits == 0.0
    assert all(isinstance(m, AskBinSums) and set(m.nodes) == {0} for m in asked)
    assert any(isinstance(node, Split) for node in grown.trees[0].nodes)


def test_a_number_has_no_bound():
    with joined(1, n=60, task="number") as parties:
        with pytest.raises(ParameterError, match="label_bound"):
            grow(parties.joint, parameters(label_bound=0.1))
        assert grow(parties.joint, parameters()).label_bits is None


def test_bits_by_hand():
    total = np.array([50, 50])
    assert told_bits(np.array([[50, 25, 0, 50], [0, 25, 0, 50]]), total) == pytest.approx([1.0, 0.0, 0.0, 0.0])
    # nine of ten alike: 1 - H(0.9) = 0.531; of the 90 others 41 to 49
    assert told_bits(np.array([9, 1]), total) == pytest.approx(0.531, abs=1e-3)
    assert LabelBound(0.6, total).allows(np.array([[9, 10], [1, 0]])).tolist() == [True, False]


@given(st.lists(st.integers(1, 50), min_size=2, max_size=4), st.data())
def test_a_set_and_its_complement_tell_the_same(total, data):
    counts = np.array([data.draw(st.integers(0, n)) for n in total])
    whole = np.array(total)
    assert (
        told_bits(counts, whole) == pytest.approx(told_bits(whole - counts, whole))
        and told_bits(counts, whole) >= -1e-12
    )
