-- +goose Up
-- Times are nanoseconds since 1970 UTC. Digests and heads are 32 raw bytes. What each column means for the chain
-- is in docs/format/ledger.md. The CHECKs and triggers are a second belt: the writer refuses all this first.

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
    holdout         INTEGER PRIMARY KEY REFERENCES holdouts (number),
    state           BLOB,
    questions       INTEGER NOT NULL CHECK (questions >= 0),
    tokens          INTEGER NOT NULL CHECK (tokens >= 0),
    spent_questions INTEGER NOT NULL CHECK (spent_questions BETWEEN 0 AND questions),
    spent_tokens    INTEGER NOT NULL CHECK (spent_tokens BETWEEN 0 AND tokens),
    seq             INTEGER NOT NULL CHECK (seq >= 0),
    head            BLOB    NOT NULL CHECK (length(head) = 32),
    deleted         INTEGER NOT NULL CHECK (deleted IN (0, 1))
) STRICT;

CREATE TABLE entries (
    holdout         INTEGER NOT NULL REFERENCES holdouts (number),
    seq             INTEGER NOT NULL CHECK (seq >= 0),
    kind            TEXT    NOT NULL CHECK (kind IN ('genesis', 'answer', 'void', 'deleted')),
    time            INTEGER NOT NULL,
    query           TEXT    NOT NULL,
    canonical       TEXT    NOT NULL,
    principal       TEXT    NOT NULL,
    questions       INTEGER NOT NULL CHECK (questions >= 0),
    tokens          INTEGER NOT NULL CHECK (tokens >= 0),
    spent_questions INTEGER NOT NULL CHECK (spent_questions >= questions),
    spent_tokens    INTEGER NOT NULL CHECK (spent_tokens >= tokens),
    body            TEXT    NOT NULL,
    head            BLOB    NOT NULL CHECK (length(head) = 32),
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
CREATE TRIGGER spent_never_falls BEFORE UPDATE ON books
WHEN NEW.spent_questions < OLD.spent_questions OR NEW.spent_tokens < OLD.spent_tokens
    OR NEW.questions <> OLD.questions OR NEW.tokens <> OLD.tokens OR NEW.seq < OLD.seq OR NEW.deleted < OLD.deleted
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER books_are_never_forgotten BEFORE DELETE ON books
BEGIN SELECT RAISE(ABORT, 'a budget is never given back'); END;
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
