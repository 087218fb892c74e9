"""A model's parameters in one language: named as the Train page names them, values in words. Knows no report; pages share it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from backend.i18n import Catalogue

NONE = "–"
SHARE_PARAMETERS = ("row_sample", "column_sample")  # parameters from 0 to 1
OFF = ("early_stopping", "label_bound", "goss_top", "goss_other")  # parameters that 0 switches off
CIPHERS = ("none", "ranks", "paillier", "rlwe")


def parameters_in_words(words: Catalogue, parameters: Mapping[str, str], cipher: str, bits: int) -> dict[str, str]:
    """Name → value, as read; `cipher` is what training was encrypted with, with a Paillier key of so many `bits`."""
    return {_name(words, name): _value(words, name, value, cipher, bits) for name, value in parameters.items()}


def cipher_in_words(words: Catalogue, name: str, bits: int) -> str:
    """Return what training was encrypted with; Paillier with short random exponents is Paillier."""
    kind = name.removesuffix("-short")
    if kind in CIPHERS:
        return words(f"document.cipher_{kind}", bits=bits)
    return name


def _name(words: Catalogue, name: str) -> str:
    """As the Train page names it; a few are on no page."""
    on_page = words.named("parameter.", name)
    if on_page == name:
        return words.named("document.parameter_", name)
    return on_page


def _value(words: Catalogue, name: str, value: str, cipher: str, bits: int) -> str:
    """Choices as the Train page names them, yes and no, numbers without empty decimals."""
    if name == "weights":
        return value or NONE
    if name == "cipher":
        return cipher_in_words(words, value, bits)
    for prefix, key in (("choice.", f"{name}_{value}"), ("alignment.name_", value)):
        if (choice := words.named(prefix, key)) != key:
            return choice
    if value in ("True", "False"):
        return words("document.yes" if value == "True" else "document.no")
    # RLWE has no key of the length that Paillier would have had
    if value in ("", "None", "none", "()") or (name == "key_bits" and cipher == "rlwe"):
        return NONE
    return _number(words, name, value)


def _number(words: Catalogue, name: str, value: str) -> str:
    """Return a share in percent, and off where 0 means that; any other text as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    if name in OFF and number == 0:
        return words("document.off")
    if not math.isfinite(number):
        return value
    if name in SHARE_PARAMETERS:
        return f"{number * 100:.10g}\u00a0%"
    return f"{number:,.10g}"
