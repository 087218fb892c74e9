"""Jobs that outlive a page: a table of what runs and what became of it. There was none before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(40), nullable=False, primary_key=True),
        sa.Column("user", sa.String(64), nullable=False, index=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("model", sa.String(40), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("started", sa.String(40), nullable=False),
        sa.Column("ended", sa.String(40), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("result", sa.String(200), nullable=False),
        sa.Column("process", sa.String(40), nullable=False),
        sa.Column("beat", sa.String(40), nullable=False),
        sa.Column("took", sa.Text(), nullable=False),
        sa.Column("seen", sa.Integer(), nullable=False),
    )
