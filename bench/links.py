"""What links between companies cost beside the simulation: the Guest here, every Host a process of its own, mTLS on localhost.

The credit-card data in three parties (the demo, where it is absent). What is compared is measured in turns, so that a busy machine
hits both: trainings under RLWE, people scored one by one in an open conversation, and a table scored as a whole. Then Hosts dial
through a line that delays every byte by :data:`DELAY` each way, and people are scored one by one again.

``LINKS_ROWS=100000 python -m bench.links`` scores a table of 100,000 rows instead of 5,000: the parties' rows repeated under new ids,
once the model is trained, then read from a file and scored in groups as `glassleaf score` does; in one turn beyond 20,000.
``LINKS_ONLY=near,far,table,training python -m bench.links`` measures what it names and writes it into ``bench/results/links.json``,
where all else stays.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from statistics import median, quantiles
from typing import Any, TypeVar

import tomli_w

from backend.data.credit_card import (
    CREDIT_CARD_FEATURES,
    DICTIONARY,
    GUEST_COLUMNS,
    HOST_COLUMNS,
    ID_COLUMN,
    LABEL,
    LABEL_MEANING,
    POSITIVE,
)
from backend.data.demo import write_demo
from backend.data.federation import Federation, write_federation
from backend.data.split import Division, split_table
from backend.errors import ApprovalPending
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.companies import Companies, part_companies
from backend.services.host_operator import own_host
from backend.services.online import OpenModel, Person
from backend.services.samples import SAMPLES
from backend.services.scoring import ScoringRequest
from backend.services.streaming import StreamRequest
from bench import setting
from bench.setting import fresh_folder, progress, run, train
from bench.stream import repeat
from bench.tables import links as describe
from bench.timing import interleaved, seconds_of

T = TypeVar("T")
TREES = 10
DEPTH = 4
SCORES = 60
REPEATS = 3
ROWS = int(os.environ.get("LINKS_ROWS", SAMPLES.max_rows))  # of one request; more are scored in groups
ONE_TURN = 20_000  # rows beyond which a table is scored once
KINDS = ("near", "far", "table", "training")
RESULTS = Path(__file__).with_name("results") / "links.json"
WARM = 5  # scores that are left out: keys, tables, the first question of a conversation
DELAY = 0.010  # seconds each way
SPUN = (
    0.0002  # seconds before a piece is due in which its thread looks at the clock; the kernel wakes it some 0.1 ms late
)
QUICK = 6, 60, 1, 2
PERSONAL = [column for column in HOST_COLUMNS if not column.startswith("PAY_")]
UNTIL = date(2100, 1, 1)


def measure(quick: bool = False) -> dict[str, Any]:
    """Ratios to the simulation, and milliseconds over the delayed line."""
    only = chosen(os.environ.get("LINKS_ONLY", ""))
    scores, rows, repeats, trees = QUICK if quick else (SCORES, ROWS, REPEATS, TREES)
    turns = 1 if rows > ONE_TURN else repeats
    delay = f"{1000 * DELAY:g} ms each way"
    found: dict[str, dict[str, Any]] = {}
    with fresh_folder() as folder:
        federation = written(folder / "tables", quick)
        companies = part_companies(federation, folder / "companies", budget=0)
        home = folder / "together"
        with opened(companies, home, federation) as both:
            training, records = both.trainings(trees, repeats if "training" in only else 1)
            if "near" in only:
                found["near"] = row("one score", both.singles(records, scores), at_most=3.0)
        if "far" in only:
            with delayed(companies), opened(companies, home, federation) as both:
                far = both.singles(records, scores)
            found["far"] = row(f"one score, {delay}", far, at_most_ms=110.0, p95_at_most_ms=150.0)
        if "table" in only:
            if rows > SAMPLES.max_rows:
                lengthen(federation, companies, rows)
            with opened(companies, home, federation) as both:
                bulk = both.tables(records, rows, turns)
            found["table"] = row(f"{rows:,} rows{', one turn' if turns < repeats else ''}", bulk, at_least=0.7)
        if "training" in only:
            found["training"] = row(f"training, {trees} trees", training, at_most=1.3)
    facts = {"data": federation.title.en, "hosts": len(federation.hosts), "leaves": records[0].n_leaves, "trees": trees}
    measured = {**facts, "depth": DEPTH, "scores": scores, "repeats": repeats, "rows": list(found.values())}
    return measured if quick or only == KINDS else merged(measured, RESULTS)


def chosen(names: str) -> tuple[str, ...]:
    """The kinds of row that ``LINKS_ONLY`` names, in their order; all where it names none."""
    asked = {name.strip() for name in names.split(",") if name.strip()}
    if not asked <= {*KINDS}:
        raise SystemExit(f"LINKS_ONLY is {names!r}; name some of {', '.join(KINDS)}.")
    return tuple(kind for kind in KINDS if not asked or kind in asked)


def merged(measured: dict[str, Any], file: Path) -> dict[str, Any]:
    """What a results file holds with the rows that were measured now, each in the place of the one of its name; writes the file.

    Each row then says on which machine and day it was measured. Ends the program, and leaves the file, where its other rows are of another
    model or way of measuring; what was measured now is in what it says then.
    """
    before = json.loads(file.read_text(encoding="utf-8"))
    here = setting.machine()
    facts = {name: value for name, value in measured.items() if name != "rows"}
    differ = [name for name, value in facts.items() if before[name] != value]
    if differ:
        raise SystemExit(
            f"{file} is of other {', '.join(differ)}; measure all rows. Measured now: {json.dumps(measured)}"
        )
    rows = {one["name"]: {"machine": before["machine"], **one} for one in before["rows"]}
    rows |= {one["name"]: {"machine": here, **one} for one in measured["rows"]}
    whole = {"machine": here, **facts, "rows": list(rows.values())}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    new.replace(file)
    return whole


def written(folder: Path, quick: bool) -> Federation:
    """The parties' tables: credit cards at a bank and two Hosts, or the demo; without limits, so that they can be asked again."""
    if quick or not setting.CREDIT_CARD.exists():
        federation = write_demo(folder, rows=200 if quick else 6_000)
    else:
        held = {"platform": PERSONAL, "bureau": [column for column in HOST_COLUMNS if column not in PERSONAL]}
        division = Division(
            label=LABEL,
            guest=GUEST_COLUMNS,
            hosts=held,
            id_column=ID_COLUMN,
            positive=POSITIVE,
            dictionary=DICTIONARY,
            name="cards",
            title=f"Credit cards, {len(CREDIT_CARD_FEATURES)} features",
            label_meaning=LABEL_MEANING.en,
        )
        federation = split_table(setting.CREDIT_CARD, division, folder).federation
    free = tuple(host.model_copy(update={"budget": 0}) for host in federation.hosts)
    federation = federation.model_copy(update={"hosts": free, "folder": folder})
    write_federation(federation, folder)
    return federation


@contextmanager
def opened(companies: Companies, home: Path, federation: Federation) -> Iterator[Both]:
    """The simulation, and the companies' Guest with every Host as a process."""
    with Glassleaf(home, pools=False) as together, hosts(companies), Glassleaf(companies.home, pools=False) as apart:
        for glassleaf, folder in ((together, federation.folder), (apart, companies.guest)):
            if not glassleaf.federations.all():
                glassleaf.federations.add(folder)
        yield Both(companies, together, apart, federation.name)


def lengthen(federation: Federation, companies: Companies, rows: int) -> None:
    """Every party's table, in the simulation and at its company, with so many rows; the model was trained on the originals."""
    folders = {federation.guest.name: companies.guest, **companies.hosts}
    for party in federation.parties:
        for folder in (federation.folder, folders[party.name]):
            repeat(folder / party.file, party.id, rows)


class Both:
    """The simulation and the companies' Guest, asked for the same in turns."""

    def __init__(self, companies: Companies, together: Glassleaf, apart: Glassleaf, simulated: str) -> None:
        self._companies = companies
        self._sides = {"simulation": together, "links": apart}
        self._names = {"simulation": simulated, "links": "companies"}

    def trainings(self, trees: int, repeats: int) -> tuple[dict[str, list[float]], list[ModelRecord]]:
        """Seconds of each training, alignment and messages included and the check before release not; and each side's last model."""
        progress("links: training")
        parameters = SecureBoostParameters(trees=trees, depth=DEPTH, learning_rate=0.1, cipher="rlwe")
        tasks = {side: lambda side=side: self._trained(side, parameters) for side in self._sides}
        grown = interleaved(tasks, repeats)
        return {side: [one.seconds for one in of] for side, of in grown.items()}, [of[-1] for of in grown.values()]

    def _trained(self, side: str, parameters: SecureBoostParameters) -> ModelRecord:
        return self._allowed(lambda: train(self._sides[side], self._names[side], parameters))

    def singles(self, records: list[ModelRecord], scores: int) -> dict[str, list[float]]:
        """Seconds of each person's score, one after the other in a conversation that stays open."""
        progress("links: one by one")
        opened = [one.online.open(record, "rlwe") for one, record in zip(self._sides.values(), records, strict=True)]
        ids = self._sides["simulation"].models.test_ids(records[0])[: scores + WARM]
        people = [[Person(one)] for one in ids]
        tasks = {side: self._next(model, people) for side, model in zip(self._sides, opened, strict=True)}
        found = interleaved(tasks, len(people))
        for model in opened:
            model.close()
        return {side: seconds[WARM:] for side, seconds in found.items()}

    def _next(self, model: OpenModel, people: list[list[Person]]) -> Callable[[], float]:
        left = iter(people)

        def score() -> float:
            sheet = model.sheet(next(left))
            began = time.perf_counter()
            batch = self._allowed(lambda: model.score(sheet))
            seconds = time.perf_counter() - began
            model.handed_over(batch)
            return seconds

        return score

    def tables(self, records: list[ModelRecord], rows: int, repeats: int) -> dict[str, list[float]]:
        """Seconds of a table of so many rows."""
        progress(f"links: {rows:,} rows")
        with fresh_folder() as folder:
            tasks = {}
            for (side, glassleaf), record in zip(self._sides.items(), records, strict=True):
                people = folder / f"{side}.csv"
                ids = glassleaf.federations.get(record.federation).guest.id
                glassleaf.samples.table(record.id).head(rows).drop(columns="part").rename_axis(ids).to_csv(people)
                score = (self._in_groups if rows > SAMPLES.max_rows else self._at_once)(glassleaf, record, people)
                tasks[side] = lambda score=score: seconds_of(lambda: self._allowed(score))
            return interleaved(tasks, repeats)

    @staticmethod
    def _at_once(glassleaf: Glassleaf, record: ModelRecord, people: Path) -> Callable[[], object]:
        sheet = glassleaf.samples.read(record.id, people)
        return lambda: glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="rlwe")).get()

    @staticmethod
    def _in_groups(glassleaf: Glassleaf, record: ModelRecord, people: Path) -> Callable[[], object]:
        out = people.with_suffix(".scores.csv")

        def score() -> object:
            out.unlink(missing_ok=True)
            return glassleaf.streaming.start(StreamRequest(record.id, people, out, cipher="rlwe")).get()

        return score

    def _allowed(self, ask: Callable[[], T]) -> T:
        """What is asked, allowed by every Host's operator where it waits for that."""
        while True:
            try:
                return ask()
            except ApprovalPending:
                for folder in self._companies.hosts.values():
                    operator = own_host(folder, "operator")
                    for request in operator.requests(waiting=True):
                        operator.approve(request.approval.number, UNTIL, 10_000_000)
                    operator.close()


@contextmanager
def hosts(companies: Companies) -> Iterator[None]:
    """Every Host as `glassleaf host serve` in its own folder."""
    command = [sys.executable, "-m", "glassleaf", "host", "serve", "--config"]
    running = [
        subprocess.Popen([*command, str(folder / "host.toml")], stdout=sys.stderr)  # noqa: S603 (our own command)
        for folder in companies.hosts.values()
    ]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


@contextmanager
def delayed(companies: Companies) -> Iterator[None]:
    """Hosts dial through a line that keeps every byte for :data:`DELAY`."""
    context = multiprocessing.get_context("spawn")  # a process of its own: it shares no lock with the Guest
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_line, args=(companies.port, theirs), daemon=True)
    process.start()
    port = ours.recv()
    for folder in companies.hosts.values():
        path = folder / "host.toml"
        shutil.copy(path, folder / "before.toml")
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
        settings["link"] = {"connect": {companies.guest.name: f"127.0.0.1:{port}"}}
        path.write_text(tomli_w.dumps(settings), encoding="utf-8")
    try:
        yield
    finally:
        process.terminate()
        process.join()
        for folder in companies.hosts.values():
            (folder / "before.toml").replace(folder / "host.toml")


def _serve_line(target: int, parent: Connection) -> None:
    listener = line(target)
    parent.send(listener.getsockname()[1])
    threading.Event().wait()


def line(target: int) -> socket.socket:
    """A port of this machine that leads to another one, :data:`DELAY` away, until it is closed.

    Threads, since an event loop waits whole milliseconds: a timer of epoll has no finer ones.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):  # it was closed
            while True:
                near, _ = listener.accept()
                threading.Thread(target=_connect, args=(near, target), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener


def _connect(near: socket.socket, target: int) -> None:
    """Both ways of one connection."""
    # nothing listens there yet, or an end was cut
    with near, suppress(OSError), socket.create_connection(("127.0.0.1", target)) as far:
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_keep, args=(far, near), daemon=True)
        back.start()
        _keep(near, far)
        back.join()


def _keep(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes, each piece :data:`DELAY` after it came, however many are on the way; returns once the last one has gone."""
    on_the_way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
    delivering = threading.Thread(target=_deliver, args=(on_the_way, sink), daemon=True)
    delivering.start()
    with suppress(OSError):
        while blob := source.recv(1 << 16):
            on_the_way.put((time.perf_counter() + DELAY, blob))
    on_the_way.put((time.perf_counter() + DELAY, b""))
    delivering.join()


def _deliver(on_the_way: SimpleQueue[tuple[float, bytes]], sink: socket.socket) -> None:
    with suppress(OSError):
        while True:
            due, blob = on_the_way.get()
            wait_until(due)
            if not blob:
                sink.shutdown(socket.SHUT_WR)
                return
            sink.sendall(blob)


def wait_until(due: float) -> None:
    """Return at a moment of :func:`time.perf_counter`, to a tenth of a millisecond where a core is free."""
    while (left := due - time.perf_counter()) > 0:
        time.sleep(max(0.0, left - SPUN))


def row(name: str, seconds: dict[str, list[float]], **aim: float) -> dict[str, Any]:
    """Medians, the links' 95th percentile, the median ratio turn by turn, and whether the aims are reached.

    Parameters
    ----------
    aim : float
        ``at_most``: times as long as the simulation; ``at_least``: of its throughput; ``at_most_ms``, ``p95_at_most_ms``: over links.
    """
    alone = seconds["simulation"]
    linked = seconds["links"]
    worst = quantiles(linked, n=20, method="inclusive")[-1] if len(linked) > 1 else linked[0]
    times = median(b / a for a, b in zip(alone, linked, strict=True))
    reached = {
        "at_most": times <= aim.get("at_most", times),
        "at_least": 1 / times >= aim.get("at_least", 1 / times),
        "at_most_ms": 1000 * median(linked) <= aim.get("at_most_ms", float("inf")),
        "p95_at_most_ms": 1000 * worst <= aim.get("p95_at_most_ms", float("inf")),
    }
    return {
        "name": name,
        "simulation_seconds": median(alone),
        "links_seconds": median(linked),
        "links_p95_seconds": worst,
        "ratio": times,
        "aim": {**aim, "reached": all(reached.values())},
    }


if __name__ == "__main__":
    run(__doc__, measure, describe)
