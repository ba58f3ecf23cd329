-- +goose Up
-- The first schema. All names are of the schema that the search path begins with: [Prepare] sets it, and each function keeps it (FROM CURRENT). Times are nanoseconds since
-- 1970 UTC, digests and heads 32 raw bytes. What each column means for the chain is in docs/format/ledger.md. Texts that people or programs chose freely are bytea: text cannot
-- hold every character that UTF-8 has. Names that servers make are text, and compare as bytes.
--
-- The service's role may read all tables and execute these functions, and nothing else. CHECKs and triggers are a second belt: the functions and the server refuse all this first.

CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE holdouts (
    number  bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      text    COLLATE "C" NOT NULL UNIQUE,
    created bigint  NOT NULL,
    digest  bytea   NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    public  bytea   NOT NULL,
    secret  bytea,
    draft   boolean NOT NULL
);

-- What changes with every commit, apart from the holdout's card, which can have megabytes. term counts how often the holdout has gone from one server to another, and server is
-- the last that it went to.
CREATE TABLE books (
    holdout bigint  PRIMARY KEY REFERENCES holdouts (number),
    state   bytea,
    seq     bigint  NOT NULL CHECK (seq >= 0),
    head    bytea   NOT NULL CHECK (octet_length(head) = 32),
    deleted boolean NOT NULL,
    term    bigint  NOT NULL CHECK (term >= 0),
    server  uuid
);

-- A row for each meter of a holdout: what may be spent, and what is.
CREATE TABLE meters (
    holdout bigint NOT NULL REFERENCES books (holdout),
    name    text   COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 32),
    cap     bigint NOT NULL CHECK (cap >= 0),
    spent   bigint NOT NULL CHECK (spent BETWEEN 0 AND cap),
    PRIMARY KEY (holdout, name)
);

-- debit and spent are objects of meters in their one spelling: what the chain commits to.
CREATE TABLE entries (
    holdout   bigint NOT NULL REFERENCES holdouts (number),
    seq       bigint NOT NULL CHECK (seq >= 0),
    version   bigint NOT NULL,
    kind      text   COLLATE "C" NOT NULL CHECK (kind IN ('genesis', 'answer', 'void', 'closed', 'deleted')),
    time      bigint NOT NULL,
    query     text   COLLATE "C" NOT NULL,
    canonical bytea  NOT NULL,
    principal text   COLLATE "C" NOT NULL,
    debit     text   COLLATE "C" NOT NULL CHECK (json_typeof(debit::json) = 'object'),
    spent     text   COLLATE "C" NOT NULL CHECK (json_typeof(spent::json) = 'object'),
    body      bytea  NOT NULL,
    head      bytea  NOT NULL CHECK (octet_length(head) = 32),
    PRIMARY KEY (holdout, seq)
);

CREATE UNIQUE INDEX entries_query ON entries (holdout, query) WHERE kind = 'answer';
CREATE UNIQUE INDEX entries_closed ON entries (holdout) WHERE kind = 'closed';
CREATE INDEX entries_void ON entries (holdout, query) WHERE kind = 'void';
CREATE INDEX entries_principal ON entries (holdout, principal, seq);

-- The remarks that askers made on their own questions. They are beside the chain: no head commits to one, no export has one.
CREATE TABLE notes (
    holdout bigint NOT NULL,
    seq     bigint NOT NULL,
    note    bytea  NOT NULL CHECK (octet_length(note) > 0),
    PRIMARY KEY (holdout, seq),
    FOREIGN KEY (holdout, seq) REFERENCES entries (holdout, seq)
);

CREATE TABLE idempotency (
    principal text   COLLATE "C" NOT NULL,
    key       bytea  NOT NULL,
    request   bytea  NOT NULL CHECK (octet_length(request) = 32),
    resource  text   COLLATE "C" NOT NULL,
    outcome   bytea  NOT NULL,
    created   bigint NOT NULL,
    PRIMARY KEY (principal, key)
);

CREATE INDEX idempotency_created ON idempotency (created);

CREATE TABLE keys (
    id      text    COLLATE "C" PRIMARY KEY,
    name    bytea   NOT NULL,
    scope   text    COLLATE "C" NOT NULL,
    created bigint  NOT NULL,
    hash    bytea   NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    revoked boolean NOT NULL
);

-- The second belt. HD002 is the class of what it refuses.

-- +goose StatementBegin
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'HD002'; END $$;
-- +goose StatementEnd

CREATE TRIGGER entries_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse('entries are append-only');
CREATE TRIGGER notes_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notes FOR EACH STATEMENT EXECUTE FUNCTION refuse('notes are append-only');
CREATE TRIGGER books_are_never_forgotten BEFORE DELETE OR TRUNCATE ON books FOR EACH STATEMENT EXECUTE FUNCTION refuse('a budget is never given back');
CREATE TRIGGER meters_are_never_forgotten BEFORE DELETE OR TRUNCATE ON meters FOR EACH STATEMENT EXECUTE FUNCTION refuse('a budget is never given back');
CREATE TRIGGER holdouts_are_never_forgotten BEFORE DELETE OR TRUNCATE ON holdouts FOR EACH STATEMENT EXECUTE FUNCTION refuse('holdouts are never forgotten');
CREATE TRIGGER keys_are_never_forgotten BEFORE DELETE OR TRUNCATE ON keys FOR EACH STATEMENT EXECUTE FUNCTION refuse('keys are never forgotten');
CREATE TRIGGER books_never_go_back BEFORE UPDATE ON books FOR EACH ROW
    WHEN (NEW.holdout <> OLD.holdout OR NEW.seq < OLD.seq OR NEW.term < OLD.term OR NEW.deleted < OLD.deleted OR OLD.deleted) EXECUTE FUNCTION refuse('a budget is never given back');
CREATE TRIGGER spent_never_falls BEFORE UPDATE ON meters FOR EACH ROW
    WHEN (NEW.spent < OLD.spent OR NEW.cap <> OLD.cap OR NEW.name <> OLD.name OR NEW.holdout <> OLD.holdout) EXECUTE FUNCTION refuse('a budget is never given back');
CREATE TRIGGER holdouts_are_never_changed BEFORE UPDATE ON holdouts FOR EACH ROW
    WHEN (NEW.number <> OLD.number OR NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.digest <> OLD.digest OR NEW.public <> OLD.public OR NEW.draft > OLD.draft)
    EXECUTE FUNCTION refuse('the facts of a holdout are never changed');

-- +goose StatementBegin
CREATE FUNCTION check_entry() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.seq <> (SELECT coalesce(max(seq), -1) + 1 FROM entries WHERE holdout = NEW.holdout) THEN
        RAISE EXCEPTION 'entries have no gaps' USING ERRCODE = 'HD002';
    END IF;
    IF NEW.kind <> 'deleted' AND EXISTS (SELECT 1 FROM entries WHERE holdout = NEW.holdout AND kind = 'closed') THEN
        RAISE EXCEPTION 'a closed holdout is asked nothing' USING ERRCODE = 'HD002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER entries_follow BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION check_entry();

-- +goose StatementBegin
CREATE FUNCTION check_meter() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.spent <> 0 OR (SELECT seq FROM books WHERE holdout = NEW.holdout) <> 0 THEN
        RAISE EXCEPTION 'a holdout gets no meters after its creation' USING ERRCODE = 'HD002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER meters_are_as_at_creation BEFORE INSERT ON meters FOR EACH ROW EXECUTE FUNCTION check_meter();

-- What servers do. Each is one statement of theirs.

-- use_keys records uses of idempotency keys, or replaces their outcomes. A key of another request is HD001.
-- +goose StatementBegin
CREATE FUNCTION use_keys(p_principals text[], p_keys bytea[], p_requests bytea[], p_resources text[], p_outcomes bytea[], p_now bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    changed bigint;
BEGIN
    INSERT INTO idempotency (principal, key, request, resource, outcome, created)
        SELECT principal, key, request, resource, outcome, p_now
        FROM unnest(p_principals, p_keys, p_requests, p_resources, p_outcomes) AS u (principal, key, request, resource, outcome)
        ORDER BY principal, key -- two servers lock in one order
        ON CONFLICT (principal, key) DO UPDATE SET outcome = excluded.outcome WHERE idempotency.request = excluded.request;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> cardinality(p_principals) THEN
        RAISE EXCEPTION 'an idempotency key was used for another request' USING ERRCODE = 'HD001';
    END IF;
END $$;
-- +goose StatementEnd

-- record appends entries to a holdout, moves its books and records the uses of keys: all of it or, where the books are not as the server believed, nothing, and is false.
-- +goose StatementBegin
CREATE FUNCTION record(p_holdout bigint, p_seq bigint, p_term bigint, p_state bytea, p_meters text[], p_spent bigint[],
    p_versions bigint[], p_seqs bigint[], p_kinds text[], p_times bigint[], p_queries text[], p_canonicals bytea[], p_principals text[], p_debits text[], p_spents text[], p_bodies bytea[],
    p_heads bytea[], p_notes bytea[],
    p_use_principals text[], p_use_keys bytea[], p_use_requests bytea[], p_use_resources text[], p_use_outcomes bytea[], p_now bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    n bigint := cardinality(p_seqs);
    changed bigint;
BEGIN
    PERFORM 1 FROM books WHERE holdout = p_holdout AND seq = p_seq AND term = p_term AND NOT deleted FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO entries (holdout, version, seq, kind, time, query, canonical, principal, debit, spent, body, head)
        SELECT p_holdout, u.* FROM unnest(p_versions, p_seqs, p_kinds, p_times, p_queries, p_canonicals, p_principals, p_debits, p_spents, p_bodies, p_heads) AS u
        ORDER BY 3;
    INSERT INTO notes (holdout, seq, note)
        SELECT p_holdout, seq, note FROM unnest(p_seqs, p_notes) AS u (seq, note) WHERE octet_length(note) > 0;
    IF n > 0 AND p_seqs[n] <> p_seq + n THEN
        RAISE EXCEPTION 'entries are not behind the books' USING ERRCODE = 'HD002';
    END IF;
    UPDATE books SET state = p_state, seq = p_seq + n, head = CASE WHEN n > 0 THEN p_heads[n] ELSE head END WHERE holdout = p_holdout;
    IF n > 0 THEN
        UPDATE meters SET spent = u.spent FROM unnest(p_meters, p_spent) AS u (name, spent) WHERE meters.holdout = p_holdout AND meters.name = u.name;
        IF p_spents[n]::jsonb <> (SELECT jsonb_object_agg(name, spent) FROM meters WHERE holdout = p_holdout) THEN
            RAISE EXCEPTION 'the books do not say what the last entry says' USING ERRCODE = 'HD002';
        END IF;
    END IF;
    IF cardinality(p_use_principals) > 0 THEN
        PERFORM use_keys(p_use_principals, p_use_keys, p_use_requests, p_use_resources, p_use_outcomes, p_now);
    END IF;
    RETURN true;
END $$;
-- +goose StatementEnd

-- serialize makes those who create, replace, settle and delete holdouts, and make keys, one after the other, until the transaction's end.
-- +goose StatementBegin
CREATE FUNCTION serialize() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('holdoutd ' || current_schema() || ' serialize', 0));
END $$;
-- +goose StatementEnd

-- create_holdout records a holdout with its genesis entry.
-- +goose StatementBegin
CREATE FUNCTION create_holdout(p_id text, p_created bigint, p_digest bytea, p_public bytea, p_secret bytea, p_state bytea, p_draft boolean, p_meters text[], p_caps bigint[],
    p_version bigint, p_debit text, p_spent text, p_body bytea, p_head bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    n bigint;
BEGIN
    INSERT INTO holdouts (id, created, digest, public, secret, draft) VALUES (p_id, p_created, p_digest, p_public, p_secret, p_draft) RETURNING number INTO n;
    INSERT INTO books (holdout, state, seq, head, deleted, term) VALUES (n, p_state, 0, p_head, false, 0);
    INSERT INTO meters (holdout, name, cap, spent) SELECT n, name, cap, 0 FROM unnest(p_meters, p_caps) AS u (name, cap);
    INSERT INTO entries (holdout, version, seq, kind, time, query, canonical, principal, debit, spent, body, head)
        VALUES (n, p_version, 0, 'genesis', p_created, '', '', '', p_debit, p_spent, p_body, p_head);
END $$;
-- +goose StatementEnd

-- end_holdout ends a holdout's chain and erases what is secret of it; false where the books are not as the server believed.
-- +goose StatementBegin
CREATE FUNCTION end_holdout(p_holdout bigint, p_seq bigint, p_version bigint, p_time bigint, p_principal text, p_debit text, p_spent text, p_body bytea, p_head bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM books WHERE holdout = p_holdout AND seq = p_seq AND NOT deleted FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO entries (holdout, version, seq, kind, time, query, canonical, principal, debit, spent, body, head)
        VALUES (p_holdout, p_version, p_seq + 1, 'deleted', p_time, '', '', p_principal, p_debit, p_spent, p_body, p_head);
    UPDATE holdouts SET secret = NULL WHERE number = p_holdout;
    UPDATE books SET state = NULL, deleted = true, seq = p_seq + 1, head = p_head WHERE holdout = p_holdout;
    RETURN true;
END $$;
-- +goose StatementEnd

-- settle_holdout ends a holdout's being a draft.
-- +goose StatementBegin
CREATE FUNCTION settle_holdout(p_holdout bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE holdouts SET draft = false WHERE number = p_holdout AND draft;
END $$;
-- +goose StatementEnd

-- begin_ledger keeps the first value by which the ledger knows its server key.
-- +goose StatementBegin
CREATE FUNCTION begin_ledger(p_check bytea) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO meta (name, value) VALUES ('key-check', p_check) ON CONFLICT (name) DO NOTHING;
END $$;
-- +goose StatementEnd

-- probe is the smallest durable change. It also forgets idempotency keys that are older than p_before.
-- +goose StatementBegin
CREATE FUNCTION probe(p_value bytea, p_before bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO meta (name, value) VALUES ('probe', p_value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    DELETE FROM idempotency WHERE created < p_before;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION create_key(p_id text, p_name bytea, p_scope text, p_created bigint, p_hash bytea, p_revoked boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO keys (id, name, scope, created, hash, revoked) VALUES (p_id, p_name, p_scope, p_created, p_hash, p_revoked);
END $$;
-- +goose StatementEnd

-- revoke_key is false if there is no such key.
-- +goose StatementBegin
CREATE FUNCTION revoke_key(p_id text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE keys SET revoked = true WHERE id = p_id;
    RETURN FOUND;
END $$;
-- +goose StatementEnd

-- take waits until no other session has the holdout, and gives it to this one until it ends or says release; NULL if there is no such holdout. The number is that of the term: another one
-- than last time if another server had the holdout since.
-- +goose StatementBegin
CREATE FUNCTION take(p_holdout bigint, p_server uuid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    n bigint;
BEGIN
    PERFORM pg_advisory_lock(hashtextextended('holdoutd ' || current_schema() || ' holdout ' || p_holdout, 0));
    SELECT term INTO n FROM books WHERE holdout = p_holdout AND (server = p_server OR deleted);
    IF NOT FOUND THEN
        UPDATE books SET term = term + 1, server = p_server WHERE holdout = p_holdout AND NOT deleted RETURNING term INTO n;
    END IF;
    RETURN n;
END $$;
-- +goose StatementEnd

-- release gives a holdout to whoever waits for it; false if this session did not have it.
-- +goose StatementBegin
CREATE FUNCTION release(p_holdout bigint) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN pg_advisory_unlock(hashtextextended('holdoutd ' || current_schema() || ' holdout ' || p_holdout, 0));
END $$;
-- +goose StatementEnd

-- add_files is for servers that put files beside the ledger, until the session ends or says done_with_files; sweep_files for one that removes what nobody puts there, and is false while somebody does.
-- +goose StatementBegin
CREATE FUNCTION add_files() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_lock_shared(hashtextextended('holdoutd ' || current_schema() || ' files', 0));
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sweep_files() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN pg_try_advisory_lock(hashtextextended('holdoutd ' || current_schema() || ' files', 0));
END $$;
-- +goose StatementEnd
