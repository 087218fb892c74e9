"""What a party states of its conversations, and what it has booked in those of which it could not state anything."""

from backend.store.accountant import Accountant, Limits, Question
from backend.store.database import Database
from backend.store.receipts import Receipt, Receipts


def test_a_conversation_that_was_answered_and_has_no_receipt_is_named_with_its_questions():
    database = Database()
    accountant = Accountant(database, Limits())
    for number, conversation in enumerate(("ended", "killed", "killed")):
        question = Question("bank", f"r{number}", "score", "s", (f"A{number}",), conversation=conversation)
        accountant.count(question)
    receipts = Receipts(database)
    receipts.keep(Receipt("ended", "telecom", "bank", ()))
    receipts.keep(Receipt("killed", "bank", "telecom", ()))
    assert receipts.booked("telecom") == {"killed": 2}
    database.close()
