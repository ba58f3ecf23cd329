-- +goose Up
-- An entry can be a private release of the training part. The table's text is changed and its rows stay as they lie, as in 00005. The index that follows makes every connection read the
-- schema anew.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql, '''deleted'')', '''release'', ''deleted'')') WHERE type = 'table' AND name = 'entries';

PRAGMA writable_schema = RESET;

-- A request is released once.
CREATE UNIQUE INDEX entries_release ON entries (holdout, query) WHERE kind = 'release';
