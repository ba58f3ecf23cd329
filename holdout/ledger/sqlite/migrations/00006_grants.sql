-- +goose Up
-- Slices of holdouts' budgets, for keys. What is spent of one is what the entries say that its key spent, so that nothing here changes with a debit.

CREATE TABLE grants (
    id      TEXT    PRIMARY KEY,
    key     TEXT    NOT NULL REFERENCES keys (id),
    holdout INTEGER NOT NULL REFERENCES holdouts (number),
    parent  TEXT    REFERENCES grants (id),
    limits  TEXT    NOT NULL CHECK (json_type(limits) = 'object'),
    shows   TEXT    NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER NOT NULL CHECK (revoked IN (0, 1)),
    UNIQUE (holdout, key)
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER grants_are_never_changed BEFORE UPDATE ON grants
WHEN NEW.revoked < OLD.revoked OR (NEW.id, NEW.key, NEW.holdout, NEW.limits, NEW.shows, NEW.created) <> (OLD.id, OLD.key, OLD.holdout, OLD.limits, OLD.shows, OLD.created)
    OR NEW.parent IS NOT OLD.parent OR NEW.expires IS NOT OLD.expires
BEGIN SELECT RAISE(ABORT, 'a grant is never changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER grants_are_never_forgotten BEFORE DELETE ON grants
BEGIN SELECT RAISE(ABORT, 'grants are never forgotten'); END;
-- +goose StatementEnd
