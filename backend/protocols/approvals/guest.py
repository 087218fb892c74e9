"""The Guest asks before it trains or asks about a model, and takes down what it is allowed. Knows no reason but those it is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from backend.crypto.signing import is_signed
from backend.data.federation import Federation
from backend.errors import ApprovalPending, HostRefused, SecurityError
from backend.protocols.approvals.messages import APPROVAL, TRAINING, ApprovalGranted, AskApproval, AskTraining
from backend.protocols.training.algorithms import Parameters, rounds
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.transport.channel import Session


def training_terms(
    session: Session,
    parameters: Parameters,
    federation: Federation,
    exclude: Collection[str],
    draw: str = "",
    most_named: float = 0.05,
) -> dict[str, AskTraining]:
    """Return the terms that each Host is asked to allow; of the excluded features, each Host sees its own.

    Parameters
    ----------
    draw : str
        The name of the way that training rows are chosen (:func:`backend.protocols.training.guest.draw_name`).
    most_named : float
        Share of scores that may fit one path only, for operators to read.
    """
    values = parameters.as_dict()
    trees = rounds(parameters) * max(1, len(federation.label.classes))  # at most: a tree a round and class
    terms: dict[str, AskTraining] = {}
    for host in session.hosts:
        left_out = tuple(f.name for f in federation.party(host).features if f.name in exclude)
        question = AskTraining(
            conversation=session.name,
            algorithm=parameters.ALGORITHM,
            trees=trees,
            depth=int(values["depth"]),
            bins=int(values.get("bins", 0)),
            exclude=left_out,
            hide_order=bool(values.get("shuffle_sides", False)),
            draw=draw,
            most_named=most_named,
        )
        if isinstance(parameters, OpBoostParameters):
            noise = parameters.noise
            question = replace(
                question,
                map=noise.map,
                mechanism=noise.mechanism,
                epsilon=float(noise.epsilon),
                theta=noise.theta,
                alpha=float(noise.alpha),
                levels=noise.levels,
            )
        terms[host] = question
    return terms


def ask(
    session: Session, guest: str, questions: Mapping[str, AskTraining | AskApproval]
) -> tuple[ApprovalGranted, ...]:
    """Ask Hosts' operators; return the grants of those that decide.

    All answers are taken before an answer that is not a grant ends the conversation: an answer left behind would be in one side's receipt
    and not in the other's.

    Parameters
    ----------
    questions : mapping of str to AskTraining or AskApproval
        Host → its question.

    Raises
    ------
    ApprovalPending
        If an operator has not decided yet; ask again later.
    HostRefused
        If an operator has denied or withdrawn it.
    SecurityError
        If a Host answers another question, or its signature is not valid.
    """
    for host, question in questions.items():
        session.send(host, question)
    answers: dict[str, ApprovalGranted] = {}
    refusals: list[HostRefused] = []
    while len(answers) + len(refusals) < len(questions):
        try:
            host, answer = session.expect(ApprovalGranted)
        except HostRefused as error:
            refusals.append(error)
            continue
        if host in answers or host not in questions:
            raise SecurityError("answered_out_of_turn", host=host)
        answers[host] = answer
    if refusals:
        raise _first(refusals, list(questions))
    granted = []
    for host, question in questions.items():
        if answers[host].number:
            _check(host, guest, question, answers[host])
            granted.append(answers[host])
    return tuple(granted)


def _first(refusals: Sequence[HostRefused], hosts: Sequence[str]) -> HostRefused:
    """Return a refusal that waiting does not change, or else that of the first Host that is waited for."""
    for refusal in refusals:
        if not isinstance(refusal, ApprovalPending):
            return refusal
    return min(refusals, key=lambda refusal: hosts.index(str(refusal.values["host"])))


def _check(host: str, guest: str, question: AskTraining | AskApproval, answer: ApprovalGranted) -> None:
    """Raise SecurityError if a grant is not for the question, or not signed by its Host."""
    if isinstance(question, AskTraining):
        purpose = TRAINING
        name = question.algorithm
    else:
        purpose = question.purpose
        name = question.model_id
    if (answer.host, answer.guest, answer.purpose, answer.name) != (host, guest, purpose, name):
        raise SecurityError("allowed_something_else", host=host)
    if not is_signed_approval(answer):
        raise SecurityError("approval_not_signed", host=host)


def is_signed_approval(granted: ApprovalGranted) -> bool:
    """Return whether the Host signed a grant with the key that is in it."""
    return is_signed(granted.public_key, granted.signature, APPROVAL, *granted.signed_fields)
