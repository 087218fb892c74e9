"""Add a kind of question to a Host: of how many of these people does it hold a record?

A rule reads the message and says what it costs and which rows it needs. The Host's gate counts it and opens those rows. A handler answers
from them. Run it from a clone's folder: ``.venv/bin/python -m examples.host_handler``.
"""

import math

import numpy as np

from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host import HostParty
from backend.protocols.host_state import digest_of
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply
from backend.protocols.terms.records import Opened, Rows
from backend.protocols.transport.message import GUEST, HOST, PEOPLE, Message
from backend.store.accountant import GROUPS, Accountant, Question
from backend.store.database import Database
from backend.store.party_store import memory_store

FEWEST = 50  # people of a question: a count of fewer would say too much about each


class AskHeldCount(Message, readable_by=HOST, max_bytes=PEOPLE):
    """Guest → Host: of how many of these people do you hold a record?"""

    HOLDS = "ids of people"
    ids: tuple[str, ...]


class HeldCount(Message, readable_by=GUEST):
    """Host → Guest: of so many."""

    HOLDS = "of how many people the Host holds a record"
    count: int


def read_held_count(asked: Asked) -> Ask:
    """Read the question; nothing of anybody is known here."""
    people = asked.message.ids
    if len(set(people)) < FEWEST:
        raise SecurityError("too_few_people_counted", people=len(set(people)), least=FEWEST)
    bits = math.log2(len(people) + 1)  # a count of n people is one of n + 1 numbers
    name = digest_of("held count", people)
    question = Question(asked.session.guest, name, GROUPS, digest_of("held count"), people, bits, bits)
    return Ask(
        opens={"people": Rows(ids=people, columns=())}, charges=[Charge(question, all_or_none=True, digest=name)]
    )


def answer_held_count(permit: Permit, opened: Opened, message: AskHeldCount, noise: Noise) -> Reply:
    """Answer from the rows that the gate opened."""
    yield permit.guest, HeldCount(message.conversation, int(opened["people"].has_record.sum()))


def main() -> None:
    """Ask a Host with 80 records about 100 people, then about too few."""
    ids = tuple(f"A{number:03}" for number in range(80))
    table = PartyTable("shop", ids, {"orders": np.arange(80.0)})
    features = [Feature(name="orders", meaning="Orders of the last year")]
    kinds: dict[type[Message], Kind] = {AskHeldCount: Kind(read_held_count, answer_held_count, begins=True)}
    account = Accountant(Database())  # in memory
    host = HostParty("shop", table, features, memory_store(), kinds=kinds, accountant=account)

    people = tuple(f"A{number:03}" for number in range(100))
    for receiver, reply in host.answer("bank", AskHeldCount("first", people)):
        print(f"to {receiver}: {reply}")
    print(f"booked about A000: {account.given_away(['A000'])['A000']:.2f} bits")

    try:
        list(host.answer("bank", AskHeldCount("second", people[:10])))
    except SecurityError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
