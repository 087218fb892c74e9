"""How long the parts of a scoring take beside each other, so that its progress is even. Relative: only their ratios matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from backend.crypto.costs import costs_of
from backend.protocols.scoring.fed_eini import host_plan
from backend.trees.folding import Folding

STARTED = 1.5  # seconds until worker processes encrypt
READ = 0.1  # of the time to make a table that it takes to read it
TOGETHER = 2  # processes that make obfuscators, while a table is made by one
ENCRYPT, DECRYPT = "encrypt", "decrypt"  # beside the Hosts, who mask


def refreshed(folding: Folding) -> dict[str, int]:
    """Host → ciphertexts of a person that it refreshes, each with an obfuscator of its own; the Guest takes one an entry."""
    plans = {step.host: host_plan(folding, index) for index, step in enumerate(folding.steps)}
    return {host: plan.n_out - sum(plan.untouched) for host, plan in plans.items()}


@dataclass(frozen=True)
class ScoringEffort:
    """What scoring people takes, by part: encrypting, each Host's masking by its name, and decrypting.

    Attributes
    ----------
    folding : Folding
        Who computes what on a person's entries.
    bits : int
        Of the key.
    new : bool
        Whether no table for obfuscators was ever made under the key.
    stock : mapping of str to int
        Part → obfuscators that are at hand.
    parallel : bool
        Whether worker processes encrypt.
    """

    folding: Folding
    scheme: str
    bits: int
    new: bool
    stock: Mapping[str, int]
    parallel: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """In the order of the chain."""
        return (ENCRYPT, *(step.host for step in self.folding.steps), DECRYPT)

    @cached_property
    def _of_hosts(self) -> dict[str, tuple[int, int]]:
        """Host → ciphertexts of a person that come in, and those that it refreshes."""
        fresh = refreshed(self.folding)
        plans = {step.host: host_plan(self.folding, index) for index, step in enumerate(self.folding.steps)}
        return {host: (len(plan.own), fresh[host]) for host, plan in plans.items()}

    def seconds(self, part: str, people: int) -> float:
        """Of one core, for the first so many people."""
        costs = costs_of(self.scheme, self.bits)
        if part == DECRYPT:
            return people * costs.decrypt
        if part == ENCRYPT:
            added, fresh, each, tables = 0, self.folding.n_entries, costs.encrypt, costs.tables
        else:
            (added, fresh), each = self._of_hosts[part], costs.refresh
            # all Hosts begin with theirs once they have the key, and the first one's work waits for it
            tables = costs.public_tables * len(self._of_hosts) if part == self.parts[1] else 0.0
        made = max(people * fresh - self.stock.get(part, 0), 0)
        started = STARTED if part == ENCRYPT and self.parallel and people else 0.0
        once = TOGETHER * tables * (1.0 if self.new else READ) if made else 0.0
        return started + people * added * costs.add + made * each + once

    def whole(self, people: int) -> dict[str, float]:
        """Part → seconds."""
        return {part: self.seconds(part, people) for part in self.parts}
