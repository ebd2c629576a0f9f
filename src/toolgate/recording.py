"""What the house writes: the journal, the ledger, and all that is kept beside them."""

import os
from contextlib import AsyncExitStack
from typing import NamedTuple

from toolgate import upkeep
from toolgate.executor.aftercare.recovery import renewing
from toolgate.ledger.events import MOST_WAITING
from toolgate.net.address import without_user
from toolgate.net.client import HttpClient
from toolgate.net.signature import signing_secret
from toolgate.settings.settings import Settings
from toolgate.sinks.publisher import Publisher
from toolgate.sinks.webhook import Webhook
from toolgate.store.approvals import TableApprovals
from toolgate.store.database import Database
from toolgate.store.decisions import TableDecisions
from toolgate.store.history import TableHistory
from toolgate.store.hold import Hold
from toolgate.store.journal import TableJournal
from toolgate.store.ledger import TableLedger
from toolgate.store.outbox import TableOutbox
from toolgate.store.outputs import TableOutputs
from toolgate.store.shelf import TableShelf


class Records(NamedTuple):
    """Each is closed with the house, the last one first."""

    journal: TableJournal
    ledger: TableLedger
    decisions: TableDecisions
    history: TableHistory
    outputs: TableOutputs
    approvals: TableApprovals
    shelf: TableShelf
    publisher: Publisher | None


def records(
    settings: Settings, database: Database, hold: Hold, client: HttpClient, stack: AsyncExitStack
) -> Records:
    """All of them, at work."""
    toolbox, outbox = settings.toolbox, bool(settings.events.url)
    journal = TableJournal(
        database,
        lease=toolbox.lease,
        ttl=toolbox.default_idempotency_ttl,
        outbox=outbox,
        hold=hold,
    )
    journal.start()
    stack.push_async_callback(journal.close)
    ledger = TableLedger(database, journal.owner, outbox=outbox, hold=hold)
    upkeep.keep_doing(renewing(ledger, toolbox.lease), stack)
    decisions = TableDecisions(database)
    decisions.start()
    stack.push_async_callback(decisions.close)
    history = TableHistory(database)
    stack.push_async_callback(history.close)
    outputs = TableOutputs(database, ttl=toolbox.blob_ttl)
    outputs.start()
    stack.push_async_callback(outputs.close)
    approvals = TableApprovals(database, outbox=outbox)
    publisher = _publisher(settings, database, hold, client)
    return Records(
        journal=journal,
        ledger=ledger,
        decisions=decisions,
        history=history,
        outputs=outputs,
        approvals=approvals,
        shelf=TableShelf(database),
        publisher=publisher,
    )


def _publisher(
    settings: Settings, database: Database, hold: Hold, client: HttpClient
) -> Publisher | None:
    """What sends events, where they are sent to somebody."""
    if not settings.events.url:
        return None
    secret = signing_secret("events.secret_env", settings.events.secret_env, os.environ)
    url = settings.events.url
    webhook = Webhook(client.named(without_user(url)), url, secret)
    return Publisher(TableOutbox(database, hold), webhook, most=MOST_WAITING)
