"""Answers that are kept are found without reading every question of the month."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = depends_on = None


def upgrade() -> None:
    """Make the index."""
    kept = sa.text("reply IS NOT NULL")
    op.create_index("kept_replies", "questions", ["guest"], sqlite_where=kept, postgresql_where=kept)
