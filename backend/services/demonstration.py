"""Synthetic only: how a simulated Host sees a person while it helps to score them. Never for people who exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from backend.data.dictionary import Feature
from backend.services.registry import Registry
from backend.services.workspace import Workspace


@dataclass(frozen=True)
class HostView:
    """One Host's own view of one synthetic person.

    Attributes
    ----------
    values : tuple of (Feature, Any)
        Its columns and what they hold; empty where it has no record of the person.
    entries : tuple of (bool or None)
        Whether it keeps each encrypted entry that reaches it; None where none of its splits has a say.
    """

    host: str
    values: tuple[tuple[Feature, Any], ...]
    entries: tuple[bool | None, ...]

    @property
    def kept(self) -> int:
        """Entries that it lets through because its values allow them."""
        return sum(entry is True for entry in self.entries)

    @property
    def ruled_out(self) -> int:
        """Entries that its values rule out."""
        return sum(entry is False for entry in self.entries)


class Demonstration:
    """Looks through a Host's eyes, in federations whose people are synthetic."""

    def __init__(self, workspace: Workspace, models: Registry) -> None:
        self._workspace, self._models = workspace, models

    def look_as(self, model_id: str, host: str, person: str) -> HostView:
        """What `host` holds about `person`, and which entries it keeps under the model.

        Raises
        ------
        SecurityError
            The federation is not marked as synthetic, or the Host owns no split of the model.
        """
        record = self._models.get(model_id)
        runtime = self._workspace.runtime(record.federation)
        seen = runtime.decision(host, record.id, person)
        features = {feature.name: feature for feature in runtime.federation.party(host).features}
        return HostView(host, tuple((features[name], value) for name, value in seen.values.items()), seen.entries)
