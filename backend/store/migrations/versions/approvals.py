"""What a Host's operator allows, how much of it was used, and receipts of conversations. There were none before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "approvals",
        sa.Column("number", sa.Integer(), nullable=False, primary_key=True, autoincrement=True),
        sa.Column("guest", sa.String(200), nullable=False, index=True),
        sa.Column("purpose", sa.String(20), nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("asked", sa.String(40), nullable=False),
        sa.Column("decided", sa.String(40), nullable=False),
        sa.Column("person", sa.String(200), nullable=False),
        sa.Column("until", sa.String(10), nullable=False),
        sa.Column("per_day", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
    )
    op.create_table(
        "approval_uses",
        sa.Column(
            "number",
            sa.Integer(),
            sa.ForeignKey("approvals.number", ondelete="CASCADE"),
            nullable=False,
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("day", sa.Integer(), nullable=False, primary_key=True, autoincrement=False, index=True),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
    )
    op.create_table(
        "receipts",
        sa.Column("conversation", sa.String(64), nullable=False, primary_key=True),
        sa.Column("party", sa.String(200), nullable=False, primary_key=True),
        sa.Column("peer", sa.String(200), nullable=False, primary_key=True),
        sa.Column("created", sa.String(40), nullable=False, index=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("public_key", sa.String(64), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
    )
