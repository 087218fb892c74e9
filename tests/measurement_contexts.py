"""A trained demo federation behind a door, and every column in one hand, for tests of what is measured on it."""

import numpy as np
import pandas as pd

from backend.crypto.workers import Workers
from backend.data.demo import write_demo
from backend.services import Glassleaf, SecureBoostParameters, TrainingRequest
from backend.services.measurement import Ground as Measured

KEY = 512
PARAMETERS = SecureBoostParameters(trees=8, depth=3, learning_rate=0.4, cipher="none")


class Ground:
    """A door with a trained demo, what measurements start from, and all columns in one hand."""

    def __init__(self, folder, change=lambda demo: None):
        federation = write_demo(folder / "demo", rows=1500)
        change(folder / "demo")
        self.door = Glassleaf(folder / "home", key_floor=KEY, pools=False)
        self.door.add_federation(folder / "demo")
        self.record = self.door.start_training(TrainingRequest("demo", PARAMETERS)).get()
        self.room = self.door._catalogue.room("demo")
        self.offered = self.door.guest_model(self.record.id).dictionary
        self.measured = Measured(
            self.room,
            self.record,
            self.door.guest_model(self.record.id),
            self.door._compiled_half(self.record),
            self.door._test_ids(self.record),
            Workers(),
        )
        self.people = None
        for party in federation.parties:
            own = pd.read_csv(folder / "demo" / party.file, dtype={party.id: str}).set_index(party.id)
            self.people = own if self.people is None else self.people.join(own, how="left")

    def probabilities(self):
        """Of every test record, by id, from a scoring of the door's own."""
        ids, half = self.measured.test_ids, self.measured.compiled
        rows = np.array([self.room.table.row_of[i] for i in ids])
        talk = self.room.converse(self.record.hosts, counted=False)
        try:
            key = self.room.key("none", 0, half.guest)
            scored = self.room.guest.score(self.record.id, half.guest, self.room.table.take(rows), key, talk)
        finally:
            talk.close()
        predicted = half.outputs.predict(half.guest.margins(scored.units))[:, 0]
        return pd.Series(predicted, index=ids)

    def margins(self, people):
        """Every tree walked with all parties' rules and columns in one place."""
        model, rules = self.measured.model, dict(self.measured.model.rules)
        for host in self.room._simulated._hosts.values():
            rules |= host._halves.get(self.record.id).model.rules
        total = np.full(len(people), model.base_scores[0])
        for t, tree in enumerate(model.trees):
            nodes = np.zeros(len(people), dtype=int)
            for i, split in tree.splits.items():  # parents come before their children
                column = people[split.feature].to_numpy()
                if rules[t, i].threshold is None:
                    column = np.array([None if pd.isna(v) else code_of(v) for v in column], dtype=object)
                nodes = np.where(nodes == i, np.where(rules[t, i].goes_left(column), split.left, split.right), nodes)
            total += np.array([tree.nodes[i].weight for i in nodes])
        return total


def code_of(value):
    """A code as its party wrote it; joining tables may have made a number of it."""
    return str(int(value)) if isinstance(value, float) else str(value)
