"""Trainings that go on after a break. There were none before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "trainings",
        sa.Column("guest", sa.String(200), nullable=False, primary_key=True),
        sa.Column("request", sa.String(64), nullable=False, primary_key=True),
        sa.Column("question", sa.String(64), nullable=False, index=True),
        sa.Column("created", sa.String(40), nullable=False, index=True),
        sa.Column("body", sa.Text(), nullable=False),
    )
