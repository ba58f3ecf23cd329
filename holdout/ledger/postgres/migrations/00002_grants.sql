-- +goose Up
-- Slices of holdouts' budgets, for keys. What is spent of one is what the entries say that its key spent, so that nothing here changes with a debit. limits is an object of meters
-- in its one spelling.

CREATE TABLE grants (
    id      text    COLLATE "C" PRIMARY KEY,
    key     text    COLLATE "C" NOT NULL REFERENCES keys (id),
    holdout bigint  NOT NULL REFERENCES holdouts (number),
    parent  text    COLLATE "C" REFERENCES grants (id),
    limits  text    COLLATE "C" NOT NULL CHECK (json_typeof(limits::json) = 'object'),
    shows   text    COLLATE "C" NOT NULL,
    created bigint  NOT NULL,
    expires bigint,
    revoked boolean NOT NULL,
    UNIQUE (holdout, key)
);

CREATE TRIGGER grants_are_never_forgotten BEFORE DELETE OR TRUNCATE ON grants FOR EACH STATEMENT EXECUTE FUNCTION refuse('grants are never forgotten');
CREATE TRIGGER grants_are_never_changed BEFORE UPDATE ON grants FOR EACH ROW
    WHEN (NEW.revoked < OLD.revoked OR NEW.id <> OLD.id OR NEW.key <> OLD.key OR NEW.holdout <> OLD.holdout OR NEW.parent IS DISTINCT FROM OLD.parent OR NEW.limits <> OLD.limits
        OR NEW.shows <> OLD.shows OR NEW.created <> OLD.created OR NEW.expires IS DISTINCT FROM OLD.expires)
    EXECUTE FUNCTION refuse('a grant is never changed');

-- +goose StatementBegin
CREATE FUNCTION create_grant(p_id text, p_key text, p_holdout bigint, p_parent text, p_limits text, p_shows text, p_created bigint, p_expires bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO grants (id, key, holdout, parent, limits, shows, created, expires, revoked) VALUES (p_id, p_key, p_holdout, p_parent, p_limits, p_shows, p_created, p_expires, false);
END $$;
-- +goose StatementEnd

-- revoke_grant is false if there is no such grant.
-- +goose StatementBegin
CREATE FUNCTION revoke_grant(p_id text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE grants SET revoked = true WHERE id = p_id;
    RETURN FOUND;
END $$;
-- +goose StatementEnd
