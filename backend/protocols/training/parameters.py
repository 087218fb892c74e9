"""The parameters of a training run, and what it reports after each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher, preferred
from backend.errors import ParameterError
from backend.protocols.alignment.outcome import METHODS
from backend.remark import Remark

CIPHERS: tuple[Cipher, ...] = ("rlwe", "paillier", "paillier-short", "none")  # those that can train
USUAL_CIPHER: Cipher = preferred("rlwe")  # Paillier where TenSEAL has no wheel (docs/decisions/training.md)
KEY_SIZES = (2048, 3072, 4096)
PARTS = ("training", "validation", "test")
SHARES = (0.6, 0.2, 0.2)  # Fed-EINI §V-A
SCORE_BITS = (4, 24)
BINS = (2, 256)  # per feature
MIN_NODE = (1, 1 << 22)  # people in a node
ClassWeight = Literal["none", "balanced"]
ForestAggregation = Literal["mean", "median"]

Ranges = dict[str, tuple[float, float]]  # field → lowest and highest value
SIGNS = {"+1": 1, "1": 1, "-1": -1, "0": 0}  # of a monotone constraint, as XGBoost writes them

# field → its values, for every algorithm that has the field
CHOICES: Mapping[str, tuple[object, ...]] = {
    "cipher": CIPHERS,
    "alignment": METHODS,
    "key_bits": KEY_SIZES,
    "class_weight": get_args(ClassWeight),
    "criterion": ("gini", "entropy"),
    "aggregation": get_args(ForestAggregation),
}
SEED = {"seed": (0.0, 2.0**31 - 1)}
BOOSTING: Ranges = SEED | {  # of every boosting algorithm
    "trees": (1, 1000),
    "depth": (1, 8),
    "learning_rate": (0.001, 1.0),
    "reg_lambda": (0.0, 1000.0),
    "min_child_weight": (0.0, 10000.0),
    "early_stopping": (0, 1000),
    "score_bits": SCORE_BITS,
}


class CheckedParameters:
    """Base of every algorithm's parameters, each a frozen dataclass; refuses values out of range with a ParameterError."""

    ALGORITHM: ClassVar[str]
    RANGES: ClassVar[Ranges]

    def __post_init__(self) -> None:
        problems = self.problems()
        if problems:
            raise ParameterError(problems=problems)

    def problems(self) -> list[Remark]:
        """Return a remark for every parameter that is out of range or not a choice, and for constraints that cannot be read."""
        values = self.as_dict()
        problems = out_of_range(values, self.RANGES)
        for name, choices in CHOICES.items():
            if name in values and values[name] not in choices:
                problems.append(not_a_choice(name, values[name], choices))
        try:
            read_constraints(values.get("constraints", ""))
        except ParameterError as error:
            problems += error.remarks
        return problems

    def as_dict(self) -> dict[str, Any]:
        """Field name → value, for the registry."""
        # A base class without fields of its own: each algorithm's parameters are the dataclass.
        return asdict(self)  # type: ignore[call-overload, no-any-return]


def out_of_range(values: Mapping[str, Any], ranges: Ranges) -> list[Remark]:
    """Return a remark for every value that is out of its range."""
    problems = []
    for name, (low, high) in ranges.items():
        value = values[name]
        if not low <= value <= high:
            problems.append(
                Remark("parameter_out_of_range", {"parameter": name, "value": value, "low": low, "high": high})
            )
    return problems


def not_a_choice(name: str, value: object, choices: Sequence[object]) -> Remark:
    """Return the remark that a parameter's value is not one of its choices."""
    choices = tuple(map(str, choices))
    return Remark("parameter_not_a_choice", {"parameter": name, "value": str(value), "choices": choices})


def read_constraints(text: str) -> dict[str, int]:
    """Read ``limit=-1, delay=+1``: by feature +1 (predictions never fall as it rises), -1 (they never rise) or 0 (free).

    Raises ParameterError if an entry is not a feature with a sign, or a feature is named twice.
    """
    signs: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, sign = (part.strip() for part in entry.rpartition("="))
        if not name or sign not in SIGNS:
            raise ParameterError("constraint_unreadable", entry=entry)
        if name in signs:
            raise ParameterError("constraint_twice", feature=name)
        signs[name] = SIGNS[sign]
    return signs


def write_constraints(directions: Mapping[str, int]) -> str:
    """The text that :func:`read_constraints` reads; features in the order of their names, so that equal constraints are equal texts."""
    return ", ".join(f"{name}={sign:+d}" if sign else f"{name}=0" for name, sign in sorted(directions.items()))


@dataclass(frozen=True)
class SecureBoostParameters(CheckedParameters):
    """Parameters of a SecureBoost model, XGBoost's names.

    Attributes
    ----------
    trees, depth, learning_rate, bins, reg_lambda, gamma, min_child_weight
        As in XGBoost; ``gamma`` enters the gain as in Fed-EINI eq. 1, so XGBoost's ``gamma`` is twice ours. ``trees`` counts rounds:
        one tree each, or one tree a class.
    seed : int
        Draws the 60/20/20 split and the samples of rows and columns.
    early_stopping : int
        Stop after this many rounds without a smaller validation loss (log-loss, or RMSE) and keep the best; 0 = off.
    cipher : {"rlwe", "paillier", "paillier-short", "none"}
        ``rlwe`` sums coefficients of polynomials (docs/decisions/training.md) and is the default if TenSEAL has a wheel.
        ``paillier-short`` has shorter obfuscators and one more assumption (docs/decisions/encryption.md). ``none`` sends plaintext
        gradients to simulated Hosts, for experiments only.
    key_bits : {2048, 3072, 4096}
        Paillier modulus.
    alignment : {"dh", "bloom"}
        How ids are compared without showing them (docs/alignment.md).
    score_bits : int
        Leaf weights are scored as multiples of 2**-score_bits (of a logit, or of a numeric label's unit); fewer bits disclose less
        about the path behind a score.
    complete : bool
        The first round is grown from the Guest's features alone (docs/attacks.md T4).
    label_bound : float
        Bits that a set of records a Host is told of may tell about labels at most, and bits a training record that all choices of splits
        may tell one (:mod:`backend.protocols.training.label_bound`); nodes beyond it are grown from the Guest's features alone. 0 = off.
    min_node : int
        Fewest people in a node, and in its sibling, of which Hosts are told; smaller ones are grown from the Guest's features alone. Each
        Host may insist on more (:mod:`backend.protocols.training.growth_record`).
    row_sample, column_sample : float
        Share of the training rows, and of all parties' features, that a round uses; drawn again each round.
    goss_top, goss_other : float
        Gradient-based one-side sampling (Ke et al. 2017, Alg. 2): the share of rows with the largest gradients that is kept, and the
        share drawn from the others, which then weigh (1 - goss_top) / goss_other; both 0 = off. Hosts see which rows a round uses, and
        large gradients belong to badly predicted labels: this leaks some information about labels.
    monotone : bool
        Predictions never fall (rise) where the feature dictionary expects a higher value to mean more (less).
    constraints : str
        XGBoost's ``monotone_constraints`` by feature, of any party: ``limit=-1, delay=+1``; 0 frees a feature from `monotone`
        (:func:`read_constraints`).
    class_weight : {"none", "balanced"}
        ``balanced``: each class has the same total weight in training.
    weights : str
        Column of the Guest's file with each record's weight, XGBoost's and scikit-learn's ``sample_weight``; empty = all count the same.
    """

    ALGORITHM: ClassVar[str] = "secureboost"
    RANGES: ClassVar[Ranges] = BOOSTING | {
        "bins": BINS,
        "gamma": (0.0, 1000.0),
        "row_sample": (0.1, 1.0),
        "column_sample": (0.1, 1.0),
        "goss_top": (0.0, 0.9),
        "goss_other": (0.0, 0.9),
        "label_bound": (0.0, 4.0),
        "min_node": MIN_NODE,
    }

    trees: int = 20
    depth: int = 3
    learning_rate: float = 0.3
    bins: int = 32
    reg_lambda: float = 1.0
    gamma: float = 0.0
    min_child_weight: float = 1.0
    seed: int = 7
    early_stopping: int = 0
    cipher: Cipher = USUAL_CIPHER
    key_bits: int = KEY_BITS
    score_bits: int = 10
    alignment: str = "dh"
    complete: bool = False
    label_bound: float = 0.0
    min_node: int = 1
    row_sample: float = 1.0
    column_sample: float = 1.0
    goss_top: float = 0.0
    goss_other: float = 0.0
    monotone: bool = False
    constraints: str = ""
    class_weight: ClassWeight = "none"
    weights: str = ""

    def problems(self) -> list[Remark]:
        """Return what is wrong with ranges, choices and combinations."""
        problems = super().problems()
        if self.goss_top or self.goss_other:
            if not (self.goss_top and self.goss_other) or self.goss_top + self.goss_other > 1:
                problems.append(Remark("goss_shares", {"top": self.goss_top, "other": self.goss_other}))
            if self.row_sample != 1:
                problems.append(Remark("goss_and_row_sample"))
        return problems


@dataclass(frozen=True)
class TreeProgress:
    """Losses and AUCs of the ensemble after a round.

    Attributes
    ----------
    tree, trees : int
        Rounds that are done, and that are planned.
    log_loss_training, log_loss_validation : float
        The RMSE, in the label's unit, where the label is a number.
    auc_training, auc_validation : float
        NaN if the label is a number.
    seconds : float
        Of the round, by the clock.
    """

    tree: int
    trees: int
    log_loss_training: float
    log_loss_validation: float
    auc_training: float
    auc_validation: float
    seconds: float
