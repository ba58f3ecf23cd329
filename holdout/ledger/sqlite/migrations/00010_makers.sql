-- +goose Up
-- Who made a key: the id of another one. It is empty of the first key, which the server makes, and of keys from before this was kept.

ALTER TABLE keys ADD COLUMN maker TEXT NOT NULL DEFAULT '';
