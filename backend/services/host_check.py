"""Checks that a Host would serve: its records, its dictionary, its link; problems as sentences."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import text

from backend.data.id_forms import alike_note
from backend.data.table import PartyTable
from backend.errors import GlassleafError
from backend.link.agreement import Agreement, dictionary_hash, load_agreement, named_share
from backend.link.causes import cause_of
from backend.link.check import CheckedStep, check_link
from backend.link.config import HostConfig, load_config
from backend.link.peers import LinkSettings
from backend.protocols.group_sums.messages import AskGroupSums
from backend.remark import Remark
from backend.services.host_codes import unseen_codes
from backend.services.host_limits import limits_as_enforced
from backend.services.host_service import check_dictionary, read_source
from backend.store.database import Database
from backend.store.party_store import PartyStore

LARGE_HOST_RECORDS = 20_000  # records whose groups can bear that sums name a tenth of their people at most
MAX_NAMED_SHARE = 0.1


def check_host(path: Path) -> Iterator[CheckedStep]:
    """Every step of a Host from its host.toml, each as soon as it is known; raises FederationError if that cannot be read."""
    config = load_config(path)
    records = 0
    table = None
    agreement = config.path(config.agreement)
    try:
        table, _ = read_source(config)
        records = len(table.ids)
        yield CheckedStep("source", True, Remark("check_source", {"records": records, "features": len(table.columns)}))
        for note in alike_note(table.ids):
            yield CheckedStep("ids", True, note)
    except GlassleafError as error:
        yield CheckedStep("source", False, cause_of(error))
    except OSError as error:
        why = error.strerror or type(error).__name__
        yield CheckedStep("source", False, Remark("check_source_unreadable", {"reason": why}))
    stored = _store(config)
    yield stored
    yield from _webhook(config)
    if table is not None and stored.ok:
        yield from _codes(config, table)
    try:
        disclosed_hash = dictionary_hash(config.features())
        if agreement.exists():
            signed = load_agreement(agreement)
            check_dictionary(config, signed)
            yield CheckedStep("dictionary", True, Remark("check_dictionary", {"hash": disclosed_hash[:12]}))
            for remark in limits_as_enforced(config, signed, records):
                yield CheckedStep("limit", True, remark)
            yield from _sums(signed, records)
        else:
            yield CheckedStep("dictionary", True, Remark("check_dictionary_new", {"hash": disclosed_hash}))
    except GlassleafError as error:
        yield CheckedStep("dictionary", False, cause_of(error))
    yield from check_link(config.party, agreement, config.path(config.keys), LinkSettings.of(config))


def _store(config: HostConfig) -> CheckedStep:
    """Return whether the Host can count what it answers: its database and the folder of its keys can be written."""
    try:
        database = Database(config.store_url())
        try:
            with database.write() as session:
                session.execute(text("SELECT 1"))  # begins the transaction
        finally:
            database.close()
    except GlassleafError as error:
        return CheckedStep("store", False, cause_of(error))
    keys = config.path(config.keys)
    if keys.is_dir() and not os.access(keys, os.W_OK):
        return CheckedStep("store", False, Remark("check_keys_folder", {"folder": str(keys)}))
    return CheckedStep("store", True, Remark("check_store"))


def _webhook(config: HostConfig) -> Iterator[CheckedStep]:
    """Check that the address for notices of requests can be read; nothing is sent to it."""
    try:
        if config.webhook_url():
            yield CheckedStep("webhook", True, Remark("check_webhook"))
    except GlassleafError as error:
        yield CheckedStep("webhook", False, cause_of(error))


def _codes(config: HostConfig, table: PartyTable) -> Iterator[CheckedStep]:
    """Check which codes of the table no model knows."""
    database = Database(config.store_url())
    try:
        remarks = unseen_codes(table, PartyStore(database))
    except GlassleafError as error:
        yield CheckedStep("codes", False, cause_of(error))
        return
    finally:
        database.close()
    for remark in remarks:
        yield CheckedStep("codes", True, remark)


def _sums(agreement: Agreement, records: int) -> Iterator[CheckedStep]:
    """Check the share of people whom sums by group could name, if it is more than the number of records asks for."""
    share = named_share(agreement)
    if (
        records >= LARGE_HOST_RECORDS
        and share > MAX_NAMED_SHARE
        and any(AskGroupSums.__name__ in purpose.kinds for purpose in agreement.purposes)
    ):
        values = {"share": round(100 * share), "records": records, "bearable": MAX_NAMED_SHARE}
        yield CheckedStep("sums", True, Remark("check_sums", values))
