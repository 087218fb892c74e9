"""Steps from one version of the schema to the next, by Alembic; the folder is the package's own, no alembic.ini is read.

An SQLite database is taken to today's version when it is opened; a server's too, by whoever opens it first, under the writer's lock.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from backend.errors import StoreError


def configuration() -> Config:
    """Alembic's, without a file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def migrate(connection: Connection, name: str, folder: Path | None) -> None:
    """Take a database to today's version, within the transaction of `connection`.

    Parameters
    ----------
    folder : Path, optional
        Where files of earlier stores lie beside it.

    Raises
    ------
    StoreError
        A newer version of Glassleaf wrote it, or an older one's file cannot be read.
    """
    config = configuration()
    found = MigrationContext.configure(connection).get_current_revision()
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StoreError(
            f"The database {name} is of version {found}, which this Glassleaf does not know (it knows {max(known)}): a newer one "
            "wrote it. Install that one, or name another home."
        )
    config.attributes.update(connection=connection, folder=folder)
    try:
        command.upgrade(config, "head")
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StoreError(
            f"What an earlier version kept beside {name} cannot be read ({type(error).__name__}); nothing was changed. Put the damaged "
            "file back from a backup, or move it away and go on without it."
        ) from error
