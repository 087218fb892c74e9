"""The names of the four largest of encrypted numbers, by a garbled circuit, beside a tournament of DGK/Veugen comparisons.

One thread and processor seconds; the parties take turns, so that each one's are its own. The peer is `tno.mpc.protocols.secure_comparison`,
where it is installed: one comparison of two encrypted numbers is run and timed, the tournament is counted, not run, and nothing is
charged for selecting winners and names obliviously, so the peer's figure is a lower bound.
"""

from __future__ import annotations

import secrets
import time
from importlib.util import find_spec
from statistics import median
from typing import Any

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.protocols.ranking.circuit import gates_needed
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.ranking.host import RankingHost
from backend.protocols.ranking.packing import PackedBlinds, PackedOpener, RankingPacking
from backend.protocols.ranking.shape import RankingShape
from bench.alignment import Meter, summary
from bench.setting import REPEATS, progress, run
from bench.tables import ranking as describe
from bench.where import WIRES

KEYS = (2048, 3072)
NUMBERS = (8, 24, 64)
NAMES = 4
VALUE_BITS = 48
ROUNDS = 2  # waits of the Guest: for the blinded numbers and for the circuit
# of DGK's subgroup: twice the key's security level, NIST SP 800-57; at 3,072 bits the package had generated no key after seven minutes
SUBGROUP_BITS = {2048: 224}


def measure(keys: tuple[int, ...] = KEYS, numbers: tuple[int, ...] = NUMBERS, repeats: int = REPEATS) -> dict[str, Any]:
    """Medians, and ratios to the peer."""
    rows = []
    peers = {}
    for bits in keys:
        progress(f"{bits} bits")
        secret = PaillierSecretKey.generate(bits, floor=min(bits, 2048))
        sides = PaillierKeySide(secret), PaillierPublicSide(secret.public)
        peers[bits] = _tno(bits, repeats)
        for n in numbers:
            meters = [ranked(*sides, n) for _ in range(repeats + 1)][1:]
            rows.append(_row(bits, n, meters, peers[bits]))
    setting = {"names": NAMES, "value_bits": VALUE_BITS, "repeats": repeats, "rounds": ROUNDS}
    return setting | {"peer": {str(bits): peer for bits, peer in peers.items()}, "rows": rows}


def ranked(key: PaillierKeySide, public: PaillierPublicSide, n: int) -> Meter:
    """One ranking of random numbers, from ciphertexts at the Host to names at the Guest."""
    max_value = (1 << VALUE_BITS) - 1
    values = [secrets.randbelow(2 * max_value + 1) - max_value for _ in range(n)]
    values_enc = key.encrypt_numbers(values)
    shape = RankingShape(n, NAMES, VALUE_BITS)
    meter = Meter()
    packing = RankingPacking(shape, key.bits)
    guest = RankingGuest(PackedOpener(key, packing).opened, shape)
    host = RankingHost(PackedBlinds(public, values_enc, packing).blinded, shape)
    offer = meter.sent("guest", meter.timed("guest", guest.open))
    shares = meter.sent("host", meter.timed("host", host.share, offer))
    choices = meter.sent("guest", meter.timed("guest", guest.choose, shares))
    circuit = meter.sent("host", meter.timed("host", host.garble, choices))
    largest = sorted(range(n), key=lambda i: (values[i], i))[-NAMES:]
    if meter.timed("guest", guest.names, circuit) != tuple(sorted(i for i in largest if values[i] > 0)):
        raise RuntimeError("The ranking is wrong.")
    return meter


def _row(bits: int, n: int, meters: list[Meter], peer: dict[str, Any]) -> dict[str, Any]:
    shape = RankingShape(n, NAMES, VALUE_BITS)
    comparisons = n - 1 + NAMES * (n - 1).bit_length()
    row: dict[str, Any] = {
        "key_bits": bits,
        "numbers": n,
        "gates": gates_needed(shape),
        "comparisons": comparisons,
        **summary(meters),
    }
    row["seconds"] = row["guest_seconds"] + row["host_seconds"]
    sent = row["guest_bytes"] + row["host_bytes"]
    row["wires"] = [
        {"wire": name, "seconds": sent / rate + row["messages"] * latency} for name, (rate, latency) in WIRES.items()
    ]
    if "comparison_seconds" in peer:
        row["peer_seconds"] = comparisons * peer["comparison_seconds"]
        row["ratio"] = row["peer_seconds"] / row["seconds"]
    return row


def _tno(bits: int, repeats: int) -> dict[str, Any]:
    """Seconds of one comparison, both parties together, and of making the DGK key."""
    if find_spec("tno") is None or find_spec("tno.mpc.protocols.secure_comparison") is None:
        return {"left_out": "tno.mpc.protocols.secure_comparison is not installed"}
    if bits not in SUBGROUP_BITS:
        return {"left_out": f"no DGK key of {bits} bits is generated"}
    from tno.mpc.encryption_schemes.dgk import DGK  # noqa: PLC0415 - only if it is installed
    from tno.mpc.encryption_schemes.paillier import Paillier  # noqa: PLC0415
    from tno.mpc.encryption_schemes.utils import next_prime  # noqa: PLC0415
    from tno.mpc.protocols.secure_comparison import Initiator, KeyHolder  # noqa: PLC0415

    progress(f"tno, {bits} bits")
    width = VALUE_BITS + 1  # of differences
    paillier = Paillier.from_security_parameter(key_length=bits)
    began = time.process_time()
    dgk = DGK.from_security_parameter(
        v_bits=SUBGROUP_BITS[bits], n_bits=bits, u=next_prime(1 << (width + 2)), full_decryption=False
    )
    key_seconds = time.process_time() - began
    host = Initiator(width, communicator=None, other_party="guest")
    guest = KeyHolder(width, communicator=None, other_party="host", scheme_paillier=paillier, scheme_dgk=dgk)
    seconds = []
    try:
        for _ in range(repeats):
            x, y = (secrets.randbelow(1 << VALUE_BITS) for _ in range(2))
            x_enc = paillier.unsafe_encrypt(x)
            y_enc = paillier.unsafe_encrypt(y)
            began = time.process_time()
            answer = _compared(host, guest, paillier, dgk, width, x_enc, y_enc)
            seconds.append(time.process_time() - began)
            if paillier.decrypt(answer) != (x <= y):
                raise RuntimeError("The peer's comparison is wrong.")
    finally:
        paillier.shut_down()
        dgk.shut_down()
    return {"comparison_seconds": median(seconds), "dgk_key_seconds": key_seconds}


def _compared(host: Any, guest: Any, paillier: Any, dgk: Any, width: int, x_enc: Any, y_enc: Any) -> Any:
    """The package's steps, in its order; bits and blinded bits are randomised before they would be sent."""
    z_enc, r = host.step_1(x_enc, y_enc, width, paillier)
    z, beta = guest.step_2(z_enc, width, paillier)
    alpha = host.step_3(r, width)
    d_enc = guest.step_4a(z, dgk, paillier, width)
    beta_enc = guest.step_4b(beta, width, dgk)
    for bit_enc in beta_enc:
        bit_enc.randomize()
    d_enc = host.step_4c(d_enc, r, dgk, paillier)
    w_enc, tilde = host.step_4e(r, alpha, host.step_4d(alpha, beta_enc), d_enc, paillier)
    s, delta = host.step_4g()
    c_enc = host.step_4h(s, alpha, tilde, d_enc, beta_enc, host.step_4f(w_enc), delta, dgk)
    c_enc = host.step_4i(c_enc, dgk)
    for blinded_enc in c_enc:
        blinded_enc.randomize()
    zeta_1, zeta_2, theirs = guest.step_5(z, width, guest.step_4j(c_enc, dgk), paillier)
    return host.step_7(zeta_1, zeta_2, r, width, host.step_6(delta, theirs), paillier)


if __name__ == "__main__":
    run(__doc__, measure, describe)
