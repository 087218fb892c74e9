"""Other people's ciphers stand beside ours with a key of the same size."""

from bench import tables


def row(engine, key, scale, peer=True):
    return {
        "engine": engine,
        "label": engine,
        "key": key,
        "peer": peer,
        "encrypt": {"cold": {"seconds": 0.001 * scale}},
        "masked_sum_seconds": 0.002 * scale,
        "decrypt_seconds": 0.003 * scale,
    }


def test_a_peer_is_compared_with_a_key_of_the_same_size_and_one_of_a_fixed_size_once():
    fixed = row("elgamal", "ed25519", 0.5)
    keys = [
        {"rows": [row("paillier-short", "2,048 bits", 1, False), row("phe", "2,048 bits", 2), fixed]},
        {"rows": [row("paillier-short", "3,072 bits", 10, False), row("phe", "3,072 bits", 30), fixed]},
    ]
    lines = tables.peers({"keys": keys, "sample": {"leaves": 9}, "repeats": 5}).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    assert cells == [
        ["phe", "2,048 bits", "2 ms", "4 ms", "6 ms", "2", "2", "2"],
        ["phe", "3,072 bits", "30 ms", "60 ms", "90 ms", "3", "3", "3"],
        ["elgamal", "ed25519", "0.5 ms", "1 ms", "1.5 ms", "0.05", "0.05", "0.05"],
    ]
