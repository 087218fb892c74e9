"""Whether a Host would serve: its records, its dictionary, its link; what is wrong, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backend.errors import GlassleafError
from backend.link.agreement import dictionary_hash, load_agreement
from backend.link.check import CheckedStep, check_link
from backend.link.config import load_config
from backend.link.peers import LinkSettings
from backend.services.host_service import check_dictionary, read_source


def check_host(path: Path) -> Iterator[CheckedStep]:
    """Every step of a Host from its host.toml, each as soon as it is known; raises FederationError where that cannot be read."""
    config = load_config(path)
    agreement = config.path(config.agreement)
    try:
        table, _ = read_source(config)
        yield CheckedStep("source", True, f"{len(table.ids):,} records, {len(table.columns)} features")
    except (GlassleafError, OSError) as error:
        yield CheckedStep("source", False, str(error))
    try:
        own = dictionary_hash(config.features())
        if agreement.exists():
            check_dictionary(config, load_agreement(agreement))
            yield CheckedStep("dictionary", True, f"{own[:12]}…, as the agreement names it")
        else:
            yield CheckedStep("dictionary", True, f"has the hash {own}, which belongs into the agreement")
    except GlassleafError as error:
        yield CheckedStep("dictionary", False, str(error))
    yield from check_link(config.party, agreement, config.path(config.keys), LinkSettings.of(config))
