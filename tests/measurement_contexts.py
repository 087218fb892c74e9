"""A trained demo federation in a home, and every column in one hand, for tests of what is measured on it."""

import numpy as np
import pandas as pd
from confirmed_reasons import margins
from homes import copied_home, made_once
from inside import runtime_of, workspace_of
from lines import decide_at
from release_rule import EVERY_SCORE

from backend.crypto.workers import Workers
from backend.data.demo import write_demo
from backend.data.federation import load_federation
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.measurement import MeasurementContext as Measured
from backend.services.training import TrainingRequest
from backend.store.accountant import Limits

KEY = 512
PARAMETERS = SecureBoostParameters(trees=8, depth=3, learning_rate=0.4, cipher="none")


def train_a_demo(home, change=lambda demo: None):
    write_demo(home / "demo", rows=1500)
    change(home / "demo")
    with Glassleaf(home, key_floor=KEY, pools=False) as glassleaf:
        glassleaf.federations.add(home / "demo")
        glassleaf.training.start(TrainingRequest("demo", PARAMETERS, most_named=EVERY_SCORE)).get()
        decide_at(glassleaf, 0.5)


class TrainedDemo:
    """A home with a trained demo, what measurements start from, and all columns in one hand."""

    def __init__(self, folder, change=None):
        home = folder / "home"
        if change is None:
            copied_home(made_once(folder.parent, "trained-demo", train_a_demo), home)
        else:
            train_a_demo(home, change)
        federation = load_federation(home / "demo")
        self.glassleaf = Glassleaf(home, key_floor=KEY, pools=False)
        self.record = self.glassleaf.models.get("latest")
        self.runtime = runtime_of(self.glassleaf)
        for host in self.runtime._simulated.hosts.values():
            host.accountant.limits = Limits(0, synthetic=True)  # nothing is counted, but where a test is about that
        self.offered = self.glassleaf.models.guest_model(self.record.id).dictionary
        self.measured = Measured(
            self.runtime,
            self.record,
            self.glassleaf.models.guest_model(self.record.id),
            self.glassleaf.models.compiled(self.record),
            self.glassleaf.models.test_ids(self.record),
            self.glassleaf.models.part_of(self.record),
            Workers(),
            workspace_of(self.glassleaf).measurements("demo"),
        )
        self.people = None
        for party in federation.parties:
            own = pd.read_csv(home / "demo" / party.file, dtype={party.id: str}).set_index(party.id)
            self.people = own if self.people is None else self.people.join(own, how="left")

    def probabilities(self, part="test"):
        """Of every record of a part, by id, from a scoring of its own."""
        parts, partial_model = self.glassleaf.models.part_of(self.record), self.measured.compiled
        ids = [i for i, own in parts.items() if own == part]
        rows = np.array([self.runtime.table.row_of[i] for i in ids])
        session = self.runtime.open_session(self.record.hosts, counted=False)
        try:
            key = self.runtime.keys.scoring("none", 0, partial_model.guest)
            scored = self.runtime.guest.score(
                self.record.id, partial_model.guest, self.runtime.table.take(rows), key, session
            )
        finally:
            session.close()
        predicted = partial_model.outputs.predict(partial_model.guest.margins(scored.units))[:, 0]
        return pd.Series(predicted, index=ids)

    def margins(self, people):
        """Every tree walked with all parties' rules and columns in one place."""
        model, rules = self.measured.model, dict(self.measured.model.rules)
        for host in self.runtime._simulated.hosts.values():
            rules |= host._partial_models.get(self.record.id).model.rules
        return margins(model, rules, people)
