"""What a host.toml may say; that a secret never stands in it."""

import pytest

from backend.data.dictionary import Feature
from backend.errors import FederationError, SecurityError
from backend.link.config import load_config

PLAIN = """
party = "shop"
[source]
file = "shop.csv"
id = "ID"
dictionary = "dictionary.toml"
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "host.toml"
        path.write_text(text)
        return path

    return write


def test_what_is_not_said_has_a_default(written, tmp_path):
    config = load_config(written(PLAIN))
    assert (config.party, config.agreement, config.link.heartbeat) == ("shop", "agreement.toml", 20.0)
    assert config.path(config.source.file) == tmp_path / "shop.csv"
    assert config.store_url() == f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('party = "shop"\nplaintext = true', "plaintext"),
        ('party = "shop"\n[link]\nverify = false', "verify"),
        ('party = "Shop"', "party"),
        ('party = "shop"\nstore = "postgresql://me:secret@db/x"', "store"),
        ('party = "shop"\n[link]\nheartbeat = 0', "heartbeat"),
        ('party = "shop"\n[limits]\nkey_bits = 512', "key_bits"),
        ('party = "shop"\n[limits]\nmeasures = ["age", "age"]', "measures"),
    ],
)
def test_an_unknown_key_a_wrong_value_and_a_password_are_refused(written, line, word):
    with pytest.raises(FederationError) as refused:
        load_config(written(PLAIN.replace('party = "shop"', line)))
    assert word in str(refused.value) and "secret@" not in str(refused.value)


def test_a_source_says_where_it_is(written):
    with pytest.raises(FederationError):
        load_config(written(PLAIN.replace('file = "shop.csv"', 'kind = "sql"')))


def test_secrets_come_from_a_private_file_or_the_environment(written, tmp_path, monkeypatch):
    config = load_config(written('store_file = "url"\n' + PLAIN))
    secret = tmp_path / "url"
    secret.write_text("postgresql://me:secret@db/x\n")
    secret.chmod(0o644)
    with pytest.raises(SecurityError):
        config.store_url()
    secret.chmod(0o600)
    assert config.store_url() == "postgresql://me:secret@db/x"
    monkeypatch.setenv("GLASSLEAF_STORE_URL", "sqlite:///other.db")
    assert config.store_url() == "sqlite:///other.db"


@pytest.mark.parametrize(
    "source", ['table = "t"', 'url = "sqlite:///x.db"', 'table = "t"\nurl = "sqlite:///x.db"\nurl_file = "url"']
)
def test_records_in_a_database_need_a_table_and_one_url(written, source):
    with pytest.raises(FederationError, match="a table, and either a url or a url_file"):
        load_config(written(PLAIN.replace('file = "shop.csv"', f'kind = "sql"\n{source}')))


def test_the_url_of_records_may_be_a_secret(written, tmp_path):
    config = load_config(written(PLAIN.replace('file = "shop.csv"', 'kind = "sql"\ntable = "t"\nurl_file = "url"')))
    (tmp_path / "url").write_text("postgresql://me:secret@db/x\n")
    (tmp_path / "url").chmod(0o644)
    with pytest.raises(SecurityError):
        config.source_url()
    (tmp_path / "url").chmod(0o600)
    assert config.source_url() == "postgresql://me:secret@db/x"


def test_an_operators_webhook_is_an_address_of_the_web_and_may_be_a_secret(written, tmp_path):
    assert load_config(written(PLAIN)).webhook_url() == ""
    with pytest.raises(FederationError, match="webhook"):
        load_config(written('webhook = "file:///etc/passwd"\n' + PLAIN))
    config = load_config(written('webhook_file = "hook"\n' + PLAIN))
    (tmp_path / "hook").write_text("https://chat.example/hooks/1\n")
    (tmp_path / "hook").chmod(0o600)
    assert config.webhook_url() == "https://chat.example/hooks/1"
    (tmp_path / "hook").write_text("chat.example\n")
    with pytest.raises(FederationError) as refused:
        config.webhook_url()
    assert refused.value.code == "webhook_not_web"


def test_the_dictionary_is_toml_or_csv(written, tmp_path):
    (tmp_path / "dictionary.toml").write_text('[[features]]\nname = "orders"\nmeaning = "Orders of a year"\n')
    (tmp_path / "dictionary.csv").write_text("name,meaning\norders,Orders of a year\n")
    first = load_config(written(PLAIN)).features()
    second = load_config(written(PLAIN.replace("dictionary.toml", "dictionary.csv"))).features()
    assert first[0] == Feature(name="orders", meaning="Orders of a year")
    assert second[0].name == "orders" and second[0].meaning == first[0].meaning
