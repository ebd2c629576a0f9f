"""What SQL may do to tables in memory: read them; write them where that is allowed; no more."""

import sqlite3

_READS = {
    sqlite3.SQLITE_SELECT: "",
    sqlite3.SQLITE_READ: "",
    sqlite3.SQLITE_FUNCTION: "",
    sqlite3.SQLITE_RECURSIVE: "",
}
_WRITES = {
    sqlite3.SQLITE_INSERT: "INSERT",
    sqlite3.SQLITE_UPDATE: "UPDATE",
    sqlite3.SQLITE_DELETE: "DELETE",
    sqlite3.SQLITE_CREATE_TABLE: "CREATE TABLE",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "CREATE TABLE",
    sqlite3.SQLITE_CREATE_INDEX: "CREATE INDEX",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "CREATE INDEX",
    sqlite3.SQLITE_CREATE_VIEW: "CREATE VIEW",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "CREATE VIEW",
    sqlite3.SQLITE_DROP_TABLE: "DROP TABLE",
    sqlite3.SQLITE_DROP_TEMP_TABLE: "DROP TABLE",
    sqlite3.SQLITE_DROP_INDEX: "DROP INDEX",
    sqlite3.SQLITE_DROP_TEMP_INDEX: "DROP INDEX",
    sqlite3.SQLITE_DROP_VIEW: "DROP VIEW",
    sqlite3.SQLITE_DROP_TEMP_VIEW: "DROP VIEW",
    sqlite3.SQLITE_ALTER_TABLE: "ALTER TABLE",
    sqlite3.SQLITE_REINDEX: "REINDEX",
    sqlite3.SQLITE_TRANSACTION: "a transaction",
    sqlite3.SQLITE_SAVEPOINT: "a savepoint",
}
_NEVER = {
    sqlite3.SQLITE_ATTACH: "ATTACH or VACUUM INTO",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE",
    sqlite3.SQLITE_CREATE_TRIGGER: "CREATE TRIGGER",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "CREATE TRIGGER",
}
_LISTS = frozenset({"sqlite_master", "sqlite_temp_master"})
_OF_TABLES = {"INSERT": "CREATE", "DELETE": "DROP", "UPDATE": "ALTER"}
_NO_FUNCTIONS = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "sqlite_offset"}
)


class Permit:
    """An authorizer; what it refused first is told."""

    def __init__(self, *, writes: bool) -> None:
        self.refused = ""
        self._allowed = _READS | (_WRITES if writes else {})

    def __call__(self, action: int, one: str | None, two: str | None, *_more: object) -> int:
        if action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in _NO_FUNCTIONS:
            self.refused = self.refused or f"The function {two} is not available here."
            return sqlite3.SQLITE_DENY
        if action in self._allowed:
            return sqlite3.SQLITE_OK
        self.refused = self.refused or self._sentence(action, one)
        return sqlite3.SQLITE_DENY

    def _sentence(self, action: int, one: str | None) -> str:
        if action in _WRITES:
            word = _WRITES[action]
            # SQLite begins a DROP by deleting from its own list of what there is.
            said = _OF_TABLES.get(word, word) if one in _LISTS else word
            return (
                f"{said} is not allowed: tables are read-only. Pass writes: true to "
                "change them for this call; nothing lasts."
            )
        return f"{_NEVER.get(action, 'That')} is not allowed here. Only the given tables are there."
