-- +goose Up
-- The remarks that askers made on their own questions. They are beside the chain: no head commits to one, no export has one, and an entry without a
-- row here has none.

CREATE TABLE notes (
    holdout INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    note    TEXT    NOT NULL CHECK (note <> ''),
    PRIMARY KEY (holdout, seq),
    FOREIGN KEY (holdout, seq) REFERENCES entries (holdout, seq)
) STRICT, WITHOUT ROWID;
