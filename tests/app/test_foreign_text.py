"""Names, titles and meanings of other companies stay text on every page: they draw no icon, badge or emoji, no link and no colour."""

import re

import pandas as pd
import pytest
from streamlit.testing.v1.element_tree import Block

from app import session
from app.texts import code
from backend.data.demo import write_demo
from backend.data.federation import write_federation
from backend.i18n import Text
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from tests.app.conftest import PAGES, _fresh, forget_jobs
from tests.app.test_scoring import scored

HOSTILE = ":material/rocket: :sunglasses: :red[red] **bold** `code` [link](http://evil.example) $x$ <b>tag</b> #"
ICON = ":material/rocket:"


def hostile(text):
    return Text(f"{text.en} {HOSTILE}"[:500], f"{text.zh} {HOSTILE}"[:500] if text.zh else "")


@pytest.fixture(scope="module")
def hostile_home(tmp_path_factory):
    """A home whose federation, parties, label, features and codes have such names."""
    home = tmp_path_factory.mktemp("hostile")
    demo = write_demo(home / "demo", rows=300)
    parties = []
    for party in (demo.guest, *demo.hosts):
        table = pd.read_csv(home / "demo" / party.file, dtype=str)
        features = []
        for number, feature in enumerate(party.features):
            name = f"{feature.name} ` {ICON} :sunglasses:" if number % 2 == 0 else feature.name
            table = table.rename(columns={feature.name: name})
            codes = {code: hostile(text) for code, text in feature.categories.items()}
            changes = {"name": name, "meaning": hostile(feature.meaning), "categories": codes}
            features.append(feature.model_copy(update=changes))
        table.to_csv(home / "demo" / party.file, index=False)
        title = Text(f"{party.title.en} {ICON} :sunglasses:", f"{party.title.zh} {ICON}")
        parties.append(party.model_copy(update={"title": title, "features": tuple(features)}))
    label = demo.label.model_copy(update={"meaning": hostile(demo.label.meaning)})
    title = Text(f"{demo.title.en} {ICON}", f"{demo.title.zh} {ICON}")
    changes = {"guest": parties[0], "hosts": tuple(parties[1:]), "label": label, "title": title}
    write_federation(demo.model_copy(update=changes), home / "demo")
    with Glassleaf(home, pools=False) as glassleaf:
        glassleaf.federations.add(home / "demo")
        parameters = SecureBoostParameters(trees=2, depth=3, cipher="none")
        assert glassleaf.training.start(TrainingRequest("demo", parameters)).wait(120).result is not None
    yield home
    session._service(str(home)).close()


TABLES = ("arrow_table", "table")
MENUS = ("radio", "button_group", "pills", "segmented_control")
DRAWN_OTHERWISE = ("arrow_data_frame", "dataframe", "plotly_chart", "code", "html")


def markdown_of(node):
    """What Streamlit draws of a node of the page as Markdown."""
    if isinstance(node, Block):
        return [getattr(node.proto, "label", "")]  # of an expander, a tab, a popover
    if node.type in DRAWN_OTHERWISE:
        return []
    if node.type in TABLES:
        table = node.value
        return [str(cell) for cell in [*table.columns, *table.index, *table.to_numpy().ravel()]]
    texts = [getattr(node.proto, name, "") for name in ("body", "label", "help", "caption")]
    if node.type in MENUS:
        texts += [*getattr(node, "options", ()), *getattr(node.proto, "captions", ())]
    return [text for text in texts if isinstance(text, str)]


def drawn(text):
    """What of the hostile names Streamlit would draw: it reads icons and emoji after Markdown has taken the backslashes away."""
    shown = re.sub(r"\\([^\w\s])", r"\1", text)
    signs = [sign for sign in (ICON, ":sunglasses:") if sign in shown]
    return signs + re.findall(r"(?<!\\)(?::red\[red|\*\*bold|`code\\?`|\[link\\?\]\\?\(|<b>|\$x\\?\$)", text)


def check(at):
    assert not at.exception
    waiting = list(at._tree.children.values())
    while waiting:
        node = waiting.pop()
        if isinstance(node, Block):
            waiting += node.children.values()
        if getattr(node, "type", "") == "html":
            assert "<b>tag" not in node.proto.body
        for text in markdown_of(node):
            assert not drawn(text), (node.type, text)


@pytest.mark.parametrize("page", (*PAGES, "help"))
def test_no_page_draws_what_a_name_says(hostile_home, monkeypatch, page):
    check(_fresh(hostile_home, monkeypatch)(page, lang="zh" if page in ("structure", "score") else "en"))


def test_no_card_no_console_and_no_score_draws_what_a_name_says(hostile_home, monkeypatch):
    opened = _fresh(hostile_home, monkeypatch)
    at = opened("features")
    at.selectbox(key="feature").select(at.selectbox(key="feature").options[0]).run()
    check(at)
    at = opened("host")
    check(at.button_group(key="host_look").set_value("telecom").run())
    check(scored(opened("score")))
    check(opened("demonstration"))
    forget_jobs(hostile_home)


@pytest.mark.parametrize("text", ["a`b", "``", "`a", "a:material/x:b", "a"])
def test_a_name_in_code_ends_where_it_ends(text):
    written = code(text)
    fence = re.match("`+", written)[0]
    inner = written[len(fence) : -len(fence)]
    assert written.endswith(fence) and fence not in inner.strip(" ") and inner.strip(" ").replace("\u2060", "") == text
    assert ":material/" not in written
