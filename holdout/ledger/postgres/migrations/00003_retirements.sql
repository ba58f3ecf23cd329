-- +goose Up
-- An entry can be a retirement: the end of the secrecy of a holdout's rows. A holdout is retired once, and nothing but a deletion follows.

ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check CHECK (kind IN ('genesis', 'answer', 'void', 'closed', 'retired', 'deleted'));

CREATE UNIQUE INDEX entries_retired ON entries (holdout) WHERE kind = 'retired';

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_entry() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.seq <> (SELECT coalesce(max(seq), -1) + 1 FROM entries WHERE holdout = NEW.holdout) THEN
        RAISE EXCEPTION 'entries have no gaps' USING ERRCODE = 'HD002';
    END IF;
    IF NEW.kind NOT IN ('retired', 'deleted') AND EXISTS (SELECT 1 FROM entries WHERE holdout = NEW.holdout AND kind = 'closed') THEN
        RAISE EXCEPTION 'a closed holdout is asked nothing' USING ERRCODE = 'HD002';
    END IF;
    IF NEW.kind <> 'deleted' AND EXISTS (SELECT 1 FROM entries WHERE holdout = NEW.holdout AND kind = 'retired') THEN
        RAISE EXCEPTION 'a retired holdout is asked nothing' USING ERRCODE = 'HD002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
