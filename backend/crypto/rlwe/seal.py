"""Microsoft SEAL through TenSEAL's bindings, loaded when it is first used: not every platform has a wheel of TenSEAL.

``seal.Ciphertext()`` here is ``tenseal.sealapi.Ciphertext()``.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from backend.errors import ParameterError


def available() -> bool:
    """Whether TenSEAL is installed; does not load it."""
    return find_spec("tenseal") is not None


def __getattr__(name: str) -> Any:
    """A name of SEAL's; raises ParameterError if TenSEAL is not installed."""
    try:
        import tenseal.sealapi  # noqa: PLC0415 (loaded on first use)
    except ImportError:
        raise ParameterError("no_tenseal") from None
    return getattr(tenseal.sealapi, name)
