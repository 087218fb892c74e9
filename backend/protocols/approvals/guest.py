"""The Guest asks before it trains or asks about a model, and takes down what it is allowed. Knows no reason but those it is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from backend.crypto.signing import is_signed
from backend.data.federation import Federation
from backend.errors import ApprovalPending, HostRefused, SecurityError
from backend.protocols.approvals.messages import APPROVAL, TRAINING, ApprovalGranted, AskApproval, AskTraining
from backend.protocols.training.algorithms import Parameters, rounds
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.transport.channel import Session


@dataclass(frozen=True)
class Allowed:
    """What a Host's operator allows the Guest, as the Guest's audit log keeps it.

    Attributes
    ----------
    number : int
        At the Host.
    until : str
        Last UTC day, ISO 8601.
    per_day : int
        People, or trainings.
    """

    host: str
    guest: str
    number: int
    purpose: str
    name: str
    until: str
    per_day: int
    decided: str
    public_key: str
    signature: str


def training_terms(
    session: Session, parameters: Parameters, federation: Federation, exclude: Collection[str]
) -> dict[str, AskTraining]:
    """Host → what it is asked to allow; of features that are left out it hears its own."""
    values, ranks = parameters.as_dict(), isinstance(parameters, OpBoostParameters)
    trees = rounds(parameters) * max(1, len(federation.label.classes))  # at most: a tree a round and class
    terms: dict[str, AskTraining] = {}
    for host in session.hosts:
        left_out = tuple(f.name for f in federation.party(host).features if f.name in exclude)
        noise = float(values["epsilon"]) if ranks else 0.0
        sides = bool(values.get("shuffle_sides", False))
        how = parameters.ALGORITHM, trees, int(values["depth"]), 0 if ranks else int(values["bins"])
        terms[host] = AskTraining(session.name, *how, left_out, sides, noise)
    return terms


def ask(session: Session, guest: str, asked: Mapping[str, AskTraining | AskApproval]) -> tuple[Allowed, ...]:
    """Ask Hosts' operators, each what stands beside it; returns what those that decide allow.

    Every answer is taken before one that is no grant ends the conversation: what is left behind one side's receipt would state, and not
    the other's.

    Raises
    ------
    ApprovalPending
        One of them has not decided yet; ask again later.
    HostRefused
        One has denied or withdrawn it.
    SecurityError
        A Host answers about something else, or its signature does not hold.
    """
    for host, question in asked.items():
        session.send(host, question)
    answers, against, hosts = dict[str, ApprovalGranted](), list[HostRefused](), list(asked)
    while len(answers) + len(against) < len(asked):
        try:
            host, answer = session.expect(ApprovalGranted)
        except HostRefused as error:
            against.append(error)
            continue
        if host in answers or host not in asked:
            raise SecurityError(f"{host} answered out of turn; the exchange was stopped.")
        answers[host] = answer
    if against:  # first what no waiting changes, then the first Host that is waited for
        raise min(against, key=lambda one: hosts.index(one.host) if isinstance(one, ApprovalPending) else -1)
    return tuple(
        _checked(host, guest, question, answers[host]) for host, question in asked.items() if answers[host].number
    )


def _checked(host: str, guest: str, asked: AskTraining | AskApproval, answer: ApprovalGranted) -> Allowed:
    if isinstance(asked, AskTraining):
        purpose, name = TRAINING, asked.algorithm
    else:
        purpose, name = asked.purpose, asked.model_id
    if (answer.purpose, answer.name) != (purpose, name):
        raise SecurityError(f"{host} allowed something else than what was asked for; the exchange was stopped.")
    terms = {name: value for name, value in asdict(answer).items() if name != "conversation"}
    allowed = Allowed(host, guest, **terms)
    if not is_signed_approval(allowed):
        raise SecurityError(f"{host}'s approval does not carry its signature; the exchange was stopped.")
    return allowed


def is_signed_approval(allowed: Allowed) -> bool:
    """Whether the Host signed it with the key that is in it."""
    who = allowed.host, allowed.guest, allowed.number, allowed.purpose, allowed.name
    signed = *who, allowed.until, allowed.per_day, allowed.decided
    return is_signed(allowed.public_key, allowed.signature, APPROVAL, *signed)
