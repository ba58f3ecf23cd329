-- +goose Up
-- An entry can be a closing: the end of a holdout's questions. What the table holds does not change, only what it may hold, so the table's text is changed and its rows
-- stay as they lie; SQLite's page on ALTER TABLE describes the way. The index that follows makes every connection read the schema anew.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql, '''void'', ''deleted''', '''void'', ''closed'', ''deleted''') WHERE type = 'table' AND name = 'entries';

PRAGMA writable_schema = RESET;

-- A holdout is closed once.
CREATE UNIQUE INDEX entries_closed ON entries (holdout) WHERE kind = 'closed';

-- +goose StatementBegin
CREATE TRIGGER closings_are_the_end BEFORE INSERT ON entries
WHEN NEW.kind <> 'deleted' AND EXISTS (SELECT 1 FROM entries WHERE holdout = NEW.holdout AND kind = 'closed')
BEGIN SELECT RAISE(ABORT, 'a closed holdout is asked nothing'); END;
-- +goose StatementEnd
