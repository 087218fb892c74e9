"""Steps from one version of the schema to the next, by Alembic; the folder is the package's own, no alembic.ini is read.

Until 1.0 there is one step and nothing is migrated. From 1.0 on a database of an earlier version is migrated by the process that opens it
first, under the writer's lock.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from backend.errors import StoreError


def configuration() -> Config:
    """Return Alembic's settings, without a file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def migrate(connection: Connection, name: str) -> None:
    """Take a database to today's version, within the transaction of `connection`.

    Raises
    ------
    StoreError
        If the database's version is unknown: another version of Glassleaf wrote it.
    """
    config = configuration()
    version = MigrationContext.configure(connection).get_current_revision()
    steps = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if version not in steps:
        raise StoreError("unknown_schema", database=name, version=version or "-", known=tuple(sorted(steps)))
    config.attributes.update(connection=connection)
    command.upgrade(config, "head")
