"""Training under RLWE: the models of plaintext byte for byte, what travels, and what either side refuses."""

from functools import cache
from itertools import count

import numpy as np
import pytest
from joints import joined
from worlds import GUEST

from backend.crypto.fixedpoint import GRADIENT_BITS, MAX_ROWS, half_slot
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import sum_parameters, sum_sets
from backend.errors import SecurityError
from backend.protocols.training import decision_tree, forest, secureboost
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.federated_trees import TreeJob, start
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.messages import AskBinSums, AskNodeSums, BinSums, Gradients, NodePairs
from backend.protocols.training.node_numbers import NodeNumbers
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import pack_rows, unpack_rows
from backend.protocols.transport.codec import decode
from backend.protocols.transport.packing import to_bitmap
from backend.trees.growth import GrowthRules, SecondOrder

CRITERION = SecondOrder(GrowthRules(1.0, 1.0, 0.0, 1.0), (1.0, 1.0))
BOOSTED = SecureBoostParameters(trees=2, depth=3, bins=6, cipher="none")
FOREST = ForestParameters(trees=2, depth=3, bins=6, min_samples_leaf=1, cipher="none", score_bits=12)
TREE = DecisionTreeParameters(depth=3, bins=6, cipher="none", score_bits=12)
ALL = to_bitmap(np.ones(3, dtype=bool))


@cache
def key():
    return RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(60))))


def grown(way, parameters, task, side):
    with joined(1, key=side, task=task) as parties:
        model = way.grow(parties.joint, parameters)
        rules = sorted(parties.rules(model.rules).items())
        kinds = {kind for _, _, kind, _ in parties.sent}
    return repr((model.trees, rules, model.margins.tolist(), model.units.tolist(), model.label_bits)), kinds


@pytest.mark.parametrize(
    ("way", "parameters", "task"),
    [
        (secureboost, BOOSTED, "binary"),
        (secureboost, BOOSTED, "classes"),
        (secureboost, BOOSTED, "number"),
        (
            secureboost,
            SecureBoostParameters(**BOOSTED.as_dict() | {"label_bound": 0.5, "goss_top": 0.3, "goss_other": 0.3}),
            "binary",
        ),
        (secureboost, SecureBoostParameters(**BOOSTED.as_dict() | {"complete": True, "column_sample": 0.5}), "binary"),
        (forest, FOREST, "binary"),
        (forest, FOREST, "classes"),
        (forest, FOREST, "number"),
        (decision_tree, TREE, "classes"),
    ],
)
def test_ciphertexts_and_plaintext_grow_the_same_model_byte_for_byte(way, parameters, task):
    (plain, _), (encrypted, kinds) = (grown(way, parameters, task, side) for side in (None, key()))
    assert plain == encrypted
    assert {"AskNodeSums", "NodePairs", "BinSums"} <= kinds and not {"Gradients", "AskBinSums"} & kinds


def pairs(n, seed=0):
    draw = np.random.default_rng(seed)
    return draw.integers(-9, 10, n), draw.integers(1, 5, n)


def sent(parties, kind, receiver):
    return [decode(blob) for _, to, name, blob in parties.sent if name == kind.__name__ and to == receiver]


def test_a_node_s_rows_are_encrypted_once_for_all_hosts_and_of_two_children_the_smaller_only():
    with joined(3, n=80, key=key()) as parties:
        grower = start(parties.joint, 6)
        grower.send_pairs([pairs(80)])
        [tree] = grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 3)
        first, second = (sent(parties, NodePairs, host) for host in ("host0", "host1"))
        assert [m.pairs for m in first] == [m.pairs for m in second] and len({m.pairs for m in first}) == len(first)
        nodes = sent(parties, AskNodeSums, "host0")
        rows = {m.node: unpack_rows(m.rows, 80) for m in nodes}
    assert (rows[0] == parties.joint.training).all()
    splits = {i: s for i, s in tree.tree.splits.items() if s.left in rows or s.right in rows}
    for i, split in splits.items():
        assert not (split.left in rows and split.right in rows)
        child = rows.get(split.left, rows.get(split.right))
        assert i not in rows or 2 * child.sum() <= rows[i].sum()
    assert len(splits) == len(rows) - 1 > 1


def test_flags_share_a_number_and_gradients_have_one_each():
    numbers = NodeNumbers.of([False, False, True, True, True], 30, 2)
    assert numbers.channels == ((0,), (1,), (2, 3), (4,))
    draw = np.random.default_rng(0)
    values = np.stack([draw.integers(-9, 9, 30), draw.integers(0, 9, 30), *draw.integers(0, 2, (3, 30))])
    sums = numbers.join(values).sum(axis=1, keepdims=True)
    assert (numbers.split(sums) == values.sum(axis=1, keepdims=True)).all()
    for name, parameters in sum_sets().items():
        assert name == parameters.name and key().flags_a_number(parameters.limit >> GRADIENT_BITS) >= 1
    digits = key().flags_a_number(36)
    assert 37**digits <= key().limit < 37 ** (digits + 1)
    most = key().encrypt(np.full((1, 36), sum(37**i for i in range(digits))), 64)  # every flag set: no sum runs over
    assert len(b"".join(most)) == key()._ring.seeded_width


def refused(parties, messages, match):
    for message in messages:
        parties.joint.conversation.send("host0", message)
    with pytest.raises(SecurityError, match=match):
        parties.joint.conversation.expect(BinSums)


TREES = count()  # a node is summed once in a training


def ask(rows, features=ALL, block=64, numbers=1):
    return AskNodeSums("c", next(TREES), 0, pack_rows(rows), features, block, numbers)


def piece(rows, block=64):
    values = np.ones((1, int(rows.sum())), dtype=np.int64)
    return NodePairs("c", b"".join(key().encrypt(values, block)))


def test_a_host_refuses_rows_forms_and_pieces_that_do_not_belong_together():
    with joined(0, hosts=1, key=key()) as parties:
        start(parties.joint, 6)
        training = parties.joint.training
        whole, none = piece(training), to_bitmap(np.zeros(3, dtype=bool))
        refused(parties, [whole], "no sums were asked for")
        refused(parties, [ask(~training)], "no training rows")
        refused(parties, [ask(training, none)], "0 features")
        refused(parties, [ask(training, block=63)], "63 rows")
        refused(parties, [ask(training, numbers=65)], "65 numbers")
        refused(parties, [ask(training), NodePairs("c", whole.pairs[:-1])], "were expected")
        refused(parties, [ask(training), NodePairs("c", whole.pairs * 2)], "were expected")
        refused(parties, [ask(training), NodePairs("c", bytes(len(whole.pairs)))], "damaged")
        parties.joint.conversation.send("host0", ask(training))
        parties.joint.conversation.send("host0", whole)
        parties.joint.conversation.expect(BinSums)
        refused(parties, [whole], "no sums were asked for")  # the same bytes again give no second reply
        refused(parties, [Gradients("c", 0, pack_rows(training), (whole.pairs,))], "rows of each node")
        asked = AskBinSums("c", (0,), (0,), (pack_rows(training),), (ALL,), ((0,),), (-1,))
        refused(parties, [asked], "no gradients")


def test_a_host_under_another_key_takes_no_rows_of_single_nodes(secret_key):
    with joined(0, hosts=1, key=PaillierKeySide(secret_key)) as parties:
        start(parties.joint, 6)
        refused(parties, [ask(parties.joint.training)], "once a tree")
        refused(parties, [piece(parties.joint.training)], "no sums were asked for")


def test_a_crafted_ciphertext_shows_as_many_numbers_as_there_are_bins_and_no_more_than_under_paillier():
    """A plaintext that fills all coefficients mixes bins and rows; what comes back is still one number mod t a bin."""
    with joined(0, hosts=1, key=key(), gaps=0.0) as parties:
        grower = start(parties.joint, 6)
        training = parties.joint.training
        everything = np.random.default_rng(0).integers(0, 1 << 20, key().bits)
        crafted = key()._side.encrypt_coefficients([everything])
        seen = []
        for _ in range(2):
            parties.joint.conversation.send("host0", ask(training))
            parties.joint.conversation.send("host0", NodePairs("c", crafted))
            reply = parties.joint.conversation.expect(BinSums)[1].sums[0][0]
            seen.append(key()._side.decrypt_coefficients(reply, np.arange(key().bits)))
        bins = sum(count + 1 for count in grower._sums._host_bins["host0"].bins)
    same = [i for i, (a, b) in enumerate(zip(*seen, strict=True)) if a == b]
    assert same == [j * 64 + 63 for j in range(bins)]
    for rows in (60, 18_000, 60_000, MAX_ROWS):  # a pair under Paillier is no shorter than two numbers modulo t
        assert sum_parameters(rows).plain_modulus.bit_length() <= half_slot(rows)


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: BinSums("c", (1,), answer.nodes, answer.sums),
        lambda answer: BinSums("c", answer.trees, (9,), answer.sums),
        lambda answer: BinSums("c", answer.trees, answer.nodes, ((),)),
        lambda answer: BinSums("c", answer.trees, answer.nodes, ((answer.sums[0][0][:-1],),)),
        lambda answer: BinSums("c", answer.trees, answer.nodes, ((answer.sums[0][0] * 2,),)),
        lambda answer: BinSums("c", answer.trees, answer.nodes, ((bytes(len(answer.sums[0][0])),),)),
        lambda answer: BinSums("c", answer.trees, answer.nodes, ((b"\xff" * len(answer.sums[0][0]),),)),
    ],
)
def test_the_guest_refuses_a_reply_to_another_question_or_of_no_form(change, monkeypatch):
    with joined(0, hosts=1, key=key()) as parties:
        host = parties.served.hosts["host0"]
        answer_of = host.answer

        def answer(sender, message):
            for receiver, given in answer_of(sender, message):
                yield receiver, change(given) if isinstance(given, BinSums) else given

        monkeypatch.setattr(host, "answer", answer)
        grower = start(parties.joint, 6)
        grower.send_pairs([pairs(60)])
        with pytest.raises(SecurityError):
            grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 2)


def test_a_tree_of_the_guest_alone_sends_nothing_at_all():
    with joined(6, key=key()) as parties:
        grower = start(parties.joint, 6)
        parties.sent.clear()
        grower.send_pairs([pairs(60)], guest_only=True)
        grower.grow([TreeJob(0, CRITERION, parties.joint.training, guest_only=True)], 3)
        assert not [kind for _, to, kind, _ in parties.sent if to != GUEST]
