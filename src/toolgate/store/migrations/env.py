"""How alembic reaches the database: through the connection that `store.migrate` hands over."""

from alembic import context

from toolgate.store.metadata import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
# The caller owns the transaction, so that a migration is whole or not there at all.
context.run_migrations()
