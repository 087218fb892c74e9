"""Short keys for what is drawn, printed and sent around them: nothing there depends on their length."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backend.crypto.paillier import keys
from backend.crypto.paillier.keys import PaillierSecretKey

SHORTER = 4


@contextmanager
def shorter_keys() -> Iterator[None]:
    """Homes make Paillier keys of a quarter of the bits that they are asked for, in files of the asked size's name.

    The attack lab's keys are short and stay as they are.
    """
    generate, usual = PaillierSecretKey.generate, keys.KEY_BITS_FLOOR

    def shorter(bits: int = keys.KEY_BITS, floor: int = usual) -> PaillierSecretKey:
        if bits < usual:
            return generate(bits, floor)
        return generate(bits // SHORTER, usual // SHORTER)

    with pytest.MonkeyPatch.context() as patch:
        # patched: the pages and the server ask for keys of today's length, and no setting lets them ask for shorter ones
        patch.setattr(PaillierSecretKey, "generate", shorter)
        patch.setattr(keys, "KEY_BITS_FLOOR", usual // SHORTER)
        yield
