"""Twenty declined people of the credit cards: every reason has a side that plain arithmetic confirms, each notice at most four lines."""

import numpy as np
import pandas as pd
import pytest
from confirmed_reasons import check_reasons
from inside import workspace_of
from lines import decide_at
from measurement_contexts import KEY
from release_rule import EVERY_SCORE

from backend.data.credit_card import split_credit_card
from backend.data.table import SampleSheet
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_host

pytestmark = pytest.mark.slow

ROWS = 6000  # of 30,000
WITHOUT = ("SEX", "MARRIAGE", "AGE")  # else they stop some notices


def sheet_of(glassleaf, federation, ids):
    table = workspace_of(glassleaf).runtime(federation).table
    own = table.take(np.array([table.row_of[one] for one in ids]))
    return SampleSheet(tuple(ids), own, hosts={}, problems={}, notes=())


def test_every_reason_of_twenty_declined_people_has_a_side_that_plain_arithmetic_confirms(credit_card_csv, tmp_path):
    few = tmp_path / "few.csv"
    with credit_card_csv.open() as table:
        few.write_text("".join(line for line, _ in zip(table, range(ROWS + 1), strict=False)))
    split_credit_card(few, tmp_path / "cards")
    people = pd.read_csv(few, dtype={"ID": str}).set_index("ID")
    with Glassleaf(tmp_path / "home", pools=False, key_floor=KEY) as glassleaf:
        name = glassleaf.federations.add(tmp_path / "cards").name
        parameters = SecureBoostParameters(trees=40, depth=4, cipher="none")
        record = glassleaf.training.start(
            TrainingRequest(name, parameters, exclude=WITHOUT, most_named=EVERY_SCORE)
        ).get()
        decide_at(glassleaf, 0.4, record.id)
        model = glassleaf.models.guest_model(record.id)
        rules = dict(model.rules)
        for host in record.hosts:
            store = PartyStore(Database(tmp_path / "home" / "parties" / name / host))
            rules |= load_host(store.artefact(record.id)).rules
        part_of = glassleaf.models.part_of(record)
        training = people.loc[[one for one, part in part_of.items() if part == "training"]]
        tested = [one for one, part in part_of.items() if part == "test"][:400]
        batch = glassleaf.scoring.start(
            ScoringRequest(record.id, sheet_of(glassleaf, name, tested), None, "none", KEY)
        ).get()
        declined = [score.id for score in batch.scores if score.decision == "decline"][:20]
        assert len(declined) == 20
        found = glassleaf.reasons.start(ReasonsRequest(record.id, sheet_of(glassleaf, name, declined))).get()
        lines = 0
        for person in found.people:
            sided, sideless = check_reasons(model, rules, training, people.loc[[person.score.id]], person)
            assert sided + sideless <= 4
            lines += sided
            for language in ("en", "zh"):
                notice = glassleaf.reasons.notice(found, person.score.id, language, "txt").decode()
                assert notice.count("•") == sided + sideless
        assert lines >= 40  # two a person, on average, at least
