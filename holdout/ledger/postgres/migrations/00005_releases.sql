-- +goose Up
-- An entry can be a private release of the training part.

ALTER TABLE entries DROP CONSTRAINT entries_kind_check, ADD CONSTRAINT entries_kind_check CHECK (kind IN ('genesis', 'answer', 'void', 'release', 'closed', 'retired', 'deleted'));

-- A request is released once.
CREATE UNIQUE INDEX entries_release ON entries (holdout, query) WHERE kind = 'release';
