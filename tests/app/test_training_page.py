"""The Train page: parameters in, curves while it grows, a registered model out."""

from tests.app.conftest import Opened, World


def test_a_model_is_trained_registered_and_linked(opened: Opened, world: World) -> None:
    at = opened("train")
    at.number_input(key="train_trees").set_value(2)
    at.get_by_key("train_cipher").set_value("none")
    at.run()
    assert any("protect nothing" in info.value for info in at.info)
    at.button(key="train_go").click().run()
    at.session_state["job:train"].wait(120)
    at.run()
    assert not at.exception
    record = at.session_state["job:train"].result
    assert record.n_trees == 2
    assert len(at.page_link) == 1
    assert record.id in at.session_state["job:train"].result.id


def test_the_cost_hint_is_measured(opened: Opened) -> None:
    at = opened("train")
    assert any("no measured time" in caption.value for caption in at.caption)
    at.get_by_key("train_cipher").set_value("none")
    at.run()
    assert any(caption.value.startswith(":material/schedule: Measured") for caption in at.caption)


def test_no_host_chosen_means_no_training(opened: Opened, world: World) -> None:
    at = opened("train")
    at.get_by_key("train_hosts_demo").set_value([])
    at.run()
    assert not at.exception
    assert at.button(key="train_go").disabled


def test_leaving_every_feature_out_is_refused_with_a_reason(opened: Opened, world: World) -> None:
    at = opened("train")
    everything = [feature.name for _, feature in world.federation.features()]
    at.multiselect(key="train_exclude_demo").set_value(everything)
    at.get_by_key("train_cipher").set_value("none")
    at.run()
    at.button(key="train_go").click().run()
    at.session_state["job:train"].wait(60)
    at.run()
    assert not at.exception
    assert any("leave at least one in" in warning.value for warning in at.warning)
