-- +goose Up
-- The first schema that was released; 00001 was not. Times are nanoseconds since 1970 UTC. Digests and heads are 32 raw bytes. What
-- each column means for the chain is in docs/format/ledger.md. The CHECKs and triggers are a second belt: the writer refuses all this first.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

CREATE TABLE holdouts (
    number  INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    digest  BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    public  BLOB    NOT NULL,
    secret  BLOB
) STRICT;

-- What changes with every commit, apart from the holdout's card, which can have megabytes.
CREATE TABLE books (
    holdout INTEGER PRIMARY KEY REFERENCES holdouts (number),
    state   BLOB,
    seq     INTEGER NOT NULL CHECK (seq >= 0),
    head    BLOB    NOT NULL CHECK (length(head) = 32),
    deleted INTEGER NOT NULL CHECK (deleted IN (0, 1))
) STRICT;

-- A row for each meter of a holdout: what may be spent, and what is.
CREATE TABLE meters (
    holdout INTEGER NOT NULL REFERENCES books (holdout),
    name    TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 32),
    cap     INTEGER NOT NULL CHECK (cap >= 0),
    spent   INTEGER NOT NULL CHECK (spent BETWEEN 0 AND cap),
    PRIMARY KEY (holdout, name)
) STRICT, WITHOUT ROWID;

-- debit and spent are objects of meters in their one spelling: what the chain commits to.
CREATE TABLE entries (
    holdout   INTEGER NOT NULL REFERENCES holdouts (number),
    seq       INTEGER NOT NULL CHECK (seq >= 0),
    version   INTEGER NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN ('genesis', 'answer', 'void', 'deleted')),
    time      INTEGER NOT NULL,
    query     TEXT    NOT NULL,
    canonical TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    debit     TEXT    NOT NULL CHECK (json_type(debit) = 'object'),
    spent     TEXT    NOT NULL CHECK (json_type(spent) = 'object'),
    body      TEXT    NOT NULL,
    head      BLOB    NOT NULL CHECK (length(head) = 32),
    UNIQUE (holdout, seq)
) STRICT;

CREATE UNIQUE INDEX entries_query ON entries (holdout, query) WHERE kind = 'answer';
CREATE INDEX entries_void ON entries (holdout, query) WHERE kind = 'void';
CREATE INDEX entries_principal ON entries (holdout, principal, seq);

CREATE TABLE idempotency (
    principal TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    request   BLOB    NOT NULL CHECK (length(request) = 32),
    resource  TEXT    NOT NULL,
    created   INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT;

CREATE INDEX idempotency_created ON idempotency (created);

CREATE TABLE keys (
    id      TEXT    PRIMARY KEY,
    name    TEXT    NOT NULL,
    scope   TEXT    NOT NULL,
    created INTEGER NOT NULL,
    hash    BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    revoked INTEGER NOT NULL CHECK (revoked IN (0, 1))
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER entries_have_no_gaps BEFORE INSERT ON entries
WHEN NEW.seq <> (SELECT coalesce(max(seq), -1) + 1 FROM entries WHERE holdout = NEW.holdout)
BEGIN SELECT RAISE(ABORT, 'entries have no gaps'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER books_never_go_back BEFORE UPDATE ON books
WHEN NEW.holdout <> OLD.holdout OR NEW.seq < OLD.seq OR NEW.deleted < OLD.deleted
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER books_are_never_forgotten BEFORE DELETE ON books
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER spent_never_falls BEFORE UPDATE ON meters
WHEN NEW.spent < OLD.spent OR NEW.cap <> OLD.cap OR NEW.name <> OLD.name OR NEW.holdout <> OLD.holdout
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER meters_are_never_forgotten BEFORE DELETE ON meters
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER meters_are_as_at_creation BEFORE INSERT ON meters
WHEN NEW.spent <> 0 OR (SELECT seq FROM books WHERE holdout = NEW.holdout) <> 0
BEGIN SELECT RAISE(ABORT, 'a holdout gets no meters after its creation'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER holdouts_are_never_changed BEFORE UPDATE ON holdouts
WHEN NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.digest <> OLD.digest OR NEW.public <> OLD.public
BEGIN SELECT RAISE(ABORT, 'the facts of a holdout are never changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER holdouts_are_never_forgotten BEFORE DELETE ON holdouts
BEGIN SELECT RAISE(ABORT, 'holdouts are never forgotten'); END;
-- +goose StatementEnd
