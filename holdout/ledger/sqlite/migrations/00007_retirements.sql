-- +goose Up
-- An entry can be a retirement: the end of the secrecy of a holdout's rows. What the table holds does not change, only what it may hold, as for closings. The index that follows makes
-- every connection read the schema anew.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql, '''closed'', ''deleted''', '''closed'', ''retired'', ''deleted''') WHERE type = 'table' AND name = 'entries';

PRAGMA writable_schema = RESET;

-- A holdout is retired once.
CREATE UNIQUE INDEX entries_retired ON entries (holdout) WHERE kind = 'retired';

DROP TRIGGER closings_are_the_end;

-- +goose StatementBegin
CREATE TRIGGER closings_are_the_end BEFORE INSERT ON entries
WHEN NEW.kind NOT IN ('retired', 'deleted') AND EXISTS (SELECT 1 FROM entries WHERE holdout = NEW.holdout AND kind = 'closed')
BEGIN SELECT RAISE(ABORT, 'a closed holdout is asked nothing'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER retirements_are_the_end BEFORE INSERT ON entries
WHEN NEW.kind <> 'deleted' AND EXISTS (SELECT 1 FROM entries WHERE holdout = NEW.holdout AND kind = 'retired')
BEGIN SELECT RAISE(ABORT, 'a retired holdout is asked nothing'); END;
-- +goose StatementEnd
