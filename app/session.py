"""The one place that reads and writes what a browser session remembers, its links, and the shared service.

Holds no key. Files that fields of pages took stay in the session that took them, never in another.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Container, MutableMapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urlsplit, urlunsplit
from zoneinfo import ZoneInfo

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.errors import Problem
from app.texts import Texts
from app.view_models import View
from backend.errors import GlassleafError, SignInError
from backend.i18n import LANGUAGES
from backend.jobs.memory import keep_no_large_blocks
from backend.results import NOBODY
from backend.services import Glassleaf
from backend.services.roles import OPERATOR, ROLES

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.navigation.page import Page
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from backend.explain.importance import Measure as ImportanceMeasure
    from backend.explain.stability import Interaction
    from backend.results import ModelRecord
    from backend.services.accounts import Account
    from backend.services.explanation import SteadyImportance
    from backend.services.lifecycle import Standing
    from backend.services.policies import Policy

PAGES = Path(str(files("pages")))
WALKED = "glassleaf_walked"  # the cookie that assets/page.js leaves
CARRIED = ("lang", "role", "model")  # what a link from page to page takes along


def service() -> Glassleaf:
    """The service that all sessions share, for this session's actor and role, found once while a page is drawn.

    Raises
    ------
    SignInError
        A sign-in is over.
    """
    if "service" in st.session_state:
        return cast(Glassleaf, st.session_state["service"])
    shared = _shared()
    try:
        who = account()
    except SignInError:
        st.rerun()  # the page of a fragment gives way to the sign-in; in a callback this does nothing
        raise
    if who is None:
        return shared.acting(NOBODY, role())
    return shared.signed_in(who, role())


def _shared() -> Glassleaf:
    return _service(os.environ.get("GLASSLEAF_HOME", ""))


@st.cache_resource(show_spinner=False)
def _service(home: str) -> Glassleaf:
    keep_no_large_blocks()
    return Glassleaf(Path(home) if home else None)


def policy(view: View) -> Policy:
    """Return the policy of the model of a page that holds today."""
    return service().policies.in_force(view.record.id)


def view(model_id: str) -> View:
    """Return one model as the pages read it; what the rules say of it, and what people answered, as of now.

    The same object until one of these changes, so that its charts are drawn once.
    """
    report = service().compliance.assess(model_id)
    newest = _newest(os.environ.get("GLASSLEAF_HOME", ""), model_id)
    if (view := newest[0]).compliance != report:
        newest[0] = view = replace(view, compliance=report)
    return view


@st.cache_resource(show_spinner=False, max_entries=16)
def _newest(home: str, model_id: str) -> list[View]:
    return [_view(home, model_id)]


def _view(home: str, model_id: str) -> View:
    backend = _service(home)
    record = backend.models.get(model_id)
    return View(
        record=record,
        federation=backend.federations.get(record.federation),
        model=backend.models.guest_model(model_id),
        importance=backend.explanation.importance(model_id),
        directions=backend.explanation.directions(model_id),
        compliance=backend.compliance.assess(model_id),
    )


def samples(model_id: str) -> pd.DataFrame:
    """Return the Guest's own rows, read once per model; not to be changed in place."""
    return _samples(os.environ.get("GLASSLEAF_HOME", ""), model_id)


@st.cache_resource(show_spinner=False, max_entries=4)
def _samples(home: str, model_id: str) -> pd.DataFrame:
    return _service(home).samples.table(model_id)


def steady(model_id: str, measure: ImportanceMeasure, *, by_party: bool = False) -> tuple[SteadyImportance, ...]:
    """Importances with their intervals, drawn once per model and measure."""
    return _steady(os.environ.get("GLASSLEAF_HOME", ""), model_id, measure, by_party)


@st.cache_resource(show_spinner=False, max_entries=64)
def _steady(home: str, model_id: str, measure: ImportanceMeasure, by_party: bool) -> tuple[SteadyImportance, ...]:
    return _service(home).explanation.steady_importance(model_id, measure, by_party=by_party)


def pairs(model_id: str) -> tuple[Interaction, ...]:
    """Features that meet on paths, looked for once per model."""
    return _pairs(os.environ.get("GLASSLEAF_HOME", ""), model_id)


@st.cache_resource(show_spinner=False, max_entries=16)
def _pairs(home: str, model_id: str) -> tuple[Interaction, ...]:
    return _service(home).explanation.interactions(model_id)


def page(name: str) -> Path:
    """The file of the page called `name`."""
    return PAGES / f"{name}.py"


def target(name: str) -> Page:
    """Return what a link to the page called `name` leads to: the page itself, for Streamlit would follow a file's path for every link."""
    page: Page = kept("pages")[name]
    return page


# -- who ----------------------------------------


def role() -> str:
    """The role chosen in the sidebar, at first the one that a link names: one that the account has; without a sign-in, any."""
    if "role" not in st.session_state:
        st.session_state["role"] = st.query_params.get("role", OPERATOR)
    if st.session_state["role"] not in roles():
        st.session_state["role"] = roles()[0]
    return str(st.session_state["role"])


def roles() -> tuple[str, ...]:
    """Return the roles to choose from."""
    who = account()
    return ROLES if who is None else who.roles


def account() -> Account | None:
    """Who is signed in; None if there is no sign-in. Asked once while a page is drawn, and for all else again: a sign-in ends meanwhile.

    Raises
    ------
    SignInError
        Somebody has to sign in: the home or Streamlit is set up for it.
    """
    if "account" in st.session_state:
        return cast("Account | None", st.session_state["account"])
    return _shared().accounts.of_session(dict(st.user))


def why_out() -> SignInError | None:
    """Begin to draw a page, for one account until `depart`; return why a sign-in is needed, or None."""
    _forget_who()
    try:
        st.session_state["account"] = account()
    except SignInError as error:
        return error
    st.session_state["service"] = service()
    return None


def _forget_who() -> None:
    for name in ("account", "service"):
        st.session_state.pop(name, None)


def known_as() -> str:
    """Return what people call the account; empty if there is no sign-in."""
    who = account()
    return who.name if who else ""


def actor() -> str:
    """Return whom the audit log names."""
    who = account()
    return who.actor if who else NOBODY


def decides_as() -> str:
    """Return the name under which the signed-in user decides; empty if a name is asked for."""
    who = account()
    return who.actor if who else ""


def note_sign_in() -> None:
    """Log a sign-in once a session."""
    who = account()
    if who is not None and kept("signed_in") != who.actor:
        keep("signed_in", who.actor)
        service().audit.note_sign_in("oidc")


def attempt(success: str, act: Callable[[], object]) -> None:
    """Do something that may be refused, and draw the page again, which shows the reason, or `success`."""
    try:
        act()
    except GlassleafError as error:
        st.session_state["outcome"] = False, error
    else:
        st.session_state["outcome"] = True, success
    st.rerun()


def outcome() -> tuple[bool, Problem] | None:
    """What became of the last attempt (whether it succeeded, and the words), once."""
    result: tuple[bool, Problem] | None = st.session_state.pop("outcome", None)
    return result


# -- language ----------------------------------------


def texts() -> Texts:
    """The catalogue in this session's language: the one that the first link names, else the browser's."""
    if "language" not in st.session_state:
        language = st.query_params.get("lang", "")
        if language in LANGUAGES:
            st.session_state["language"] = language
        else:
            st.session_state["language"] = _browsers()
    current = st.session_state["language"]
    return Texts(current if current in LANGUAGES else "en")


def _browsers() -> str:
    """The language that the browser is set to."""
    if (st.context.locale or "").startswith("zh"):
        return "zh"
    return "en"


# -- the first visit ----------------------------------------


def walking() -> bool:
    """Whether the first steps are shown: until they are over, once in a browser."""
    return bool(kept("walking", WALKED not in st.context.cookies))


def begin_walk() -> None:
    """Show the first steps again."""
    keep("walking", True)


def end_walk() -> None:
    """Show the first steps no more."""
    keep("walking", False)


# -- the address ----------------------------------------


def arrive(page_name: str) -> None:
    """Begin a run of the page called `page_name`: from now on its address is written once, by `depart`.

    Every write is an entry of the browser's history, and one made before the browser has turned the page is an entry
    of the old page. So links bring along what the page would write (`place`), and only what differs is written.
    """
    st.session_state["here"] = page_name
    st.session_state["address"] = st.query_params.to_dict()
    if once("drawn_in", texts().language):
        _draw_choices_again()
    _put("lang", texts().language, _browsers())
    _put("role", role(), OPERATOR)


def _draw_choices_again() -> None:
    """Have every menu show its choice in another language; the browser alone keeps the words that it was chosen by."""
    for name, value in st.session_state.items():
        if isinstance(value, str):
            st.session_state[name] = value


def depart() -> None:
    """End a run: write the address, if it has changed, and ask again from now on who is signed in."""
    _forget_who()
    if "address" not in st.session_state:  # access was refused, or another run took over before the page was known
        return
    address: dict[str, str] = st.session_state.pop("address")
    if address != st.query_params.to_dict():
        st.query_params.from_dict(address)
    published = {}
    for name, value in address.items():
        if name in st.session_state.get("published", ()):
            published[name] = value
    keep(f"place:{st.session_state['here']}", (address.get("model"), published))


def place(page_name: str, **links: str) -> dict[str, str]:
    """Return what a link to a page has to name: language, role and model, what was last chosen there, and `links`."""
    address = _address()
    carried = {name: address[name] for name in CARRIED if name in address}
    model, links_of_page = kept(f"place:{page_name}", (None, {}))
    return carried | (links_of_page if model == carried.get("model") else {}) | links


def presenting() -> bool:
    """Whether the page is a presentation: nothing else belongs on the screen."""
    return bool(st.session_state.get("here") == "demonstration")


def opens_on() -> str:
    """Return the page that a home without a model opens on, once a session; empty if it is not set, or was opened."""
    page = os.environ.get("GLASSLEAF_OPEN", "").strip()
    return page if page and once("opened_on", page) else ""


def opened_by_command() -> bool:
    """Return whether this session was led to the page of :func:`opens_on`."""
    return bool(kept("opened_on"))


def going_back() -> bool:
    """Return whether the browser's Back or Forward led here: then the address names all that is not as usual."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _address() -> MutableMapping[str, str]:
    """The address to be: while a page is drawn it waits for `depart`; a callback finds the browser's."""
    pending: MutableMapping[str, str] | None = st.session_state.get("address")
    return st.query_params if pending is None else pending


def _put(name: str, value: str, default: str | None) -> None:
    """Name `value` in the address, unless it is the default; what a link named stays named."""
    if name in _address() or value != default:
        _address()[name] = value


# -- what a link names ----------------------------------------


def bind(name: str, options: Sequence[str], default: str | None) -> str:
    """Prepare the widget that chooses `name`; returns its key. A link wins, then the last choice, then `default`.

    A link that names something unknown leaves a notice and changes nothing.
    """
    st.session_state[f"default:{name}"] = default
    linked = _address().get(name)
    if linked is not None and linked != st.session_state.get(f"link:{name}"):
        matches = [option for option in options if option == linked] or [o for o in options if o.startswith(linked)]
        if len(matches) == 1 or linked in options:
            st.session_state[name] = matches[0]
        else:
            st.session_state.setdefault("notices", []).append((name, linked))
    elif linked is None and going_back():
        st.session_state[name] = default
    if st.session_state.get(name) not in options:
        previous = st.session_state.get(f"link:{name}")
        if previous in options:
            st.session_state[name] = previous
        else:
            st.session_state[name] = default
    return name


def linked(name: str, options: Container[str]) -> str | None:
    """What the address names as `name`, as long as it is there; a link to something unknown leaves a notice."""
    value = _address().get(name)
    if value is None or value in options:
        return value
    st.session_state.setdefault("notices", []).append((name, value))
    forget(name)
    return None


def detail(name: str, within: str, options: Container[str]) -> str | None:
    """As `linked`, for something inside the choice of `within`: dropped once another is chosen; to be asked before that is published."""
    if _address().get(within, st.session_state[f"default:{within}"]) != st.session_state.get(within):
        forget(name)
    return linked(name, options)


def forget(name: str) -> None:
    """Take `name` out of the address."""
    _address().pop(name, None)


def adopt(name: str, widget: str, clear: Sequence[str] = ()) -> None:
    """Let a link fill a text field, before the field is drawn; `clear` names widgets that would hide what is linked to."""
    linked = _address().get(name, "" if going_back() else None)
    if linked is not None and linked != st.session_state.get(f"link:{name}"):
        st.session_state[widget] = linked
        for widget_cleared in clear:
            st.session_state.pop(widget_cleared, None)


def announce(name: str, value: str) -> None:
    """Write the text of a field into the address, so that the page can be linked to in this state."""
    st.session_state[f"link:{name}"] = value
    st.session_state.setdefault("published", set()).add(name)
    if value:
        _address()[name] = value
    else:
        forget(name)


def address(page_name: str, **links: str) -> str:
    """The full address of a page, to be copied."""
    here = urlsplit(st.context.url or "")
    if here.path.rstrip("/"):
        folder = here.path.rsplit("/", 1)[0]
    else:
        folder = ""
    return urlunsplit((here.scheme, here.netloc, f"{folder}/{page_name}", urlencode(links), ""))


def remember(name: str, options: Sequence[Any]) -> str:
    """Prepare a widget whose choice outlives its page but never enters the address (a person's id); return its key."""
    if st.session_state.get(name) not in options:
        kept_before = kept(name)
        if kept_before in options:
            st.session_state[name] = kept_before
        elif options:
            st.session_state[name] = options[0]
        else:
            st.session_state[name] = None
    keep(name, st.session_state[name])
    return name


def choose_person(model_id: str, sample: str) -> None:
    """Choose a person the Guest knows on Score, from a button's callback; the id enters no address."""
    keep("sample", sample)
    part = str(samples(model_id).at[sample, "part"])
    for name, value in {"sample": sample, "score_way": "pick", "score_part": part, "score_filter": ""}.items():
        choose(name, value)


def draw(name: str, options: Sequence[str]) -> None:
    """Choose one of `options` at random for `name`, from a button's callback."""
    st.session_state[name] = random.choice(options)


def publish(name: str) -> str | None:
    """Write the choice of `name` into the address, if it is not the default, and return it."""
    value = st.session_state.get(name)
    if value is None:
        forget(name)
        st.session_state.pop(f"link:{name}", None)
        return None
    _put(name, value, st.session_state.get(f"default:{name}"))
    st.session_state[f"link:{name}"] = value
    st.session_state.setdefault("published", set()).add(name)
    return str(value)


def clock(moment: datetime, zone: str | None, form: str = "%H:%M:%S") -> str:
    """Return the time of day in the reader's `zone`, as a browser names it; the server's where that says nothing."""
    try:
        local = moment.astimezone(ZoneInfo(zone) if zone else None)
    except (KeyError, ValueError):
        local = moment.astimezone()
    return local.strftime(form)


def made(record: ModelRecord) -> str:
    """When a model was made, by the reader's clock: month, day, hour and minute."""
    return clock(datetime.fromisoformat(record.created).replace(tzinfo=UTC), st.context.timezone, "%m-%d %H:%M")


def once(name: str, value: object) -> bool:
    """Return whether `value` is new under `name` since the last time that this was asked."""
    previous = kept(name)
    keep(name, value)
    return bool(previous != value)


def choose(name: str, value: object) -> None:
    """Choose `value` for `name` from a button's callback (before the widgets are drawn)."""
    st.session_state[name] = value


def empty(names: Sequence[str]) -> None:
    """Empty some fields, from a button's callback."""
    for name in names:
        st.session_state[name] = None


def swap(first: str, second: str) -> None:
    """Exchange two choices, from a button's callback."""
    st.session_state[first], st.session_state[second] = st.session_state[second], st.session_state[first]


def selected_row(name: str) -> int | None:
    """The row chosen in the table called `name`."""
    if name in st.session_state:
        rows = st.session_state[name]["selection"]["rows"]
    else:
        rows = []
    return int(rows[0]) if rows else None


def notices() -> list[tuple[str, str]]:
    """Links followed in this run that named something unknown: (what, the name), each once."""
    return list(st.session_state.pop("notices", []))


# -- the chosen model ----------------------------------------


def models() -> list[ModelRecord]:
    """Return all models, newest first."""
    return service().models.all()


def chosen_model() -> str | None:
    """Id of the model chosen in the sidebar; None if there is no model yet."""
    model_id = st.session_state.get("model")
    return str(model_id) if model_id else None


def standing() -> Standing | None:
    """Return what the chosen model is called and how far it has come; None if there is no model yet."""
    model_id = chosen_model()
    if model_id:
        return service().lifecycle.standing(model_id)
    return None


def host_title(t: Texts, name: str) -> str:
    """Return what a Host is called where every federation that it belongs to calls it the same; else its name."""
    federations = service().federations.all()
    titles = set()
    for federation in federations:
        if any(party.name == name for party in federation.hosts):
            titles.add(t.party(federation, name))
    return titles.pop() if len(titles) == 1 else name


# -- memory ----------------------------------------


def keep(name: str, value: object) -> None:
    """Remember `value` for this session."""
    st.session_state[f"kept:{name}"] = value


def kept(name: str, default: Any = None) -> Any:
    """What was kept under `name`."""
    return st.session_state.get(f"kept:{name}", default)


# -- files ----------------------------------------


def uploads(field: str) -> tuple[UploadedFile, ...]:
    """Files that the field of this key took, on whatever page one was since: until they are dropped, or others take their place."""
    files: tuple[UploadedFile, ...] = kept(f"uploads:{field}", ())
    return files


def upload_shown(field: str, files: Sequence[UploadedFile]) -> tuple[UploadedFile, ...]:
    """Note the files that a field shows itself; return those that it took before its page was left."""
    keep(f"shown:{field}", tuple(files))
    return tuple(file for file in uploads(field) if file not in files)


def take_uploads(field: str) -> None:
    """What a field holds has changed: several files are added to those of before, one takes the place of another."""
    now = st.session_state[field]
    if isinstance(now, list):
        files_before = kept(f"shown:{field}", ())
        files = (*(file for file in uploads(field) if file not in files_before), *now)
    else:
        files = () if now is None else (now,)
    _leave_uploads(field, files)


def drop_upload(field: str, file: UploadedFile) -> None:
    """Forget a file that a field took."""
    _leave_uploads(field, tuple(upload for upload in uploads(field) if upload != file))


def _leave_uploads(field: str, files: Sequence[UploadedFile]) -> None:
    """Keep these alone; Streamlit would hold the others to the end of the session."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        for file in uploads(field):
            if file not in files:
                context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
    keep(f"uploads:{field}", tuple(files))


def rerun() -> None:
    """Draw the whole page again."""
    st.rerun()
