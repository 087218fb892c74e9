"""Names and states of models: every model of before is a draft of whoever the audit log says made it."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = depends_on = None

MADE = ("train", "import", "retrain")  # actions of the audit log that register a model
NOBODY = "not signed in"  # stands where nobody was known
IN_USE = "state = 'in_use'"


def upgrade() -> None:
    """Make both tables, and a row for every model."""
    states = op.create_table(
        "model_states",
        sa.Column("model_id", sa.String(40), sa.ForeignKey("records.model_id"), nullable=False, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("maker", sa.String(200), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
    )
    where = sa.text(IN_USE)
    op.create_index("one_in_use", "model_states", ["state"], unique=True, sqlite_where=where, postgresql_where=where)
    op.create_table(
        "model_steps",
        sa.Column("number", sa.Integer(), nullable=False, primary_key=True, autoincrement=True),
        sa.Column("model_id", sa.String(40), sa.ForeignKey("records.model_id"), nullable=False, index=True),
        sa.Column("before", sa.String(20), nullable=False),
        sa.Column("after", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("person", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("time", sa.String(40), nullable=False),
    )
    makers = _makers()
    models = op.get_bind().execute(sa.text("SELECT model_id FROM records")).scalars()
    rows = [
        {"model_id": model, "name": "", "note": "", "owner": maker, "maker": maker, "state": "draft"}
        for model in models
        for maker in [makers.get(model, "")]
    ]
    if rows:
        op.bulk_insert(states, rows)


def _makers() -> dict[str, str]:
    """Model → who trained or imported it, as far as the audit log can be read."""
    out: dict[str, str] = {}
    for text in op.get_bind().execute(sa.text("SELECT text FROM audit ORDER BY number")).scalars():
        try:
            _, _, actor, _, action, body, *_ = json.loads(text)
            made = body.get("model") if action in MADE else None
        except (ValueError, AttributeError, TypeError, RecursionError):
            continue  # was tampered with, which the check of the log says
        if made:
            out.setdefault(str(made), "" if actor == NOBODY else str(actor)[:200])
    return out
