"""A simulated Host's side of the protocols that Fed-EINI is compared with: they disclose the branches that a record takes.

Who sets up a simulation gives :data:`WALK_KINDS` to its Hosts. A Host at its own company has neither the answers nor the messages.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from backend.errors import SecurityError
from backend.protocols.host_state import ServedModel, members
from backend.protocols.terms.approvals import model_request
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply
from backend.protocols.terms.records import Opened, Rows
from backend.research.baselines.host_answers import HostPaths, HostWalk
from backend.research.baselines.messages import AskCandidates, AskWalk, CandidateLeaves, PassOn, StartWalk
from backend.store.accountant import SCORE, Question

COMPARISONS = "comparisons"  # what they are for
_paths_of: WeakKeyDictionary[ServedModel, HostPaths] = WeakKeyDictionary()  # compiled once a model


def read_people(request: Asked) -> Ask:
    """Read the people that walk the trees in the clear; all that a model can reveal about a person is booked.

    Raises
    ------
    SecurityError
        If another party than the model's Guest asks.
    """
    message: StartWalk | AskCandidates = request.message
    served = request.models.get(message.model_id)
    if request.sender != served.model.guest:
        raise SecurityError("scored_by_other_than_guest")
    has_record = request.roster.held(message.ids)
    capacity = served.model.capacity
    people = members(message.ids, has_record)
    question = Question(request.session.guest, "", SCORE, served.structure, people, capacity, capacity)
    return Ask(
        opens={"people": Rows(ids=message.ids, columns=served.features)},
        approval=model_request(request, served, COMPARISONS, len(message.ids)),
        amount=len(message.ids),
        charges=[Charge(question, all_or_none=True)],
        has_record=has_record,
        subject=served,
    )


def read_walk(request: Asked) -> Ask:
    """Read the samples' nodes; raise SecurityError if no walk was begun."""
    return Ask(subject=request.session.need(HostWalk, "walk_not_begun"))


def answer_start(permit: Permit, opened: Opened, message: StartWalk, noise: Noise) -> Reply:
    """Begin a walk."""
    served: ServedModel = permit.ask.subject
    people = opened["people"]
    permit.session.keep(HostWalk, _paths(served).start(people.columns, people.has_record))
    yield permit.guest, permit.held_records()


def answer_walk(permit: Permit, opened: Opened, message: AskWalk, noise: Noise) -> Reply:
    """Say where samples go from here."""
    walk: HostWalk = permit.ask.subject
    yield permit.guest, walk.walked(message)


def answer_passed(permit: Permit, opened: Opened, message: PassOn, noise: Noise) -> Reply:
    """Walk on with samples that another party hands over, and hand them to their next owners."""
    walk: HostWalk = permit.ask.subject
    yield from walk.take(permit.request.sender, message)


def answer_candidates(permit: Permit, opened: Opened, message: AskCandidates, noise: Noise) -> Reply:
    """Say which leaves this Host's splits leave open."""
    served: ServedModel = permit.ask.subject
    people = opened["people"]
    leaves = _paths(served).candidates(people.columns, people.has_record)
    yield permit.guest, CandidateLeaves(message.conversation, permit.held_records().held, leaves)


def _paths(served: ServedModel) -> HostPaths:
    """Return a Host's partial model as arrays; they are computed when the model is first asked about."""
    paths = _paths_of.get(served)
    if paths is None:
        paths = HostPaths(served.model)
        _paths_of[served] = paths
    return paths


WALK_KINDS = {
    StartWalk: Kind(read_people, answer_start, begins=True),
    AskWalk: Kind(read_walk, answer_walk),
    PassOn: Kind(read_walk, answer_passed, passed_on=True),
    AskCandidates: Kind(read_people, answer_candidates, begins=True),
}
