-- +goose Up
-- A key can be one of a subject, whom an issuer of tokens names, instead of a secret. Its hash is that of nothing, and an empty subject is a key with a secret. create_key stays as it is,
-- for servers of the version before that still run.

ALTER TABLE keys ADD COLUMN issuer bytea NOT NULL DEFAULT '', ADD COLUMN claim bytea NOT NULL DEFAULT '', ADD COLUMN subject bytea NOT NULL DEFAULT '';

-- A token has one key at a time. Once that is revoked its subject may have another one.
CREATE UNIQUE INDEX keys_subject ON keys (issuer, claim, subject) WHERE subject <> '' AND NOT revoked;

-- +goose StatementBegin
CREATE FUNCTION bind_key(p_id text, p_name bytea, p_scope text, p_created bigint, p_hash bytea, p_revoked boolean, p_issuer bytea, p_claim bytea, p_subject bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO keys (id, name, scope, created, hash, revoked, issuer, claim, subject)
    VALUES (p_id, p_name, p_scope, p_created, p_hash, p_revoked, p_issuer, p_claim, p_subject);
END $$;
-- +goose StatementEnd
