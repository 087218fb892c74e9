"""Programs ask over HTTP: every code, one answer a key, scores as in one batch, and nobody's id in a log."""

import asyncio
import http.client
import io
import json
import logging
import os
import re
import socket
import sqlite3
import threading
import time
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from datetime import date, timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import httpx
import pandas as pd
import pytest
import uvicorn
from answering import Answering
from companies import until
from homes import copied_home
from inside import runtime_of
from light_group import light_group
from light_obfuscators import light_obfuscators
from short_keys import shorter_keys

from backend.data.federation import load_federation, write_federation
from backend.data.table import SampleSheet
from backend.errors import ParameterError, PartyUnreachable
from backend.link.agreement import load_agreement
from backend.ops.health import serving
from backend.ops.logs import JsonLines
from backend.ops.metrics import ProcessCounts
from backend.remark import Remark, known
from backend.results import ScoreBatch
from backend.server import app, batches, guard, run
from backend.server.app import Settings, create_app
from backend.server.batch_files import DAY_SECONDS, FOLDER, AskedPeople, BatchFiles, forget_old
from backend.server.batches import Batcher
from backend.server.problems import STATUSES
from backend.server.run import BoundedHttp, _not_ready, serve
from backend.server.schema import MAX_PEOPLE
from backend.server.tokens import Tokens
from backend.services import Glassleaf
from backend.services.companies import make_companies
from backend.services.host_operator import own_host
from backend.services.host_service import host_service
from backend.services.online import Person
from backend.services.scoring import ScoringRequest

PLAIN = Settings(cipher="none", open_to_all=True)


@pytest.fixture(scope="module", autouse=True)
def _short_keys():
    with shorter_keys(), light_group(), light_obfuscators():
        yield


@pytest.fixture(scope="module")
def unasked(home, tmp_path_factory):
    """A home whose model is in use and in which nobody was asked about; only to be copied."""
    copy = copied_home(home, tmp_path_factory.mktemp("unasked") / "home")
    with Glassleaf(copy, pools=False) as glassleaf:
        glassleaf.lifecycle.open_demo("demo")
    return copy


@pytest.fixture(scope="module")
def glassleaf(unasked, tmp_path_factory):
    with Glassleaf(copied_home(unasked, tmp_path_factory.mktemp("asked") / "home"), pools=False) as opened:
        yield opened


@pytest.fixture
def one_answer(unasked, tmp_path, monkeypatch):
    """A home whose Hosts answer once about a person."""
    monkeypatch.setenv("GLASSLEAF_BUDGET", "1")
    with Glassleaf(copied_home(unasked, tmp_path / "home"), pools=False) as opened:
        yield opened


@asynccontextmanager
async def client_of(glassleaf, settings=PLAIN, **headers):
    app = create_app(glassleaf, settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            yield client


def ask(client, glassleaf, people, key="k1", what="scores", **more):
    body = {"people": [one if isinstance(one, dict) else {"id": one} for one in people], **more}
    return client.post(f"/v1/models/{model(glassleaf)}/{what}", json=body, headers={"Idempotency-Key": key})


def model(glassleaf):
    return glassleaf.models.get("latest").id


def ids(glassleaf, count, start=0):
    return glassleaf.models.test_ids(glassleaf.models.get("latest"))[start : start + count]


def run_with(glassleaf, work, settings=PLAIN, **headers):
    async def whole():
        async with client_of(glassleaf, settings, **headers) as client:
            return await work(client)

    return asyncio.run(whole())


def opening(glassleaf, **answers):
    """The services, where a model that is opened gives these answers; each is given the real one, and what was asked."""

    def opened(record, *how):
        real = glassleaf.online.open(record, *how)
        return Answering(real, {name: partial(answer, real) for name, answer in answers.items()})

    return Answering(glassleaf, {"online.open": opened})


def in_one_batch(glassleaf, people, cipher="none"):
    """Id → score, of one ordinary scoring."""
    opened = glassleaf.online.open(glassleaf.models.get("latest"), "none")
    sheet: SampleSheet = opened.sheet([Person(one) for one in people])
    batch = glassleaf.scoring.start(ScoringRequest("latest", sheet, cipher=cipher), counted=False).get()
    return {score.id: score.margin for score in batch.scores}


@pytest.mark.parametrize("cipher", ["none", "rlwe"])
def test_people_asked_about_one_by_one_at_once_get_the_scores_of_one_batch(glassleaf, cipher):
    people = ids(glassleaf, 12)

    async def work(client):
        asked = [ask(client, glassleaf, [one], f"{cipher}-{one}") for one in people]
        return await asyncio.gather(*asked)

    answers = run_with(glassleaf, work, Settings(cipher=cipher, open_to_all=True))
    assert {answer.status_code for answer in answers} == {200}
    found = [answer.json()["scores"][0] for answer in answers]
    assert {one["id"]: one["score"] for one in found} == in_one_batch(glassleaf, people)
    assert all(one["score"] == pytest.approx(one["base"] + one["guest_part"] + one["hosts_part"]) for one in found)
    (shown,) = {answer.json()["cipher"] for answer in answers}
    assert shown == cipher


def test_the_banks_own_columns_stand_for_its_record(glassleaf):
    (one,) = ids(glassleaf, 1)
    row = glassleaf.samples.table("latest").loc[one].drop("part")
    values = {name: None if pd.isna(value) else value for name, value in row.items()}

    async def work(client):
        return await ask(client, glassleaf, [{"id": one, "values": values}], "own"), await ask(
            client, glassleaf, [one], "kept"
        )

    typed, held = run_with(glassleaf, work)
    assert typed.json() == held.json() and typed.status_code == 200


def test_who_comes_at_once_is_one_question_and_a_person_is_never_twice_in_one(glassleaf):
    sizes = []
    counting = opening(glassleaf, score=lambda model, sheet: sizes.append(len(sheet.ids)) or model.score(sheet))
    people = ids(glassleaf, 6)

    async def work(client):
        asked = [ask(client, glassleaf, [one], f"once-{i}") for i, one in enumerate([*people, people[0]])]
        return await asyncio.gather(*asked)

    assert {answer.status_code for answer in run_with(counting, work)} == {200}
    assert sizes == [6, 1]


def test_under_one_key_a_request_is_asked_once_and_another_is_refused(one_answer):
    first, second = ids(one_answer, 2)

    async def work(client):
        once = await asyncio.gather(*(ask(client, one_answer, [first], "k") for _ in range(3)))
        return [*once, await ask(client, one_answer, [second], "k"), await ask(client, one_answer, [first], "other")]

    *same, other, again = run_with(one_answer, work)
    assert {answer.status_code for answer in same} == {200} and len({answer.text for answer in same}) == 1
    assert other.status_code == 409
    # under another key it is another question: the budget is spent, and when it is free again is said
    assert again.status_code == 429 and again.json()["date"] > "2026" and "Retry-After" in again.headers
    assert again.headers["content-type"] == "application/problem+json"


def test_a_host_that_is_down_costs_nobody_an_answer(one_answer):
    """The batch in which the question went is asked again whole; who came later is in a batch of their own."""
    people, broken = ids(one_answer, 4), []

    def breaking(model, sheet):
        batch = model.score(sheet)  # the Hosts have counted it
        if not broken:
            broken.append(len(batch.scores))
            raise PartyUnreachable("link_closed")
        return batch

    async def work(client):
        failed = await asyncio.gather(*(ask(client, one_answer, [one], one) for one in people[:3]))
        first = await ask(client, one_answer, [people[0]], people[0])
        rest = await asyncio.gather(*(ask(client, one_answer, [one], one) for one in people[1:]))
        return failed, [first, *rest]

    failed, repeated = run_with(opening(one_answer, score=breaking), work)
    assert broken == [3]
    assert {(answer.status_code, answer.json()["type"]) for answer in failed} == {
        (503, "urn:glassleaf:problem:link_closed")
    }
    assert [answer.status_code for answer in repeated] == [200] * 4
    found = {answer.json()["scores"][0]["id"]: answer.json()["scores"][0]["score"] for answer in repeated}
    assert found == in_one_batch(one_answer, people)


def test_what_cannot_be_used_is_refused_and_nobody_in_it_asked_about(one_answer):
    person, other = ids(one_answer, 2)
    numeric = next(f.name for f in one_answer.federations.get("demo").guest.features if f.kind.value == "numeric")
    unusable = [
        [person, {"id": other, "values": {numeric: "many"}}],
        [person, {"id": other, "values": {"colour": "red"}}],
        [person, person],
        [person, "stranger"],
        [person, {"id": ""}],
        [person, {"id": other, "secret": 1}],
        [],
    ]

    async def work(client):
        refused = [await ask(client, one_answer, people, f"u{i}") for i, people in enumerate(unusable)]
        await ask(client, one_answer, [person], "bare")
        missing = await client.post(f"/v1/models/{model(one_answer)}/scores", json={"people": [{"id": person}]})
        return refused, missing, await ask(client, one_answer, [other], "after")

    refused, missing, after = run_with(one_answer, work)
    assert [answer.status_code for answer in (*refused, missing)] == [422] * 8
    codes = [answer.json()["type"].removeprefix("urn:glassleaf:problem:") for answer in refused]
    assert codes[2:] == ["ids_missing_or_repeated", codes[3], *["request_of_other_form"] * 3]
    assert after.status_code == 200  # the budget is whole


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"people": [{"id": "\xff"}]}', "body_not_utf8"),
        (b'{"people": [{"id": "a", "id": "b"}]}', "body_repeats_name"),
        (b'{"people": [], "what_if": 0.5, "what_if": 0.9}', "body_repeats_name"),
        (b'{"people": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body_beyond_bounds"),
        (b'{"people": [{"id": ' + b"9" * 5000 + b"}]}", "body_beyond_bounds"),
        (b'{"people": ', "request_of_other_form"),
    ],
    ids=["not UTF-8", "a person's id twice", "a line twice", "deep", "a long number", "cut"],
)
def test_a_body_that_cannot_be_read_is_no_unknown_address(glassleaf, body, code):
    async def work(client):
        headers = {"Idempotency-Key": "unreadable", "Content-Type": "application/json", "Accept-Language": "zh"}
        answers = []
        for what in ("scores", "reasons"):
            answers.append(await client.post(f"/v1/models/{model(glassleaf)}/{what}", content=body, headers=headers))
        return answers

    for answer in run_with(glassleaf, work):
        assert answer.status_code == 422 and answer.json()["type"] == f"urn:glassleaf:problem:{code}"
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_token_made_again_under_an_old_name_gets_nothing_of_the_old_ones_answers(one_answer):
    (person,) = ids(one_answer, 1)
    settings = Settings(cipher="none")
    tokens = Tokens(one_answer.home)
    old = tokens.add("loans")

    async def work(client):
        def asked(token):
            body = {"people": [{"id": person}]}
            headers = {"Idempotency-Key": "k1", "Authorization": f"Bearer {token}"}
            return client.post(f"/v1/models/{model(one_answer)}/scores", json=body, headers=headers)

        first = await asked(old)
        tokens.revoke("loans")
        return first, await asked(tokens.add("loans"))

    first, second = run_with(one_answer, work, settings)
    assert (first.status_code, second.status_code) == (200, 429)


def test_what_a_killed_server_had_asked_is_answered_under_the_same_keys_and_counted_once(one_answer):
    """It is killed once a batch's answers are there and before they are given out; then the same is asked one by one."""
    people = ids(one_answer, 4)

    async def killed(client):
        return await asyncio.gather(*(ask(client, one_answer, [one], f"k{n}") for n, one in enumerate(people)))

    async def again(client):
        return [await ask(client, one_answer, [people[n]], f"k{n}") for n in (3, 0, 2, 1)]

    def lost(batcher, batch, done, notes):
        for question in batch.parts:
            batches._fail(question, PartyUnreachable("links_ended", party="bank"))

    with pytest.MonkeyPatch.context() as dies:
        # patched: the server is killed between the Hosts' answer and its own, which no fake at a boundary can do
        dies.setattr(Batcher, "_hand_over", lost)
        dies.setattr(Batcher, "_put_aside", lambda batcher, batch: None)
        assert {answer.status_code for answer in run_with(one_answer, killed)} == {503}
    folder = one_answer.home / FOLDER
    assert {file.stat().st_mode & 0o777 for file in folder.glob("*/*.asked")} == {0o600}
    answers = run_with(one_answer, again)
    assert [answer.status_code for answer in answers] == [200] * 4
    scores = [answer.json()["scores"][0] for answer in answers]
    assert [one["id"] for one in scores] == [people[n] for n in (3, 0, 2, 1)]
    assert not list(folder.glob("*/*.asked"))


def test_what_a_killed_server_had_asked_is_forgotten_after_a_day(tmp_path):
    files = BatchFiles(tmp_path, "loans", "model")
    old, new = (files.keep([AskedPeople((Person("A1", {"income": 5200}),))]) for _ in range(2))
    os.utime(old, (time.time() - 2 * DAY_SECONDS,) * 2)
    (new.parent / "cut.asked").write_text('[[[["A1"')
    forget_old(tmp_path)
    assert list(files.left()) == [(new, (AskedPeople((Person("A1", {"income": 5200}),)),))]
    assert list(new.parent.iterdir()) == [new]


def test_too_much_at_once_is_refused(glassleaf):
    async def work(client):
        people = [f"p{i}" for i in range(MAX_PEOPLE + 1)]
        large = b" " * (guard.MAX_BODY + 1)
        address = f"/v1/models/{model(glassleaf)}/scores"

        async def parts():
            yield large[: guard.MAX_BODY]
            yield large[: guard.MAX_BODY]

        return (
            await ask(client, glassleaf, people, "many"),
            await client.post(address, content=large),
            await client.post(address, content=parts()),
        )

    assert [answer.status_code for answer in run_with(glassleaf, work)] == [413] * 3


def test_a_model_that_nobody_has_approved_is_not_asked(home, tmp_path, unasked):
    with Glassleaf(copied_home(home, tmp_path / "home"), pools=False) as drafts:
        person = ids(drafts, 1)

        async def work(client):
            return await ask(client, drafts, person), await client.get("/v1/models")

        waits, listed = run_with(drafts, work)
        assert waits.status_code == 202 and waits.json()["type"] == "urn:glassleaf:problem:model_waits_for_approval"
        assert [one["state"] for one in listed.json()["models"]] == ["draft"]
        assert not any(entry.action == "score" for entry in drafts.audit.entries("demo"))


def test_a_request_waits_for_a_hosts_operator_and_is_answered_under_its_key_once_it_has_decided(unasked, tmp_path):
    home = copied_home(unasked, tmp_path / "home")
    federation = load_federation(home / "demo")
    hosts = tuple(h.model_copy(update={"approval": "ask"}) for h in federation.hosts[:1]) + federation.hosts[1:]
    write_federation(federation.model_copy(update={"hosts": hosts}), federation.folder)
    host = hosts[0].name
    with Glassleaf(home, pools=False) as asking:
        person = ids(asking, 1)

        async def work(client):
            waits = await ask(client, asking, person)
            with closing(own_host(home / "parties" / "demo" / host, "ana")) as operator:
                operator.approve(1, date.today() + timedelta(days=30), 5)
            return waits, await ask(client, asking, person)

        waits, allowed = run_with(asking, work)
    assert waits.status_code == 202 and waits.json()["type"] == "urn:glassleaf:problem:waits_for_approval"
    assert waits.headers["Retry-After"] == "60" and host in waits.json()["detail"]
    assert allowed.status_code == 200 and allowed.json()["scores"][0]["status"] == "ok"


def test_of_several_people_those_about_whom_the_budget_is_spent_are_failed_and_the_others_scored(one_answer):
    spent, free = ids(one_answer, 2)

    async def work(client):
        await ask(client, one_answer, [spent], "first")
        return await ask(client, one_answer, [spent, free], "both")

    both = run_with(one_answer, work)
    assert both.status_code == 200
    assert [(one["status"], bool(one["problem"])) for one in both.json()["scores"]] == [("failed", True), ("ok", False)]


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("", "en"), ("zh", "zh"), ("zh-CN,en;q=0.9", "zh"), ("fr, en;q=0.5, zh;q=0.4", "en"), ("zh;q=x, *", "en")],
)
def test_a_problem_is_worded_in_the_language_that_its_reader_prefers(glassleaf, accepted, language):
    async def work(client):
        return await client.get("/v2", headers={"Accept-Language": accepted})

    answer = run_with(glassleaf, work)
    assert answer.json()["type"] == "urn:glassleaf:problem:address_unknown"
    assert answer.json()["detail"] == Remark("address_unknown").sentence(language)
    assert answer.json()["title"] == Remark("problem_unknown").sentence(language)
    assert (answer.headers["Content-Language"], answer.headers["Vary"]) == (language, "Accept-Language")


def test_every_kind_of_problem_has_a_title():
    assert all(known(f"problem_{kind.replace('-', '_')}") for kind in STATUSES)


def test_addresses_that_are_not_there_are_problems_too(glassleaf):
    async def work(client):
        unknown = await client.post(
            "/v1/models/none/scores", json={"people": [{"id": "x"}]}, headers={"Idempotency-Key": "k"}
        )
        return unknown, await client.get("/v2"), await client.delete("/v1/models")

    answers = run_with(glassleaf, work)
    assert [answer.status_code for answer in answers] == [404, 404, 405]
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
    assert all(answer.json()["status"] == answer.status_code for answer in answers)


def test_a_token_is_needed_and_reaches_its_models_alone(glassleaf):
    tokens, settings = Tokens(glassleaf.home), Settings(cipher="none")
    all_, none = tokens.add("loans"), tokens.add("others", ("m-other",))
    person = ids(glassleaf, 1)

    def asked(**headers):
        async def work(client):
            return await ask(client, glassleaf, person, "t"), await client.get("/v1/models")

        return run_with(glassleaf, work, settings, **headers)

    missing, _ = asked()
    wrong, listed = asked(authorization=f"Bearer {all_}x")
    assert missing.status_code == wrong.status_code == listed.status_code == 401
    assert missing.headers["www-authenticate"].startswith("Bearer")
    allowed, _ = asked(authorization=f"Bearer {all_}")
    assert allowed.status_code == 200
    forbidden, listed = asked(authorization=f"Bearer {none}")
    assert forbidden.status_code == 403 and listed.json() == {"models": []}
    last = [entry for entry in glassleaf.audit.entries("demo") if entry.action == "score"][-1]
    assert last.actor == "token loans"
    tokens.revoke("loans")
    assert asked(authorization=f"Bearer {all_}")[0].status_code == 401
    tokens.revoke("others")


def test_a_page_in_a_browser_cannot_reach_an_open_server_by_another_name(glassleaf):
    async def work(client):
        return await client.get("/v1/models", headers={"host": "evil.example"}), await client.get("/v1/models")

    other, own = run_with(glassleaf, work)
    assert (other.status_code, own.status_code) == (403, 200)


def test_after_its_deadline_a_request_waits_under_its_key(one_answer):
    person, go = ids(one_answer, 1), threading.Event()

    def slow(model, sheet):
        go.wait(10)
        return model.score(sheet)

    async def work(client):
        client.headers["Deadline-Ms"] = "60"
        late = await ask(client, one_answer, person, "d")
        behind = await ask(client, one_answer, ids(one_answer, 1, 1), "never asked")
        go.set()
        client.headers["Deadline-Ms"] = "20000"
        return (
            late,
            behind,
            await ask(client, one_answer, person, "d"),
            await ask(client, one_answer, ids(one_answer, 1, 1), "new"),
        )

    late, behind, there, new = run_with(opening(one_answer, score=slow), work)
    assert (late.status_code, behind.status_code) == (503, 503)
    types = [answer.json()["type"] for answer in (late, behind)]
    assert types == ["urn:glassleaf:problem:hosts_still_work", "urn:glassleaf:problem:deadline_before_asking"]
    assert there.status_code == 200 and new.status_code == 200


def test_reasons_take_the_score_that_was_given_before(one_answer):
    person = ids(one_answer, 1, 5)

    async def work(client):
        scored = await ask(client, one_answer, person, "s")
        named = [await ask(client, one_answer, person, "r", "reasons", names=2) for _ in range(2)]
        return scored, *named, await ask(client, one_answer, person, "r", "reasons", names=3)

    scored, named, again, other = run_with(one_answer, work, Settings(key_bits=2048, open_to_all=True))
    assert scored.status_code == 200 and named.status_code == 200, named.text
    (one,) = named.json()["people"]
    assert one["score"] == scored.json()["scores"][0] and one["status"] == "ok" and len(one["reasons"]) <= 2
    assert again.json() == named.json() and other.status_code == 409
    assert named.json()["against"] == "all" and named.json()["compared"] > 0


def test_whom_people_are_compared_with_is_asked_for_and_stated(one_answer):
    person = ids(one_answer, 1, 6)

    async def work(client):
        asked = [
            await ask(client, one_answer, person, f"g{a}", "reasons", names=2, against=a) for a in ("covers", "median")
        ]
        return *asked, await ask(client, one_answer, person, "gcovers", "reasons", names=2, against="all")

    named, unknown, other = run_with(one_answer, work, Settings(key_bits=2048, open_to_all=True))
    assert named.status_code == 200 and (named.json()["against"], named.json()["compared"]) == ("covers", 0)
    assert unknown.status_code == 422 and other.status_code == 409  # another group is another question


def test_reasons_asked_for_twice_at_once_are_one_question_and_a_mended_request_may_keep_its_key(one_answer):
    (person,) = ids(one_answer, 1, 8)
    asked, start = [], one_answer.reasons.start
    counting = Answering(one_answer, {"reasons.start": lambda asking: asked.append(asking) or start(asking)})

    async def work(client):
        wrong = await ask(client, one_answer, [{"id": person, "values": {"nothing": 1}}], "r2", "reasons", names=2)
        twice = [ask(client, one_answer, [person], "r2", "reasons", names=2) for _ in range(2)]
        return wrong, *await asyncio.gather(*twice)

    wrong, one, other = run_with(counting, work, Settings(key_bits=2048, open_to_all=True))
    assert wrong.status_code == 422
    assert one.status_code == 200 and one.json() == other.json() and len(asked) == 1


def test_what_was_not_understood_is_no_ok_over_http(glassleaf):
    values = {feature.name: None for feature in glassleaf.federations.get("demo").guest.features}
    known = ids(glassleaf, 12, 60)
    lower = [{"id": one.lower(), "values": values} for one in known]

    async def work(client):
        refused = await ask(client, glassleaf, lower, "odd-1")
        few = await ask(client, glassleaf, lower[:2], "odd-2")
        alone = await ask(client, glassleaf, [one.lower() for one in known[:2]], "odd-3")
        return refused, few, alone

    refused, few, alone = run_with(glassleaf, work)
    assert (
        refused.status_code == 422 and "upper and lower case" in refused.text and "knows 0 of these 12" in refused.text
    )
    (first, _) = few.json()["scores"]
    assert few.status_code == 200 and first["status"] == "partial"
    assert [remark["code"] for remark in first["remarks"]] == ["id_written_otherwise", "not_held"]
    assert first["remarks"][0]["values"]["other_id"] == repr(known[0])
    assert alone.status_code == 422 and "upper and lower case" in alone.text


def test_a_float_that_may_have_been_several_codes_is_no_code_over_http(glassleaf):
    names = [feature.name for feature in glassleaf.federations.get("demo").guest.features]
    codes = (float(2**53 + 2), 2**53 + 2)
    people = [
        {"id": one, "values": {**dict.fromkeys(names), "home_ownership": code}}
        for one, code in zip(ids(glassleaf, 2, 90), codes, strict=True)
    ]

    async def work(client):
        return await ask(client, glassleaf, people[:1], "float-1"), await ask(client, glassleaf, people[1:], "float-2")

    beyond, whole = run_with(glassleaf, work)
    assert beyond.status_code == 422 and beyond.json()["type"].endswith("number_beyond_float")
    assert whole.status_code == 200


def test_ids_of_another_shape_stop_a_request_and_not_those_that_come_with_it(glassleaf):
    values = {feature.name: None for feature in glassleaf.federations.get("demo").guest.features}
    strange = [{"id": f"no {number}/{number}", "values": values} for number in range(12)]

    async def work(client):
        together = [ask(client, glassleaf, strange, "new-1"), ask(client, glassleaf, ids(glassleaf, 2, 80), "new-2")]
        refused, other = await asyncio.gather(*together)
        meant = await ask(client, glassleaf, strange, "new-3", ids="as-written")
        return refused, other, meant

    refused, other, meant = run_with(glassleaf, work)
    assert refused.status_code == 422 and "ids_of_another_shape" in refused.text
    assert other.status_code == 200 and other.json()["counts"]["ok"] == 2 and other.json()["notes"] == []
    assert meant.json()["counts"] == {"ok": 0, "partial": 12, "refused": 0, "failed": 0}
    assert [note["code"] for note in meant.json()["notes"]] == ["ids_new_to_guest", "few_held"]


def test_no_id_and_no_value_stands_in_a_log(one_answer, caplog):
    person, *_ = ids(one_answer, 1)
    caplog.set_level(logging.DEBUG)

    def failing(model, people):
        if len(people) == 1 and people[0].id == "secret-id":
            raise RuntimeError(people[0].id)
        return model.check(people)

    async def work(client):
        await ask(client, one_answer, [person, {"id": "secret-id", "values": {"age": "secret-value"}}], "a")
        await ask(client, one_answer, [person], "b")
        return await ask(client, one_answer, ["secret-id"], "c")

    assert run_with(opening(one_answer, check=failing), work).status_code == 500
    assert person not in caplog.text and "secret-" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_a_conversation_is_kept_open_and_begun_again_where_it_broke(glassleaf, monkeypatch):
    opened = glassleaf.online.open(glassleaf.models.get("latest"), "none")
    people = ids(glassleaf, 4)
    sheets = [opened.sheet([Person(one)]) for one in people]
    monkeypatch.setattr("backend.services.scoring.RENEWED", 3)
    batches = [opened.score(sheet) for sheet in sheets]
    offers = [sum(m.kind == "OfferKey" for m in batch.transcript) for batch in batches]
    assert offers[0] and offers == [offers[0], 0, 0, offers[0]]
    assert {b.scores[0].id: b.scores[0].margin for b in batches} == in_one_batch(glassleaf, people)
    assert len({len(b.transcript) - offer for b, offer in zip(batches, offers, strict=True)}) == 1
    opened.close()


def kept_replies(home):
    """Answers that Hosts keep for a Guest that may ask again."""
    found = 0
    for file in home.glob("parties/demo/*/store.db"):
        with closing(sqlite3.connect(file)) as database:
            found += database.execute("select count(*) from questions where reply is not null").fetchone()[0]
    return found


@pytest.mark.parametrize("cipher", ["none", "rlwe"])
def test_whoever_is_killed_before_the_scores_are_handed_over_has_the_same_ones_and_counts_once(one_answer, cipher):
    record, people = one_answer.models.get("latest"), ids(one_answer, 3, 20)
    opened = one_answer.online.open(record, cipher)
    first = opened.score(opened.sheet([Person(one) for one in people]))
    with Glassleaf(one_answer.home, pools=False) as again:  # nothing was handed over, nor said at an end
        repeated = again.online.open(record, cipher)
        second = repeated.score(repeated.sheet([Person(one) for one in people]))
        assert second.run == first.run
        assert [one.units for one in second.scores] == [one.units for one in first.scores]
        assert {one.status for one in second.scores} == {"ok"}  # else the budget of one were spent
        assert kept_replies(again.home) == 1
        repeated.handed_over(second)
        other = repeated.score(repeated.sheet([Person(ids(one_answer, 1, 23)[0])]))
        assert sum(m.kind == "Acknowledge" for m in other.transcript) == 1
        repeated.handed_over(other)
        repeated.close()
        journal = runtime_of(again).journal
        assert journal.kept() == (0, 0, 0) and not list(again.home.rglob("*.sent"))
        assert kept_replies(again.home) == 0
        third = repeated.score(repeated.sheet([Person(one) for one in people]))
        assert {one.status for one in third.scores} == {"failed"}  # another question
        repeated.close()


def test_the_form_of_a_token_at_rest_tells_nothing(tmp_path):
    tokens = Tokens(tmp_path)
    token = tokens.add("loans")
    stored = (tmp_path / "server" / "tokens.json").read_text()
    assert token not in stored and json.loads(stored)[0]["name"] == "loans"
    assert tokens.find(token).name == "loans" and tokens.find(token[:-1]) is None
    assert (tmp_path / "server" / "tokens.json").stat().st_mode & 0o077 == 0


def test_the_document_in_the_repository_is_what_the_server_offers(glassleaf):
    async def work(client):
        return await client.get("/openapi.json")

    offered = run_with(glassleaf, work).json()
    kept = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert kept == offered  # `make docs` writes it
    codes = set(kept["paths"]["/v1/models/{model_id}/scores"]["post"]["responses"])
    assert codes >= {"200", "202", "401", "403", "404", "409", "413", "422", "429", "503"}
    for address in kept["paths"].values():
        for method in address.values():
            for code, answer in method["responses"].items():
                assert set(answer["content"]) == {"application/json" if code == "200" else "application/problem+json"}


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("192.0.2.1", False),
        ("10.0.0.5", False),
        ("bank", False),
    ],
)
def test_without_tokens_only_this_machine_is_served(glassleaf, monkeypatch, address, local):
    served = []
    monkeypatch.setattr("backend.server.run.uvicorn.run", lambda app, **how: served.append(how["host"]))
    if local:
        serve(glassleaf, Settings(), address, 8700)
        assert served == [address]
        return
    with pytest.raises(ParameterError, match="token"):
        serve(glassleaf, Settings(), address, 8700)
    Tokens(glassleaf.home).add("loans")
    serve(glassleaf, Settings(), address, 8700)
    Tokens(glassleaf.home).revoke("loans")
    assert served == [address]


def test_tokens_are_made_listed_and_revoked_from_a_shell(run, home):
    status, token, _ = run("tokens", "add", "loans", "--models", "latest")
    assert status == 0 and len(Tokens(home).find(token.strip()).models) == 1
    assert run("tokens", "add", "loans")[0] == 1
    assert "loans" in run("tokens", "list")[1] and token.strip() not in run("tokens", "list")[1]
    assert run("tokens", "revoke", "loans")[0] == 0 and Tokens(home).all() == ()
    assert run("tokens", "revoke", "loans")[0] == 1


def test_what_is_counted_and_logged_of_scores_says_how_many_and_never_who(glassleaf, monkeypatch):
    metrics, stream = ProcessCounts(), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    ours = logging.getLogger("glassleaf")
    before = ours.level, ours.propagate
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False
    people = ids(glassleaf, 5, 40)

    async def work():
        app = create_app(glassleaf, PLAIN, metrics)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                answer = await ask(client, glassleaf, people, "counted")
                refused = await ask(client, glassleaf, [{"id": people[0], "values": {"no_such": 1}}], "refused")
                return answer.status_code, refused.status_code

    try:
        assert asyncio.run(work()) == (200, 422)
    finally:
        ours.removeHandler(handler)
        ours.setLevel(before[0])
        ours.propagate = before[1]
    text, lines = metrics.text().decode(), [json.loads(line) for line in stream.getvalue().splitlines()]
    assert 'glassleaf_people_total{outcome="scored"} 5.0' in text and 'glassleaf_refused_total{code="422"} 1.0' in text
    assert 'glassleaf_stage_seconds_count{stage="question"} 1.0' in text
    assert 'glassleaf_queue_length{lane="online"} 0.0' in text
    scored = [line for line in lines if line["event"] == "People were scored."]
    assert [(line["people"], line["failed"]) for line in scored] == [(5, 0)]
    assert {line.get("code") for line in lines} >= {200, 422}
    federation = glassleaf.federations.get("demo")
    features = [feature.name for party in federation.parties for feature in party.features]
    for word in (*people, *features, *(host.name for host in federation.hosts), model(glassleaf)):
        assert not re.search(rf"\b{re.escape(word)}\b", text + stream.getvalue()), word


def test_a_home_is_ready_until_its_disk_is_full_or_a_federation_is_broken(unasked, tmp_path, monkeypatch):
    with Glassleaf(copied_home(unasked, tmp_path / "home"), pools=False) as opened:
        assert opened.operation.not_ready() == ()
        (tmp_path / "home" / "demo" / "federation.toml").write_text("name = ")
        assert [why.code for why in opened.operation.not_ready()] == ["federations_unusable"]
        monkeypatch.setattr("backend.services.operation.ROOM", 1 << 80)
        assert opened.operation.not_ready()[0].code == "disk_full"
        monkeypatch.setattr("backend.services.operation.nearly_all_open", lambda: True)
        assert "too_many_open" in [why.code for why in opened.operation.not_ready()]


def test_a_server_is_not_ready_while_a_hosts_link_is_down_and_names_the_host_and_the_cause(tmp_path):
    made = make_companies(tmp_path / "three", 100)
    with Glassleaf(made.home, pools=False) as opened, closing(socket.create_server(("127.0.0.1", 0))) as probe:
        opened.federations.add(made.guest)
        ops = probe.getsockname()[1]
        probe.close()
        figures = ProcessCounts()
        figures.watch("links_down", "Hosts whose link is not there", lambda: len(opened.operation.links_down()))
        with serving(ops, partial(_not_ready, opened), figures.text):

            def got(path):
                line = http.client.HTTPConnection("127.0.0.1", ops, timeout=30)
                line.request("GET", path, headers={"Host": "localhost"})
                answer = line.getresponse()
                return answer.status, answer.read().decode()

            status, text = got("/ready")
            assert status == 503 and "glassleaf_links_down 2.0" in got("/metrics")[1]
            assert all(f"{host}: down since" in text for host in made.hosts) and "Its own log" in text
            service = host_service(made.hosts["telecom"] / "host.toml")
            thread = threading.Thread(target=service.serve, daemon=True)
            thread.start()
            until(lambda: "telecom" not in got("/ready")[1])
            assert "platform: down since" in got("/ready")[1] and "glassleaf_links_down 1.0" in got("/metrics")[1]
            service.stop()
            thread.join(60)


def test_a_server_listens_for_its_hosts_before_anybody_asks_it(tmp_path, monkeypatch):
    made = make_companies(tmp_path / "three", 100)
    port = int(load_agreement(made.guest / "agreement.toml").guest.address.rpartition(":")[2])

    def listens():
        with suppress(OSError), socket.create_connection(("localhost", port), 5):
            return True
        return False

    monkeypatch.setattr("backend.server.run.uvicorn.run", lambda app, **how: until(listens, 20))
    with Glassleaf(made.home, pools=False) as opened:
        opened.federations.add(made.guest)
        serve(opened, Settings(), "127.0.0.1", 8700)


@contextmanager
def address_of(app):
    """Where a server answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, http=BoundedHttp, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def answer_to(pieces, app):
    """What a server answers somebody who sends these pieces, and how many bytes of them it took."""
    sent = 0
    with address_of(app) as address, socket.create_connection(address, timeout=30) as caller:
        with suppress(ConnectionError):
            for piece in pieces:
                caller.sendall(piece)
                sent += len(piece)
        with suppress(ConnectionError):
            return caller.recv(1000).decode(), sent
        return "", sent


async def told_length(scope, receive, send):
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"7")]})
    await send({"type": "http.response.body", "body": b"%07d" % size})


POST = b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"GET /" + b"a" * 1000, b"a" * 1000),
        (POST, b"x: y\r\n" * 1000),
        (POST + b"x: ", b"y" * 1000),
        (CHUNKED + b"0\r\n", b"x: y\r\n" * 1000),
        (CHUNKED, b"1;" + b"y" * 1000 + b"\r\nz\r\n"),
    ],
    ids=["address", "headers", "header", "trailers", "chunks"],
)
def test_a_request_without_an_end_beside_its_body_is_refused_and_not_kept(begin, again):
    endless = chain([begin], repeat(again, 100_000))
    answer, sent = answer_to(endless, told_length)
    assert answer.startswith("HTTP/1.1 400") or not answer  # the line was cut while it was still sent to
    assert sent < 30_000_000  # what the system's buffers take, not what it was sent


def test_a_head_that_comes_whole_in_one_read_is_bounded_too():
    with_head = POST + b"x: " + b"y" * 100_000 + b"\r\ncontent-length: 0\r\n\r\n"
    answer, _ = answer_to([with_head], told_length)
    assert answer.startswith("HTTP/1.1 400")
    many = POST + b"x: y\r\n" * 16_500 + b"content-length: 0\r\n\r\n"
    answer, _ = answer_to([many], told_length)
    assert answer.startswith("HTTP/1.1 400")


@pytest.mark.parametrize("begin", [b"", POST, POST + b"content-length: 9\r\n\r\nhalf"], ids=["nothing", "head", "body"])
def test_whoever_does_not_say_all_of_what_he_wants_is_not_waited_for(begin, monkeypatch):
    monkeypatch.setattr(run, "WHOLE_REQUEST_SECONDS", 0.2)
    answer, _ = answer_to([begin], told_length)
    assert answer == "", "the line was cut, long before this caller loses patience"


def test_a_body_of_whom_nobody_knows_is_not_waited_for():
    stranger = guard.Guard(told_length, lambda scope: False)
    half = POST.replace(b"close", b"keep-alive") + b"content-length: 900000\r\n\r\nhalf"
    answer, _ = answer_to([half], stranger)
    assert answer.startswith("HTTP/1.1 200") and answer.endswith("0000000"), "answered by its head alone"


def test_what_a_stranger_goes_on_sending_after_the_answer_is_cut():
    stranger, piece = guard.Guard(told_length, lambda scope: False), b"10000\r\n" + b"b" * 65_536 + b"\r\n"
    endless = chain([CHUNKED.replace(b"close", b"keep-alive")], repeat(piece, 1600))
    _, sent = answer_to(endless, stranger)
    assert sent < 30_000_000


def test_a_caller_finds_room_whoever_holds_lines_and_who_is_answered_keeps_its_own(monkeypatch):
    monkeypatch.setattr(run, "CONNECTIONS", 3)
    begun, go = threading.Event(), threading.Event()

    async def slow(scope, receive, send):
        begun.set()
        await asyncio.to_thread(go.wait, 30)
        await told_length(scope, receive, send)

    with address_of(slow) as address, ExitStack() as lines:
        line = partial(socket.create_connection, address, timeout=30)
        whole = POST + b"content-length: 0\r\n\r\n"
        working, *silent = [lines.enter_context(line()) for _ in range(3)]
        working.sendall(whole)
        assert begun.wait(30)
        late = lines.enter_context(line())
        assert silent[0].recv(1) == b"", "the one that was silent longest gave up its place"
        late.sendall(whole)
        go.set()
        assert all(one.recv(1000).startswith(b"HTTP/1.1 200") for one in (working, late))


def test_who_asks_a_lot_has_no_other_callers_requests_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "MAX_KEYS", 2)
    state = app.ServerState(SimpleNamespace(home=tmp_path), PLAIN, ProcessCounts())
    first = ("shop", "m", "scores", "key")
    kept = state.kept(first, "body")
    for i in range(9):
        state.kept(("bank", "m", "scores", str(i)), "body")
    assert state.kept(first, "body") is kept
    assert sum(len(own) for own in state._kept.values()) == 4


def test_a_long_body_in_pieces_is_no_head_without_an_end():
    piece = b"400\r\n" + b"b" * 1024 + b"\r\n"
    answer, _ = answer_to([CHUNKED, *repeat(piece, 900), b"0\r\n\r\n"], told_length)
    assert answer.startswith("HTTP/1.1 200") and answer.endswith("0921600")


class Scorer:
    """Stands in for an open model: answers at once, and notes how many people each question had."""

    def __init__(self):
        self.sizes, self.told = [], threading.Event()

    def check_ids(self, people, *, as_written=False):
        pass

    def notes(self, scores):
        return ()

    def sheet(self, people):
        return SimpleNamespace(ids=[one.id for one in people], problems={}, take=lambda rows: self.sheet(people))

    def score(self, sheet):
        self.sizes.append(len(sheet.ids))
        scores = tuple(SimpleNamespace(id=one, status="ok", scored=True) for one in sheet.ids)
        return ScoreBatch("m", "none", 0, 0.5, scores, (), (), 1, 1, 1, 0.0)

    def handed_over(self, batch):
        pass

    def settle(self):
        pass

    def tell(self):
        self.told.set()

    def close(self):
        pass


def test_what_was_handed_over_is_put_aside_once_nobody_asks_and_hosts_are_told(tmp_path, monkeypatch):
    async def idle():
        settled, loop, model = asyncio.Event(), asyncio.get_running_loop(), Scorer()
        model.settle = lambda: loop.call_soon_threadsafe(settled.set)
        batcher = Batcher(model, ProcessCounts(), BatchFiles(tmp_path, "", "m"))
        await asyncio.wait_for(settled.wait(), 30)
        await loop.run_in_executor(None, model.told.wait, 30)
        await batcher.close()

    monkeypatch.setattr("backend.server.batches.IDLE_SECONDS", 0.001)
    asyncio.run(idle())


def test_callers_who_come_straight_back_are_one_question_and_nobody_else_is_waited_for(tmp_path):
    """Under a wait of a minute a question goes because it is full, or because all who ask are back."""

    async def some():
        model, go = Scorer(), threading.Event()
        batcher = Batcher(model, ProcessCounts(), BatchFiles(tmp_path, "", "m"), wait=60.0, max_people=8)

        async def ask(names):
            return await asyncio.wait_for(batcher.ask(tuple(Person(name) for name in names)).answer, 30)

        await ask("abcdefgh")
        await ask("i")
        score, model.score = model.score, lambda sheet: score(sheet) if go.wait(30) else None
        under_way = asyncio.create_task(ask("j"))
        await asyncio.sleep(0.05)
        came_meanwhile = [asyncio.create_task(ask(name)) for name in "klm"]
        await asyncio.sleep(0)
        go.set()
        await under_way
        await asyncio.gather(ask("n"), *came_meanwhile)
        await batcher.close()
        return model.sizes

    assert asyncio.run(some()) == [8, 1, 1, 4]


def test_hosts_that_are_slow_to_be_told_hold_no_question_up(tmp_path):
    async def some():
        model, go = Scorer(), threading.Event()
        model.tell = go.wait
        batcher = Batcher(model, ProcessCounts(), BatchFiles(tmp_path, "", "m"), wait=0.0)
        for one in "abc":
            await asyncio.wait_for(batcher.ask((Person(one),)).answer, 30)
        go.set()
        await batcher.close()
        return model.sizes

    assert asyncio.run(some()) == [1, 1, 1]
