-- +goose Up
-- What is replayed of a request under its key beside recorded answers: which of its queries were not asked, and why. A use of a key without it is of
-- an upload, or of a program before outcomes were kept.

ALTER TABLE idempotency ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
