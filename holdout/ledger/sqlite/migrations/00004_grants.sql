-- +goose Up
-- Slices of a holdout's budget. A grant is a row that is written once, and once more when it ends; what is spent of it moves with the debits that it pays.
-- Which grant paid for an entry is beside the chain: no head commits to it. That the sums agree is verified.

CREATE TABLE grants (
    number    INTEGER PRIMARY KEY,
    holdout   INTEGER NOT NULL REFERENCES books (holdout),
    id        TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    parent    TEXT    REFERENCES grants (id),
    holder    TEXT    NOT NULL CHECK (holder <> ''),
    name      TEXT    NOT NULL,
    shows     TEXT    NOT NULL,
    may_grant INTEGER NOT NULL CHECK (may_grant IN (0, 1)),
    maker     TEXT    NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER,
    ended     INTEGER,
    ended_by  TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX grants_holdout ON grants (holdout, number);
CREATE INDEX grants_holder ON grants (holder, number);
CREATE INDEX grants_due ON grants (holdout, expires) WHERE ended IS NULL AND expires IS NOT NULL;

-- Of a grant: what may be spent, what was, and what the grants that are parts of it have left.
CREATE TABLE grant_meters (
    owner TEXT    NOT NULL REFERENCES grants (id),
    name  TEXT    NOT NULL,
    cap   INTEGER NOT NULL CHECK (cap >= 0),
    spent INTEGER NOT NULL CHECK (spent BETWEEN 0 AND cap),
    held  INTEGER NOT NULL CHECK (held BETWEEN 0 AND cap - spent),
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;

-- Of a holdout: what the grants of its own budget have left. None where nothing was ever granted.
CREATE TABLE granted (
    holdout INTEGER NOT NULL REFERENCES books (holdout),
    name    TEXT    NOT NULL,
    held    INTEGER NOT NULL CHECK (held >= 0),
    PRIMARY KEY (holdout, name)
) STRICT, WITHOUT ROWID;

-- Of a holdout: how often grants of it were made or ended.
CREATE TABLE granting (
    holdout INTEGER PRIMARY KEY REFERENCES books (holdout),
    changes INTEGER NOT NULL CHECK (changes > 0)
) STRICT;

-- Which grant paid for an entry. An entry without a row was paid from what is not granted.
CREATE TABLE payers (
    holdout INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    payer   TEXT    NOT NULL REFERENCES grants (id),
    PRIMARY KEY (holdout, seq),
    FOREIGN KEY (holdout, seq) REFERENCES entries (holdout, seq)
) STRICT, WITHOUT ROWID;

-- What a key is limited to: a JSON list of holdouts, '' for all; and whether to those that it has a grant of.
ALTER TABLE keys ADD COLUMN holdouts TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN only_granted INTEGER NOT NULL DEFAULT 0 CHECK (only_granted IN (0, 1));

-- +goose StatementBegin
CREATE TRIGGER grants_end_once BEFORE UPDATE ON grants
WHEN OLD.ended IS NOT NULL OR NEW.ended IS NULL OR NEW.number <> OLD.number OR NEW.holdout <> OLD.holdout OR NEW.id <> OLD.id OR NEW.parent IS NOT OLD.parent
  OR NEW.holder <> OLD.holder OR NEW.name <> OLD.name OR NEW.shows <> OLD.shows OR NEW.may_grant <> OLD.may_grant OR NEW.maker <> OLD.maker
  OR NEW.created <> OLD.created OR NEW.expires IS NOT OLD.expires
BEGIN SELECT RAISE(ABORT, 'a grant is never changed, and ends once'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER grants_are_never_forgotten BEFORE DELETE ON grants
BEGIN SELECT RAISE(ABORT, 'grants are never forgotten'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER grants_spend_and_never_get_back BEFORE UPDATE ON grant_meters
WHEN NEW.spent < OLD.spent OR NEW.cap <> OLD.cap OR NEW.name <> OLD.name OR NEW.owner <> OLD.owner
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER grant_meters_are_never_forgotten BEFORE DELETE ON grant_meters
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER granted_is_never_more_than_is_left BEFORE UPDATE ON granted
WHEN NEW.held > (SELECT cap - spent FROM meters WHERE holdout = NEW.holdout AND name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'more is granted than is left'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER granted_begins_with_no_more_than_is_left BEFORE INSERT ON granted
WHEN NEW.held > (SELECT cap - spent FROM meters WHERE holdout = NEW.holdout AND name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'more is granted than is left'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER granted_is_not_spent_by_others BEFORE UPDATE ON meters
WHEN NEW.spent > NEW.cap - coalesce((SELECT held FROM granted WHERE granted.holdout = NEW.holdout AND granted.name = NEW.name), 0)
BEGIN SELECT RAISE(ABORT, 'what is granted is spent by others'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER payers_are_never_changed BEFORE UPDATE ON payers
BEGIN SELECT RAISE(ABORT, 'who paid is never changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER payers_are_never_deleted BEFORE DELETE ON payers
BEGIN SELECT RAISE(ABORT, 'who paid is never changed'); END;
-- +goose StatementEnd
