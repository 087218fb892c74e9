"""A Guest whose Hosts are at their own companies: the same runtime over links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backend.data.federation import Federation
from backend.errors import FederationError
from backend.link.agreement import Agreement, dictionary_hash
from backend.link.peers import LinkSettings
from backend.link.wire import LinkWire
from backend.protocols.guest_runtime import GuestRuntime, RemoteHosts
from backend.protocols.transport.transcript import OwnTranscript


def linked_runtime(federation: Federation, home: Path, options: dict[str, Any]) -> GuestRuntime:
    """The Guest of a federation file with a table `link`; it listens, or dials, from now on.

    Raises
    ------
    FederationError
        The file and the agreement do not name the same parties, or a Host's features are others than it agreed to disclose.
    SecurityError, ParameterError
        See :class:`backend.link.wire.LinkWire`.
    """
    link = federation.link
    if link is None:
        raise FederationError(f"{federation.name}: has no table link, so its Hosts are simulated.")
    folder, settings = federation.folder, LinkSettings(bind=link.bind)
    wire = LinkWire(federation.guest.name, folder / link.agreement, folder / link.keys, settings)
    try:
        check_parties(federation, wire.agreement)
        witnesses = {host.name: host.signing for host in wire.agreement.hosts}
        return GuestRuntime(
            federation,
            home,
            OwnTranscript(wire),
            RemoteHosts(),
            witnesses=witnesses,
            on_close=wire.shut_down,
            **options,
        )
    except BaseException:
        wire.shut_down()
        raise


def check_parties(federation: Federation, agreement: Agreement) -> None:
    """Raise FederationError where the federation file says something else than what all have signed."""
    agreed, named = [host.name for host in agreement.hosts], [host.name for host in federation.hosts]
    problems = []
    if agreement.guest.name != federation.guest.name or set(agreed) != set(named):
        problems.append(
            f"federation.toml: names {federation.guest.name} and {', '.join(named)}, the agreement {agreement.guest.name} and "
            f"{', '.join(agreed)}. Correct the file, or sign another agreement."
        )
    for host in federation.hosts:
        hashes = {
            purpose.dictionaries[host.name] for purpose in agreement.purposes if host.name in purpose.dictionaries
        }
        if hashes and dictionary_hash(host.features) not in hashes:
            problems.append(
                f"federation.toml, {host.name}: its features are others than those it agreed to disclose. Ask it for its dictionary."
            )
    if problems:
        raise FederationError(problems)
