"""The schema of 1.0.

Until 1.0 is released this step changes with :mod:`backend.store.schema`; from then on its statements are written out here.
"""

from __future__ import annotations

from alembic import op

from backend.store.database import tables

revision = "1.0"
down_revision = None
branch_labels = depends_on = None


def upgrade() -> None:
    """Make all tables."""
    for statement in tables(op.get_bind().dialect.name):
        op.execute(statement)
