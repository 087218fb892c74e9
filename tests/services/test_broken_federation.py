"""A federation that cannot be used is shown as broken, and stops nobody else."""

import pytest

from backend.data.demo import write_demo
from backend.data.federation import write_federation
from backend.errors import FederationError, ModelError, StoreError
from backend.services import Glassleaf, workspace
from backend.services.scoring import ScoringRequest


@pytest.fixture
def home(demo_home):
    """With a second federation beside the demo."""
    home = demo_home()
    other = write_demo(home / "other", rows=100)
    write_federation(other.model_copy(update={"name": "other"}), home / "other")
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.add(home / "other")
        assert glassleaf.federations.broken() == {}
    return home


def damaged_file(home):
    (home / "other" / "federation.toml").write_text("name = [")
    return FederationError


def damaged_store(home):
    store = home / "parties" / "other" / "bank" / "store.db"
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(b"no database" * 100)
    return StoreError


@pytest.mark.parametrize("damage", [damaged_file, damaged_store])
def test_a_broken_federation_is_named_with_its_place_and_stops_no_other(home, damage):
    error = damage(home)
    with Glassleaf(home, pools=False) as glassleaf:
        assert list(glassleaf.federations.broken()) == ["other"]
        assert str(home) in str(glassleaf.federations.broken()["other"])
        (record,) = glassleaf.models.all()
        person = glassleaf.samples.of_person(record.id, glassleaf.models.test_ids(record)[0])
        batch = glassleaf.scoring.start(ScoringRequest(record.id, person, cipher="none")).get()
        assert [score.status for score in batch.scores] == ["ok"]
        assert glassleaf.reports.make(record.id).content.identity.federation == "demo"
        issued = glassleaf.reports.export(record.id, "json")
        assert glassleaf.reports.check(issued).verdict == "issued"
        with pytest.raises(error):  # who asks for it by its name is told
            glassleaf.models.all("other")
        with pytest.raises(ModelError, match=r"Federations that cannot be used: other\.$"):
            glassleaf.models.get("nobody")  # which it may have held


def test_a_federation_that_was_mended_is_there_again(home):
    file = home / "other" / "federation.toml"
    whole = file.read_text()
    damaged_file(home)
    with Glassleaf(home, pools=False) as glassleaf:
        assert "other" in glassleaf.federations.broken()
        file.write_text(whole)
        assert glassleaf.federations.broken() == {} and glassleaf.federations.get("other").name == "other"


def test_whatever_loading_raises_makes_that_federation_alone_broken(home, monkeypatch):
    load = workspace.load_federation

    def failing(folder, **options):
        if folder.name == "other":
            raise ZeroDivisionError
        return load(folder, **options)

    # patched: a file that raises what no reader expects is not known, or it would be read
    monkeypatch.setattr(workspace, "load_federation", failing)
    with Glassleaf(home, pools=False) as glassleaf:
        assert glassleaf.federations.broken()["other"].remarks[1].code == "federation_failed_to_load"
        assert [found.name for found in glassleaf.federations.all()] == ["demo"]
        assert len(glassleaf.models.all()) == 1
