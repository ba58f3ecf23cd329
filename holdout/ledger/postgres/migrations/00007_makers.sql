-- +goose Up
-- Who made a key: the id of another one. It is empty of the first key, which a server makes, and of keys from before this was kept. bind_key stays as it is, for servers of the version before that still run.

ALTER TABLE keys ADD COLUMN maker text NOT NULL DEFAULT '';

-- +goose StatementBegin
CREATE FUNCTION make_key(p_id text, p_name bytea, p_scope text, p_created bigint, p_hash bytea, p_revoked boolean, p_issuer bytea, p_claim bytea, p_subject bytea, p_maker text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO keys (id, name, scope, created, hash, revoked, issuer, claim, subject, maker)
    VALUES (p_id, p_name, p_scope, p_created, p_hash, p_revoked, p_issuer, p_claim, p_subject, p_maker);
END $$;
-- +goose StatementEnd
