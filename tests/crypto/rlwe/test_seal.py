"""A platform without TenSEAL: RLWE says so, and everything else goes on under Paillier."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.crypto.registry import CIPHERS, available, open_offer, preferred
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.errors import ParameterError, SecurityError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def without_tenseal(monkeypatch):
    for name in ("tenseal", "tenseal.sealapi"):
        monkeypatch.setitem(sys.modules, name, None)  # what an import finds where nothing is installed


def test_without_tenseal_everything_is_imported_all_the_same():
    code = "import sys; sys.modules['tenseal'] = sys.modules['tenseal.sealapi'] = None; import backend.cli, backend.services"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_keys_and_ciphertexts_are_written_and_read_where_there_are_no_files_in_memory(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    key = RlweSecretKey.generate(parameters_for(1, 6, 100))
    assert RlweSecretKey.from_numbers(key.to_numbers()).to_numbers() == key.to_numbers()
    offer = RlweKeySide(key).offer()
    RlwePublicSide(offer)
    with pytest.raises(SecurityError, match="damaged"):
        RlwePublicSide(offer[:-9] + bytes(9))


def test_with_tenseal_every_cipher_is_available():
    assert all(available(cipher) for cipher in CIPHERS)
    assert preferred("rlwe") == "rlwe"


@pytest.mark.usefixtures("without_tenseal")
def test_without_tenseal_paillier_takes_the_place_of_rlwe():
    assert {cipher for cipher in CIPHERS if not available(cipher)} == {"rlwe"}
    assert preferred("rlwe") == "paillier"
    assert preferred("paillier-short") == "paillier-short"


@pytest.mark.usefixtures("without_tenseal")
def test_without_tenseal_a_key_is_refused_in_one_sentence_that_names_paillier():
    with pytest.raises(ParameterError, match=r"RLWE is not available.*paillier"):
        RlweSecretKey.generate(parameters_for(1, 6, 100))


def test_without_tenseal_a_host_refuses_an_offered_rlwe_key_in_the_same_words(request):
    offer = RlweKeySide(RlweSecretKey.generate(parameters_for(1, 6, 100))).offer()
    request.getfixturevalue("without_tenseal")
    with pytest.raises(ParameterError) as refused:
        open_offer("rlwe", offer, 2048, 0, None, None)
    assert refused.value.code == "no_tenseal"
