"""One database a party: what homes of 0.1 and 0.2 kept in a file a store is taken over, all or nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0001"
down_revision = None
branch_labels = depends_on = None

EVERYBODY = " *"
BEFORE = "before 0.3"  # stands for the structure of models that were counted by their id
# table → the file that it stood in
FILES = {
    "artefacts": "store.db",
    "records": "store.db",
    "score_jobs": "store.db",
    "audit_heads": "store.db",
    "audit": "audit.db",
    "reviews": "reviews.db",
    "signoffs": "reviews.db",
    "measurements": "measurements.db",
    "queries": "queries.db",
    "requests": "requests.db",
}


def upgrade() -> None:
    """Read what there is, make today's tables, fill them."""
    folder: Path | None = context.config.attributes["folder"]
    older = {} if folder is None else {table: list(_rows(folder, table)) for table in FILES}
    present = sa.inspect(op.get_bind()).get_table_names()
    for table in ("records", "artefacts", "score_jobs", "audit_heads"):
        if table in present:
            op.drop_table(table)
    tables = _make_tables()
    if folder is not None:
        older |= {"answers": _answers(older.pop("queries"), folder), "federations": _federations(folder)}
        sampled = {"kind": "score", "priority": 0.0}
        older["requests"] = [{**row, **sampled, "body": row.pop("vector")} for row in older["requests"]]
    for table in ("audit_heads", "signoffs"):
        older[table] = [{**row, "public_key": "", "signature": ""} for row in older.get(table, ())]
    for name, rows in older.items():
        if rows:
            op.bulk_insert(tables[name], rows)


def _rows(folder: Path, table: str) -> Iterator[dict[str, Any]]:
    """Rows of an earlier file; through the migration's own connection where it is this database."""
    file = folder / FILES[table]
    if not file.exists():
        return
    if file.name == "store.db":
        if table in sa.inspect(op.get_bind()).get_table_names():
            yield from (dict(row) for row in op.get_bind().execute(sa.text(f"SELECT * FROM {table}")).mappings())  # noqa: S608
        return
    with closing(sqlite3.connect(file)) as database:
        database.row_factory = sqlite3.Row
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            yield from (dict(row) for row in database.execute(f"SELECT * FROM {table}"))  # noqa: S608


def _answers(queries: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Counts by model id: they stay in each person's total. Groups cannot be told apart any more, so they count for everybody."""
    counted: dict[tuple[str, str, int], int] = {}
    for row in queries:
        kind = "reasons" if row["model_id"].endswith(" reasons") else "score"
        key = row["subject"], kind, row["day"]
        counted[key] = counted.get(key, 0) + row["asked"]
    groups = folder / "cohorts.json"
    if groups.exists() and json.loads(groups.read_text()):
        counted[EVERYBODY, "cohort", datetime.now(UTC).date().toordinal()] = 1
    return [
        {
            "subject": subject,
            "kind": kind,
            "structure": BEFORE,
            "guest": "",
            "day": day,
            "asked": asked,
            "bits": 0.0,
            "capacity": 0.0,
        }
        for (subject, kind, day), asked in counted.items()
    ]


def _federations(home: Path) -> list[dict[str, Any]]:
    file = home / "federations.json"
    known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    at = home.resolve()
    return [
        {"name": name, "folder": str(Path(folder).relative_to(at)) if Path(folder).is_relative_to(at) else folder}
        for name, folder in known.items()
    ]


def _make_tables() -> dict[str, sa.Table]:
    def text(name: str, length: int, **more: Any) -> sa.Column[Any]:
        return sa.Column(name, sa.String(length), nullable=False, **more)

    def whole(name: str, **more: Any) -> sa.Column[Any]:
        return sa.Column(name, sa.Integer(), nullable=False, **more)

    def long(name: str) -> sa.Column[Any]:
        return sa.Column(name, sa.Text(), nullable=False)

    def blob(name: str, nullable: bool = False) -> sa.Column[Any]:
        return sa.Column(name, sa.LargeBinary(), nullable=nullable)

    key: dict[str, Any] = {"primary_key": True}
    number: dict[str, Any] = {"primary_key": True, "autoincrement": True}
    columns: dict[str, tuple[Any, ...]] = {
        "artefacts": (text("model_id", 50, **key), text("content_hash", 64), long("text")),
        "records": (
            sa.Column("model_id", sa.String(40), sa.ForeignKey("artefacts.model_id"), nullable=False, **key),
            text("created", 40),
            long("body"),
        ),
        "score_jobs": (whole("number", **number), text("model_id", 40), text("created", 40), long("body")),
        "audit": (whole("number", primary_key=True, autoincrement=False), long("text"), text("hash", 64)),
        "audit_heads": (
            text("whose", 200, **key),
            sa.Column("number", sa.BigInteger(), nullable=False, primary_key=True, autoincrement=False),
            text("hash", 64),
            text("public_key", 64),
            text("signature", 128),
        ),
        "reviews": (
            whole("number", **number),
            text("model", 64, index=True),
            text("rule", 200),
            text("feature", 200),
            text("verdict", 20),
            long("reason"),
            text("person", 200),
            text("time", 40),
        ),
        "signoffs": (
            whole("number", **number),
            text("model", 64, index=True),
            text("person", 200),
            text("role", 200),
            long("statement"),
            text("report_hash", 64),
            text("time", 40),
            text("public_key", 64),
            text("signature", 128),
        ),
        "measurements": (
            text("model", 64, **key),
            text("kind", 20, **key),
            text("feature", 200, **key),
            text("created", 40),
            long("body"),
        ),
        "answers": (
            text("subject", 200, **key),
            text("kind", 20, **key),
            text("structure", 64, **key),
            text("guest", 200, **key),
            whole("day", index=True, **key),
            whole("asked"),
            sa.Column("bits", sa.Float(), nullable=False),
            sa.Column("capacity", sa.Float(), nullable=False),
        ),
        "questions": (
            text("guest", 200, **key),
            text("request", 64, **key),
            whole("day", index=True),
            text("asked", 64),
            text("records", 64),
            blob("spent"),
            text("digest", 64),
            blob("reply", nullable=True),
        ),
        "requests": (
            whole("number", **number),
            text("day", 40),
            text("kind", 20),
            text("model_id", 40),
            text("subject", 200),
            blob("public_key"),
            blob("body"),
            sa.Column("priority", sa.Float(), nullable=False),
        ),
        "secrets": (text("name", 40, **key), blob("value")),
        "runs": (
            text("run", 64, **key),
            text("question", 64, index=True),
            text("created", 40),
        ),
        "run_batches": (
            sa.Column("run", sa.String(64), sa.ForeignKey("runs.run", ondelete="CASCADE"), nullable=False, **key),
            whole("number", primary_key=True, autoincrement=False),
            text("request", 64),
            blob("answer", nullable=True),
        ),
        "run_pieces": (
            sa.Column("run", sa.String(64), sa.ForeignKey("runs.run", ondelete="CASCADE"), nullable=False, **key),
            whole("number", primary_key=True, autoincrement=False),
            whole("piece", primary_key=True, autoincrement=False),
            blob("sent"),
        ),
        "stated": (text("digest", 64, **key), text("created", 40, index=True), long("body")),
        "federations": (text("name", 200, **key), long("folder")),
    }
    return {name: op.create_table(name, *these) for name, these in columns.items()}
