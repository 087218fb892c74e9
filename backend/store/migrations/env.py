"""What Alembic runs around the steps: they share the connection, and so the transaction, of the caller that opens the database."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
