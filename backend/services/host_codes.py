"""Codes of a Host's table that none of its models knows: the Guest cannot see them, and the people who have them count as missing."""

from __future__ import annotations

import logging

from backend.data.csv_file import shown
from backend.data.table import PartyTable
from backend.remark import Remark
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_host

_log = logging.getLogger("glassleaf")


def unseen_codes(table: PartyTable, store: PartyStore) -> list[Remark]:
    """Return for each model and categorical feature how many records have a code that the model's splits do not name."""
    remarks = []
    for model_id in store.model_ids():
        if "." in model_id:
            continue
        split_codes: dict[str, frozenset[str]] = {}
        for rule in load_host(store.artefact(model_id)).rules.values():
            if rule.threshold is None:
                codes = rule.left_categories | rule.right_categories
                split_codes[rule.feature] = split_codes.get(rule.feature, frozenset()) | codes
        for feature, codes in sorted(split_codes.items()):
            if feature not in table.columns:
                continue
            cells = [cell for cell in table.columns[feature].tolist() if cell is not None]
            unseen = [cell for cell in cells if cell not in codes]
            if unseen:
                texts = tuple(shown(text) for text in sorted(set(unseen)))
                values = {"model": model_id, "feature": shown(feature), "n": len(unseen), "cells": texts}
                remarks.append(Remark("host_codes_unseen", values))
    return remarks


def log_unseen_codes(table: PartyTable, store: PartyStore) -> None:
    """Log how many records have a code that a model does not know; the codes themselves are values of people."""
    for remark in unseen_codes(table, store):
        about = {name: remark.values[name] for name in ("model", "feature", "n")}
        _log.warning("Records have codes that a model does not know; host check names them.", extra=about)
