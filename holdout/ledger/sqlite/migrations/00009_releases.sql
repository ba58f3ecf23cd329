-- +goose Up
-- An entry can be a private release of the training part. The table's text is changed and its rows stay as they lie, as in 00005. The index that follows makes every connection read the
-- schema anew.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql, '''deleted'')', '''release'', ''deleted'')') WHERE type = 'table' AND name = 'entries';

PRAGMA writable_schema = RESET;

-- A request is released once.
CREATE UNIQUE INDEX entries_release ON entries (holdout, query) WHERE kind = 'release';

-- What a holdout's releases have spent is in the table meta, by the holdout's id: releases ho_…

-- +goose StatementBegin
CREATE TRIGGER releases_never_go_back BEFORE UPDATE ON meta
WHEN OLD.name LIKE 'releases %' AND (NEW.name <> OLD.name OR json_extract(CAST(NEW.value AS TEXT), '$.spent') < json_extract(CAST(OLD.value AS TEXT), '$.spent')
    OR json_extract(CAST(NEW.value AS TEXT), '$.limit') <> json_extract(CAST(OLD.value AS TEXT), '$.limit'))
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER releases_are_never_forgotten BEFORE DELETE ON meta WHEN OLD.name LIKE 'releases %'
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd
