"""A model's record states what the sets that Hosts were told of tell about labels, and older records read as not measured."""

import json
from dataclasses import asdict

import pytest
from release_rule import EVERY_SCORE

from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import read_record
from backend.services import Glassleaf
from backend.services.training import TrainingRequest

SMALL = {"trees": 3, "cipher": "none"}


@pytest.mark.slow
def test_a_bound_shows_in_the_record_and_records_of_older_versions_have_no_figure(demo_home):
    with Glassleaf(demo_home(), key_floor=512, pools=False) as glassleaf:
        told = {}
        for bound in (0.0, 0.02):
            asked = TrainingRequest("demo", SecureBoostParameters(**SMALL, label_bound=bound), most_named=EVERY_SCORE)
            record = glassleaf.training.start(asked).get()
            told[bound] = glassleaf.models.get(record.id).label_bits
            assert told[bound] == record.label_bits
    assert told[0.02] <= 0.02 and told[0.0] > 0.2
    older = json.loads(json.dumps(asdict(record)))
    del older["label_bits"]
    assert read_record(older).label_bits is None
