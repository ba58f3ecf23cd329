-- The last entry is read from its own index. Of max(seq), which any index of the holdout gives, PostgreSQL made a plan while the table was empty that reads all of a holdout's entries for each new one, until it had statistics.
-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION check_entry() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.seq <> coalesce((SELECT seq FROM entries WHERE holdout = NEW.holdout ORDER BY seq DESC LIMIT 1), -1) + 1 THEN
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
