"""Choosing how the next model is made, and this federation's models side by side.

What can be chosen comes from the parameter classes themselves, so that a page offers neither more nor less than a command.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import streamlit as st

from app import session, view_models
from app.panels import charts, controls, frame, lines, links, palette, sidebar
from app.texts import Texts, cut, label, markdown
from backend.errors import GlassleafError
from backend.results import RANKS
from backend.services.training import ALGORITHMS, CIPHERS, KEY_SIZES, METHODS, write_constraints

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.protocols.training.algorithms import Parameters
    from backend.results import ModelRecord
    from backend.services.lifecycle import ModelState

NAME_LETTERS = 18  # letters of a model's name that a sentence and the picture have room for
FIRST_PARAMETERS = {  # the few that matter; all others are under "more"
    "secureboost": ("trees", "depth", "learning_rate", "bins"),
    "forest": ("trees", "depth", "column_sample", "aggregation"),
    "fl-dt": ("depth", "bins", "min_gain"),
    "opboost": ("trees", "depth", "epsilon", "map"),
}
OWN_STEP_PARAMETERS = ("alignment", "cipher", "key_bits")  # these have a step of their own
BY_FEATURE = "constraints"  # drawn as two lists of features
BY_COLUMN = "weights"  # drawn as a choice of columns
TASKS = {  # where an algorithm or a parameter means nothing for the other tasks
    "fl-dt": ("binary", "classes"),
    "monotone": ("binary", "number"),
    BY_FEATURE: ("binary", "number"),
    "class_weight": ("binary", "classes"),
    "label_bound": ("binary", "classes"),
    "criterion": ("binary", "classes"),
}
PARAMETER_STEPS = {
    "learning_rate": 0.05,
    "label_bound": 0.01,
    "min_gain": 0.001,
    "min_child_weight": 0.5,
    "reg_lambda": 0.5,
    "alpha": 0.5,
}
USUAL_STEP = 0.05  # of every other parameter that is no whole number
MODEL_LANE_PIXELS = 46  # pixels of a model in the picture
MODELS_DRAWN = 8  # models in the picture; the table holds all


def federation(t: Texts, federations: Sequence[Federation], key: str) -> None:
    """Draw the choice of the federation whose data is used."""
    titles = t.federations(federations)
    st.selectbox(
        t("train.federation"), list(titles), key=key, format_func=titles.__getitem__, help=t("glossary.federation")
    )


def parties(t: Texts, federation: Federation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which Hosts take part and which features stay out; returns (hosts, excluded feature names)."""
    hosts = st.pills(
        t("train.hosts"),
        [host.name for host in federation.hosts],
        selection_mode="multi",
        default=[host.name for host in federation.hosts],
        key=f"train_hosts_{federation.name}",
        format_func=lambda name: palette.name(t, federation, name),
        help=t("glossary.host"),
    )
    offered = {}
    for party, feature in federation.features():
        if party == federation.guest.name or party in hosts:
            offered[feature.name] = feature
    excluded = st.multiselect(
        t("train.exclude"),
        list(offered),
        key=f"train_exclude_{federation.name}",
        format_func=lambda name: t.meaning(offered[name]),
        help=t("train.exclude_help"),
        placeholder=t("train.exclude_none"),
    )
    st.caption(f":material/target: {_label(t, federation)}")
    return tuple(hosts), tuple(excluded)


def _label(t: Texts, federation: Federation) -> str:
    """Return what is to be predicted, and of which kind it is."""
    words = {"label": markdown(t.label(federation)), "classes": len(federation.label.classes)}
    return t(f"train.label_{federation.label.task}", **words)


def algorithm(t: Texts, task: str) -> str:
    """Which way of growing a model, each with what it is and what it gives away."""
    offered = [name for name in ALGORITHMS if task in TASKS.get(name, (task,))]
    name_chosen = st.radio(
        t("train.algorithm"),
        offered,
        key=f"train_algorithm_{task}",
        format_func=lambda name: t(f"algorithm.name_{name}"),
        captions=[t(f"algorithm.what_{name}") for name in offered],
        label_visibility="collapsed",
        persist_state="session",
    )
    reveals = frame.box(t("train.reveals"), "visibility", "train_reveals_box")
    if reveals is not None:
        for name in offered:
            reveals.markdown(f"**{t(f'algorithm.name_{name}')}.** {t(f'algorithm.gives_{name}')}")
    left_out = [t(f"algorithm.name_{name}") for name in ALGORITHMS if name not in offered]
    if left_out:
        st.caption(f":material/info: {t('train.left_out', names=t.listed(left_out))}")
    return str(name_chosen)


def alignment(t: Texts, name: str) -> str:
    """How the people whom all parties know are found."""
    usual = METHODS.index(_usual(name, "alignment"))
    with st.expander(t("train.align"), icon=":material/group_work:", key="train_align_box"):
        st.markdown(t("alignment.why"))
        return str(
            st.radio(
                t("train.align"),
                METHODS,
                index=usual,
                key=f"train_alignment_{name}",
                format_func=lambda method: t(f"alignment.name_{method}"),
                captions=[t(f"alignment.what_{method}") for method in METHODS],
                label_visibility="collapsed",
                persist_state="session",
            )
        )


def parameters(
    t: Texts, name: str, task: str, method: str, ordered: Mapping[str, str], columns: Sequence[str]
) -> Parameters | None:
    """Draw the form of one algorithm; return None, with the reason on the page, if the choices do not fit each other.

    Parameters
    ----------
    ordered : mapping of str to str
        Features that predictions may be told to rise or fall with, in words.
    columns : sequence of str
        Of the Guest's file, any of which may hold sample weights.
    """
    names = []
    for f in fields(ALGORITHMS[name]):
        if f.name not in (*OWN_STEP_PARAMETERS, BY_FEATURE, BY_COLUMN) and task in TASKS.get(f.name, (task,)):
            names.append(f.name)
    values: dict[str, Any] = {"alignment": method}
    with st.grid("auto", min_column_width=150):
        for field in FIRST_PARAMETERS[name]:
            values[field] = _field(t, name, field)
    further = [field for field in names if field not in FIRST_PARAMETERS[name]]
    more = frame.box(t("train.more"), "tune", f"train_more_{name}")
    if more is None:
        values |= {field: st.session_state.get(f"train_{name}_{field}", _usual(name, field)) for field in further}
    else:
        with more, st.grid("auto", min_column_width=150):
            for field in further:
                values[field] = _field(t, name, field)
    if task in TASKS[BY_FEATURE]:
        values |= _constraints(t, name, ordered)
    values[BY_COLUMN] = _weights(t, columns)
    values |= _arithmetic(t, name)
    try:
        return ALGORITHMS[name](**values)
    except GlassleafError as error:
        frame.problem(t, error)
        return None


def ordered(t: Texts, federation: Federation, hosts: Collection[str], excluded: Collection[str]) -> dict[str, str]:
    """Features offered to the training whose values have an order, in words."""
    return {
        feature.name: t.meaning(feature)
        for party, feature in federation.features()
        if (party == federation.guest.name or party in hosts)
        and feature.name not in excluded
        and feature.kind.value != "categorical"
    }


def _constraints(t: Texts, name: str, features: Mapping[str, str]) -> dict[str, Any]:
    """Directions that predictions have to keep to, feature by feature; or why there are none, if Hosts hide the order of their values."""
    offered = BY_FEATURE in get_type_hints(ALGORITHMS[name])
    box = frame.box(t("parameter.constraints"), "trending_up", f"train_constraints_{name}")
    if box is not None:
        box.markdown(t("parameter.constraints_help" if offered else "lda.hidden_order"))
    if not offered:
        return {}
    directions: dict[str, int] = {}
    for way, sign in (("rise", 1), ("fall", -1)):
        free = [feature for feature in features if feature not in directions]
        key = f"train_{name}_{way}"
        features_chosen = [feature for feature in st.session_state.get(key, ()) if feature in free]
        if box is not None:
            features_chosen = box.multiselect(
                t(f"lda.{way}"),
                free,
                format_func=lambda feature: features[feature],
                key=key,
                placeholder=t("lda.no_feature"),
                persist_state="session",
            )
        directions |= dict.fromkeys(features_chosen, sign)
    return {BY_FEATURE: write_constraints(directions)}


def _weights(t: Texts, columns: Sequence[str]) -> str:
    """By which column records are weighed; empty if all count the same."""
    return str(
        st.selectbox(
            t("parameter.weights"),
            ["", *columns],
            key="train_weights",
            format_func=lambda column: markdown(column) or t("train.unweighted"),
            help=t("parameter.weights_help"),
            disabled=not columns,
            persist_state="session",
        )
    )


def _arithmetic(t: Texts, name: str) -> dict[str, Any]:
    """Draw cipher and key, if the algorithm computes on ciphertexts."""
    if "cipher" not in get_type_hints(ALGORITHMS[name]):
        st.info(t("train.no_cipher"), icon=":material/blur_on:")
        return {}
    cipher = controls.choice(
        t("train.cipher"),
        CIPHERS,
        "train_cipher",
        lambda scheme: t(f"train.cipher_{scheme}"),
        default=_usual(name, "cipher"),
        help=t("glossary.cipher"),
        wrap=True,
    )
    if cipher == "none":
        st.info(t("train.plain_warning"), icon=":material/science:")
        return {"cipher": cipher}
    if cipher == "rlwe":
        st.caption(f":material/info: {t('train.rlwe_note')}")
        return {"cipher": cipher}
    if cipher == "paillier-short":
        st.caption(f":material/info: {t('train.short_note')}")
    bits = controls.choice(
        t("train.key_bits"),
        KEY_SIZES,
        "train_key_bits",
        lambda size: t("train.bits", bits=f"{size:,}"),
        default=_usual(name, "key_bits"),
        help=t("glossary.key_bits"),
    )
    return {"cipher": cipher, "key_bits": bits}


def _field(t: Texts, name: str, field: str) -> Any:
    """One parameter, drawn by its type: a switch, a choice, or a number in its range."""
    kind = get_type_hints(ALGORITHMS[name])[field]
    usual = _usual(name, field)
    special = f"parameter.{field}_{name}_help"
    shared: dict[str, Any] = {
        "key": f"train_{name}_{field}",
        "help": t(special if t.has(special) else f"parameter.{field}_help"),
        "persist_state": "session",
    }
    title = t(f"parameter.{field}")
    if kind is bool:
        return st.toggle(title, value=usual, **shared)
    choices = get_args(kind)
    if choices:
        shared["format_func"] = lambda choice: t(f"choice.{field}_{choice}")
        if len(choices) > 2:  # too wide for a grid's cell
            return st.selectbox(title, choices, index=choices.index(usual), **shared)
        return st.segmented_control(title, choices, default=usual, required=True, **shared)
    low, high = (kind(bound) for bound in ALGORITHMS[name].RANGES[field])
    step = 1 if kind is int else PARAMETER_STEPS.get(field, USUAL_STEP)
    shape = None if kind is int else "%g"
    return st.number_input(title, min_value=low, max_value=high, value=usual, step=step, format=shape, **shared)


def _usual(name: str, field: str) -> Any:
    return getattr(ALGORITHMS[name](), field)


def cost(t: Texts, federation: Federation, parameters: Parameters, records: Sequence[ModelRecord]) -> None:
    """Draw how long it may take, from a measured run of the same algorithm and cipher on the same data; else that none was measured."""
    scheme = getattr(parameters, "cipher", RANKS).removesuffix("-short")
    measured = []
    for record in records:
        if (
            record.federation == federation.name
            and view_models.algorithm(record) == parameters.ALGORITHM
            and record.cipher == scheme
            and record.n_trees
        ):
            measured.append(record)
    if not measured:
        st.caption(f":material/schedule: {t('train.no_cost')}")
        return
    last = measured[0]
    n_trees = getattr(parameters, "trees", 1)
    grown = max(1, last.n_trees // (view_models.trees_a_round(last, federation)))
    words = {"trees": t("train.rounds", n=grown), "seconds": t.duration(last.seconds)}
    if n_trees == grown:
        st.caption(f":material/schedule: {t('train.cost_same', **words)}")
        return
    rough = t.duration(last.seconds / grown * n_trees)
    st.caption(f":material/schedule: {t('train.cost', rough=rough, asked=t('train.rounds', n=n_trees), **words)}")


def models(t: Texts, federation: Federation, records: Sequence[ModelRecord], states: Mapping[str, ModelState]) -> None:
    """Draw a federation's models, newest first: the sentence and the picture of the newest, all as rows, a link to the chosen one."""
    figures = view_models.FIGURES[federation.label.task]
    unit = t.unit(federation.label)
    names = {record.id: t.model(states[record.id].name) for record in records}
    called = {record.id: cut(names[record.id], NAME_LETTERS) or _unnamed(t, record) for record in records}
    words = _sentence(t, federation, records, called)
    st.markdown(words)
    frame.drawing(_dots(t, federation, _drawn(federation, records), called, words), "models_picture")
    trees = t("words.trees")
    leaves = t("words.leaves")
    seconds = t("overview.training_time")
    hosts = t("train.data")
    cells = {
        t("states.name"): [names[record.id] or record.id for record in records],
        t("overview.algorithm"): [frame.algorithm(t, record) for record in records],
        **{t(f"figure.{name}"): [frame.figure(record.metrics, name, unit) for record in records] for name in figures},
        trees: [f"{record.n_trees:,}" for record in records],
        leaves: [f"{record.n_leaves:,}" for record in records],
        seconds: [t.duration(record.seconds) for record in records],
        t("train.made"): [session.made(record) for record in records],
        t("train.cipher"): [_arithmetic_of(t, record) for record in records],
        hosts: [_data_of(t, federation, record) for record in records],
    }
    sortable = {t(f"figure.{name}"): [_shown(record, name) for record in records] for name in figures} | {
        trees: [record.n_trees for record in records],
        leaves: [record.n_leaves for record in records],
        seconds: [record.seconds for record in records],
    }
    number = st.column_config.NumberColumn
    text = st.column_config.TextColumn
    looks = {t(f"figure.{name}"): _figure_column(t, federation, name, unit) for name in figures}
    looks |= {trees: number(help=t("glossary.tree"), format="localized"), leaves: number(format="localized")}
    looks |= {seconds: number(format=f"%.1f {t('words.s')}")}
    looks |= {hosts: text(help=t("train.data_help"))}
    frame.rows(t, cells, "models", t("train.models"), {**cells, **sortable}, looks)
    if len({(record.parameters.get("seed"), record.hosts, record.exclude) for record in records}) > 1:
        st.caption(f":material/info: {t('train.unlike')}")
    by_id = {record.id: record for record in records}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = by_id[
            st.selectbox(
                t("sidebar.model"),
                list(by_id),
                format_func=lambda model_id: sidebar.named(t, by_id[model_id], states[model_id]),
                key="train_opened",
                width=360,
            )
        ]
        links.to_model(
            picked.id,
            t("train.open_one", name=names[picked.id] or frame.algorithm(t, picked), when=session.made(picked)),
        )


def _shown(record: ModelRecord, name: str) -> float:
    value = float(getattr(record.metrics, name))
    return 100 * value if name == "accuracy" else value


def _figure_column(t: Texts, federation: Federation, name: str, unit: str) -> Any:
    title = t.noted(t(f"figure.{name}"), unit if name == "rmse" else "")
    shape = {"accuracy": "%.1f %%", "rmse": "%.4g"}.get(name, "%.3f")
    return st.column_config.NumberColumn(title, format=shape, help=frame.about(t, federation.label.task, name))


def _arithmetic_of(t: Texts, record: ModelRecord) -> str:
    if record.cipher == RANKS:
        return t("train.ranks")
    if view_models.algorithm(record) == view_models.IMPORTED:
        return "–"
    return frame.cipher(t, record.cipher, record.key_bits)


def _data_of(t: Texts, federation: Federation, record: ModelRecord) -> str:
    """Marks of the Hosts that took part, and how many features were left out."""
    marks = " ".join(palette.mark(federation, host).glyph for host in record.hosts if host in _hosts(federation)) or "–"
    return marks + (f" · {t('train.without', n=len(record.exclude))}" if record.exclude else "")


def _hosts(federation: Federation) -> list[str]:
    return [host.name for host in federation.hosts]


def _known(federation: Federation, records: Sequence[ModelRecord]) -> list[ModelRecord]:
    """Return the models whose deciding figure is known, best first."""
    name = view_models.FIGURES[federation.label.task][0]
    sign = 1 if federation.label.task == "number" else -1
    measured = [record for record in records if not math.isnan(_shown(record, name))]
    return sorted(measured, key=lambda record: sign * _shown(record, name))


def _drawn(federation: Federation, records: Sequence[ModelRecord]) -> list[ModelRecord]:
    """Return the newest models, and the best one of all."""
    newest = list(records[:MODELS_DRAWN])
    best = _known(federation, records)[:1]
    if not best or best[0] in newest:
        return newest
    return newest[:-1] + best


def _unnamed(t: Texts, record: ModelRecord) -> str:
    """Return the title of a model without a name: how and when it was made."""
    return f"{frame.algorithm(t, record)} {session.made(record)}"


def _sentence(t: Texts, federation: Federation, records: Sequence[ModelRecord], called: Mapping[str, str]) -> str:
    """Return which model is best and which was made fastest."""
    measured = _known(federation, records)
    if len(measured) < 2:
        return t("train.models_few")
    best = measured[0]
    fast = min(measured, key=lambda record: record.seconds)

    def facts(record: ModelRecord) -> dict[str, str]:
        return {
            "name": markdown(called[record.id]),
            "quality": markdown(frame.quality(t, record, t.unit(federation.label))),
            "seconds": t.duration(record.seconds),
        }

    words = t("train.models_best", **facts(best))
    if fast is best:
        return words
    return t.joined(words, t("train.models_fast", **facts(fast)))


def _dots(
    t: Texts, federation: Federation, records: Sequence[ModelRecord], called: Mapping[str, str], sentence: str
) -> str:
    """Return a chart with a dot for each model under its words, so that a phone has room for both; the best one is filled."""
    name = view_models.FIGURES[federation.label.task][0]
    unit = t.unit(federation.label)
    values = [_shown(record, name) for record in records]
    measured = [value for value in values if not math.isnan(value)]
    best = (min if name == "rmse" else max)(measured, default=0.0)
    low = min(measured, default=0.0)
    high = max(measured, default=1.0)
    room = (high - low) * 0.08 or abs(high) * 0.05 or 0.05
    low = low - room
    high = high + room
    parts = []
    for row, (record, value) in enumerate(zip(records, values, strict=True)):
        figure = label(frame.figure(record.metrics, name, unit))
        about = f"{label(called[record.id])} · {t('train.trees', n=record.n_trees)} · {t.duration(record.seconds)}"
        y = MODEL_LANE_PIXELS * row + charts.TEXT
        parts.append(f'<text y="{y}" text-anchor="start"><tspan font-weight="600">{figure}</tspan>  {about}</text>')
        parts.append(f'<line x2="100%" y1="{y + 15}" y2="{y + 15}" stroke="{palette.FAINT}"/>')
        if not math.isnan(value):
            fill = palette.INK if value == best else charts.background()
            parts.append(
                f'<circle cx="{100 * (value - low) / (high - low):.2f}%" cy="{y + 15}" r="6" fill="{fill}" stroke="{palette.INK}" '
                f'stroke-width="2"><title>{figure}</title></circle>'
            )
    ground = MODEL_LANE_PIXELS * len(records) + charts.TEXT
    suffix = "\u00a0%" if name == "accuracy" else ""
    axis = lines.between("", low, high, lambda tick: f"{tick:,.6g}{suffix}")
    parts += [charts.annotation(100 * (at - low) / (high - low), ground, words) for at, words in axis.ticks.items()]
    title = t("train.axis_low" if name == "rmse" else "train.axis_high", figure=t(f"figure.{name}"))
    parts.append(charts.annotation(50, ground + charts.LINE + 4, label(title)))
    return charts.svg(parts, ground + charts.TICKS, sentence)


def learned(t: Texts, records: Sequence[ModelRecord]) -> None:
    """Draw what each party learned by the trainings of these models: a card for each way of training."""
    ways = dict.fromkeys(_learned(t, record) for record in records)
    with st.grid("auto", min_column_width=260):
        for name, guest, hosts in ways:
            with st.container(border=True, height="stretch"):
                who = {"guest": guest, "host": hosts}
                texts = []
                for role, words in who.items():
                    texts.append(t("words.about", what=t(f"words.{role}"), said=words))
                st.markdown("\n\n".join([f"**{markdown(name)}**", *texts]))


def _learned(t: Texts, record: ModelRecord) -> tuple[str, str, str]:
    """Return a training's algorithm, what the Guest learned, what each Host learned; by its parameters."""
    name = view_models.algorithm(record)
    parameters = record.parameters
    guest = [t(f"algorithm.guest_{name}")]
    hosts = [t(f"algorithm.hosts_{name}")]
    if name != view_models.IMPORTED:
        title = t(f"algorithm.name_{name}")
    else:
        title = t("algorithm.imported")
    if name == "forest" and parameters.get("aggregation") == "median":
        title = f"{title} · {t('choice.aggregation_median')}"
    if parameters.get("shuffle_sides"):
        title = f"{title} · {t('parameter.shuffle_sides')}"
        guest.append(t("algorithm.guest_shuffled"))
    if parameters.get("aggregation") == "median":
        guest.append(t("algorithm.guest_median"))
    if parameters.get("complete"):
        hosts.append(t("algorithm.hosts_complete"))
    if parameters.get("label_bound"):
        hosts.append(t("algorithm.hosts_bounded", bits=f"{parameters['label_bound']:g}"))
    if parameters.get("goss_other"):
        hosts.append(t("algorithm.hosts_goss"))
    if record.cipher == "none" and name != view_models.IMPORTED:
        title = f"{title} · {t('engine.label_none')}"
        hosts.append(t("algorithm.hosts_plain"))
    return title, t.joined(*guest), t.joined(*hosts)
