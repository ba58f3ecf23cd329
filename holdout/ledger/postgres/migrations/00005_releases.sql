-- +goose Up
-- An entry can be a private release of the training part.

ALTER TABLE entries DROP CONSTRAINT entries_kind_check, ADD CONSTRAINT entries_kind_check CHECK (kind IN ('genesis', 'answer', 'void', 'release', 'closed', 'retired', 'deleted'));

-- A request is released once.
CREATE UNIQUE INDEX entries_release ON entries (holdout, query) WHERE kind = 'release';

-- What a holdout's releases have spent, as JSON: spent and limit in millionths, made, and the earlier holdouts whose releases are of the same rows; '' where there is none.
ALTER TABLE books ADD COLUMN released text NOT NULL DEFAULT '';

CREATE TRIGGER releases_never_go_back BEFORE UPDATE ON books FOR EACH ROW
    WHEN (OLD.released <> '' AND (NEW.released = '' OR (NEW.released::json ->> 'spent')::bigint < (OLD.released::json ->> 'spent')::bigint
        OR (NEW.released::json ->> 'limit') <> (OLD.released::json ->> 'limit'))) EXECUTE FUNCTION refuse('a budget is never given back');

-- record_released is record with a release among the entries. Servers of the version before call record.
-- +goose StatementBegin
CREATE FUNCTION record_released(p_holdout bigint, p_seq bigint, p_term bigint, p_state bytea, p_meters text[], p_spent bigint[],
    p_versions bigint[], p_seqs bigint[], p_kinds text[], p_times bigint[], p_queries text[], p_canonicals bytea[], p_principals text[], p_debits text[], p_spents text[], p_bodies bytea[],
    p_heads bytea[], p_notes bytea[],
    p_use_principals text[], p_use_keys bytea[], p_use_requests bytea[], p_use_resources text[], p_use_outcomes bytea[], p_now bigint, p_released text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT record(p_holdout, p_seq, p_term, p_state, p_meters, p_spent, p_versions, p_seqs, p_kinds, p_times, p_queries, p_canonicals, p_principals, p_debits, p_spents, p_bodies,
        p_heads, p_notes, p_use_principals, p_use_keys, p_use_requests, p_use_resources, p_use_outcomes, p_now) THEN
        RETURN false;
    END IF;
    UPDATE books SET released = p_released WHERE holdout = p_holdout;
    RETURN true;
END $$;
-- +goose StatementEnd
