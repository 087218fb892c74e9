"""Score three people with one Host under Paillier, by the cipher interface alone, and compare with plain arithmetic.

The Guest encrypts each person's leaf weights that its own splits leave open. The Host multiplies each by its own 0 or 1 and adds up
(Fed-EINI eq. 10 and 13). Run it from a clone's folder: ``.venv/bin/python -m examples.cipher``.
"""

import numpy as np

from backend.crypto.interface import FoldPlan, KeySide, PublicSide
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.registry import open_offer

WEIGHTS = np.array([[120, 0, -45], [0, 310, -45], [120, 310, 0]])  # (people, leaves), in units of 2^-score bits
PATHS = np.array([[True, False, True], [True, True, False], [False, True, True]])  # what the Host's splits leave open
# One Host, so all three leaves are added into the one number that goes back to the Guest.
PLAN = FoldPlan(target=(0, 0, 0), is_own=(True, True, True), n_out=1, origin=(0, 1, 2), index=0, hosts=1)


def score(guest: KeySide, host: PublicSide) -> list[int]:
    """Return each person's sum of the leaf weights that both parties leave open."""
    blob = guest.encrypt(WEIGHTS)
    fold = host.start_fold(PATHS, PLAN)
    fold.add(blob)
    (answer,) = fold.finish()
    return guest.decrypt(answer, len(WEIGHTS))


def main() -> None:
    """Print both results."""
    key = PaillierKeySide(PaillierSecretKey.generate(2048))
    # The Host reads the public key from bytes, and refuses one that is too short or malformed.
    public, _ = open_offer("paillier", key.offer(), 2048, pool=0, tables=None, products=None)
    encrypted = score(key, public)
    plain = score(PlainKeySide(), PlainPublicSide())
    print(f"encrypted {encrypted}, plain {plain}")
    if encrypted != plain:
        raise AssertionError("The encrypted scores differ from plain arithmetic.")


if __name__ == "__main__":
    main()
