"""The commands that name models and take them from draft to in use."""

import json


def found(run, model="latest"):
    return next(one for one in json.loads(run("models", "--json")[1]) if model in ("latest", one["id"]))


def test_a_model_is_named_and_listed_with_its_state(run):
    assert found(run)["state"] == "draft"
    status, text, _ = run("models", "describe", "latest", "--name", "Default 90 d", "--owner", "Dee", "--json")
    assert status == 0 and json.loads(text) == {
        "name": "Default 90 d",
        "note": "",
        "owner": "Dee",
        "state": "draft",
        "places": "",
        "product": "",
    }
    assert "Default 90 d  draft" in run("models")[1] and run("models")[1] == run("models", "list")[1]


def test_law_follows_the_places_and_the_product_of_the_model_itself(run):
    def in_force():
        return json.loads(run("rules", "calendar", "--model", "latest", "--json")[1])["in_force"]

    everywhere = in_force()
    assert run("models", "describe", "latest", "--places", "us,us_colorado", "--product", "card")[0] == 0
    assert "law of us,us_colorado, card" in run("models", "describe", "latest")[1]
    american = in_force()
    assert american < everywhere
    status, _, why = run("models", "describe", "latest", "--places", "atlantis")
    assert status == 1 and "atlantis" in why and in_force() == american
    assert run("models", "describe", "latest", "--places", "", "--product", "")[0] == 0 and in_force() == everywhere


def test_a_model_is_taken_step_by_step_and_its_history_is_printed(run):
    assert run("models", "submit", "latest", "--as", "ana")[0] == 0
    status, _, why = run("models", "approve", "latest", "--as", "cy")
    assert status == 1 and "regulator" in why
    regulator = ("--as", "cy", "--role", "regulator")
    status, _, why = run("models", "approve", "latest", *regulator)
    assert status == 1 and "decision" in why
    assert run("models", "approve", "latest", "--because", "read with the team", *regulator)[0] == 0
    assert run("models", "use", "latest", "--as", "bo")[0] == 0 and found(run)["state"] == "in_use"
    steps = json.loads(run("models", "history", "latest", "--json")[1])
    assert [(s["after"], s["person"]) for s in steps] == [("in_review", "ana"), ("approved", "cy"), ("in_use", "bo")]
    assert "read with the team" in run("models", "history", "latest")[1]
    assert run("models", "return", "latest", "--because", "age was not measured", *regulator)[0] == 0
    assert run("models", "retire", "latest", "--because", "an experiment")[0] == 0 and found(run)["state"] == "retired"
