"""Small keys made once, the shared real data where it is there, and the toy tree of Fed-EINI's Figure 4."""

from pathlib import Path

import pytest

from backend.crypto.paillier import PaillierKeySide, PaillierPublicSide
from backend.crypto.paillier_keys import SecretKey

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def secret_key() -> SecretKey:
    """512 bits: for arithmetic, not for secrets."""
    return SecretKey.generate(512, floor=512)


@pytest.fixture
def key_side(secret_key: SecretKey) -> PaillierKeySide:
    return PaillierKeySide(secret_key)


@pytest.fixture
def public_side(secret_key: SecretKey) -> PaillierPublicSide:
    return PaillierPublicSide(secret_key.public)


@pytest.fixture(scope="session")
def shared_vectors() -> Path:
    folder = SHARED / "vectors"
    if not folder.is_dir():
        pytest.skip("the public Paillier vectors lie beside the project in ../shared/vectors; they are not here")
    return folder


@pytest.fixture(scope="session")
def credit_card_csv() -> Path:
    file = SHARED / "data" / "uci_credit_card.csv"
    if not file.is_file():
        pytest.skip("the credit-card data lies beside the project in ../shared/data; it is not here")
    return file


@pytest.fixture(scope="session")
def bank_csv() -> Path:
    """Bank marketing: 4,521 people, ``;`` between cells, no ids; the label ``y`` is yes or no."""
    file = SHARED / "data" / "bank.csv"
    if not file.is_file():
        pytest.skip("the bank marketing data lies beside the project in ../shared/data; it is not here")
    return file


@pytest.fixture(scope="session")
def car_csv() -> Path:
    """Car evaluation: 1,728 cars, columns A to F, no ids; the label ``G`` has four classes."""
    file = SHARED / "data" / "car.csv"
    if not file.is_file():
        pytest.skip("the car evaluation data lies beside the project in ../shared/data; it is not here")
    return file
