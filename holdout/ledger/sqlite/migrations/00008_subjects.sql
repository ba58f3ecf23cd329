-- +goose Up
-- A key can be one of a subject, whom an issuer of tokens names, instead of a secret. Its hash is that of nothing, and an empty subject is a key with a secret.

ALTER TABLE keys ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN claim TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN subject TEXT NOT NULL DEFAULT '';

-- A token has one key at a time. Once that is revoked its subject may have another one.
CREATE UNIQUE INDEX keys_subject ON keys (issuer, claim, subject) WHERE subject <> '' AND revoked = 0;
