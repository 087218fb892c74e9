"""A line is set and approved once: every door decides by it and says its version; log, files, report and notice bear it."""

import asyncio
import csv
import json

import httpx
import pytest

from backend.server.app import Settings, create_app
from backend.services import Glassleaf

LINE = ("--decline", "0.2", "--refer", "0.1", "--points", "600,50,20")
PEOPLE = 30


@pytest.fixture
def home(demo_home):
    return demo_home()


def over_http(glassleaf, model, ids):
    """Return the answer of the server about some people, asked with another line as a what-if."""

    async def ask():
        app = create_app(glassleaf, Settings(cipher="none", open_to_all=True))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        ):
            body = {"people": [{"id": one} for one in ids], "what_if": 0.99}
            answer = await client.post(
                f"/v1/models/{model}/scores", json=body, headers={"Idempotency-Key": "walk", "Deadline-Ms": "60000"}
            )
            return answer.json()

    return asyncio.run(ask())


def test_a_line_that_was_approved_decides_at_every_door_and_can_be_found_afterwards(run, home, tmp_path):
    # 1. One person proposes the line, another approves it.
    assert run("policy", "propose", "latest", *LINE, "--because", "agreed by the committee", "--as", "ana")[0] == 0
    assert run("policy", "approve", "latest", "--as", "rita")[0] == 0

    # 2. The shell scores a sheet.
    ids = json.loads(run("samples", "latest", "--json")[1])["ids"][:PEOPLE]
    sheet = tmp_path / "people.csv"
    sheet.write_text("\n".join(["id", *ids]), encoding="utf-8")
    out = tmp_path / "scores.csv"
    _, text, _ = run("score", "latest", sheet, "--cipher", "none", "--out", out, "--what-if", "0.99", "--json")
    shell = {score["id"]: score for score in json.loads(text)["scores"]}
    with out.open(encoding="utf-8") as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}

    # 3. A long table is scored into a file.
    long = tmp_path / "long.csv"
    long.write_text("\n".join(["id", *ids]), encoding="utf-8")
    (tmp_path / "table.parquet").unlink(missing_ok=True)
    run("score", "latest", long, "--cipher", "none", "--out", tmp_path / "table.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {row["id"]: row for row in parquet.read_table(tmp_path / "table.parquet").to_pylist()}

    with Glassleaf(home, pools=False) as glassleaf:
        record = glassleaf.models.get("latest")
        policy = glassleaf.policies.in_force(record.id)
        answer = over_http(glassleaf, record.id, ids)
        log = [entry.body for entry in glassleaf.audit.entries("demo") if entry.action == "score"]
    assert policy.version == 2 and answer["policy"]["version"] == 2 and answer["policy"]["decline_at"] == 0.2

    # 4. All doors say the same, and what they say is the arithmetic of the policy.
    http = {score["id"]: score for score in answer["scores"]}
    assert {score["decision"] for score in http.values()} >= {"accept", "decline"}
    for one in ids:
        band = policy.band(http[one]["probability"])
        said = (http[one]["decision"], http[one]["band"], http[one]["points"], http[one]["policy"])
        assert said[1:] == (band, policy.points.points(http[one]["probability"]), 2)
        assert said == tuple(shell[one][name] for name in ("decision", "band", "points", "policy"))
        assert said == tuple(table[one][name] for name in ("decision", "band", "points", "policy"))
        assert tuple(map(str, said)) == tuple(rows[one][name] for name in ("decision", "band", "points", "policy"))
        # another line is no decision
        assert http[one]["what_if"] == shell[one]["what_if"] == rows[one]["what_if"]
        assert http[one]["what_if"] == ("decline" if http[one]["probability"] >= 0.99 else "accept")

    # 5. The log says which line decided, and about how many people how.
    assert len(log) >= 3
    for body in log:
        assert (body["policy"], body["decline_at"], body["refer_at"]) == (2, 0.2, 0.1)
        assert sum(body["decisions"].values()) == body["rows"]

    # 6. The report and the model card name the line and who approved it.
    status, text, _ = run("report", "latest")
    issued = json.loads(text)["issued"]
    assert status == 0 and (issued["policy"]["version"], issued["policy"]["approved_by"]) == (2, "rita")
    assert {"policy-proposal", "policy-approval"} <= {change["action"] for change in issued["changes"]}
    assert json.loads(run("model-card", "latest", "--json")[1])["policy"]["policy"]["version"] == 2

    # 7. A declined person's notice names it, too.
    declined = next(one for one in ids if http[one]["decision"] == "decline")
    notice = tmp_path / "notice.txt"
    run("reasons", "latest", "--id", declined, "--bits", 2048, "--notice", "en", "--out", notice)
    assert "version 2 of the model's policy" in " ".join(notice.read_text(encoding="utf-8").split())
