-- +goose Up
-- The tables of a ledger, with the meanings that they have in SQLite. Times are nanoseconds since 1970 UTC. Digests and heads are 32 raw bytes. Texts
-- that come from outside are UTF-8 in bytea, for text takes no zero byte: convert_from(x, 'UTF8') shows them. What each column means for the
-- chain is in docs/format/ledger.md.
--
-- A server's role can read, and execute the functions below, and do nothing else (holdoutd.admit): it adds entries and moves books, and
-- cannot change or remove what is recorded. CHECKs and triggers are a second belt, also for the owner.
--
-- The schema itself is there already: goose keeps its version table in it.

CREATE TABLE holdoutd.meta (
    name  text  COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE holdoutd.holdouts (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      bytea  NOT NULL UNIQUE,
    created bigint NOT NULL,
    digest  bytea  NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    public  bytea  NOT NULL,
    secret  bytea
);

-- What changes with every commit, apart from the holdout's card, which can have megabytes. moves counts the changes: a state can change without an
-- entry, so that seq alone would not tell.
CREATE TABLE holdoutd.books (
    holdout bigint  PRIMARY KEY REFERENCES holdoutd.holdouts (number),
    moves   bigint  NOT NULL CHECK (moves >= 0),
    state   bytea,
    seq     bigint  NOT NULL CHECK (seq >= 0),
    head    bytea   NOT NULL CHECK (octet_length(head) = 32),
    deleted boolean NOT NULL,
    draft   boolean NOT NULL,                -- nothing of its parts was shown yet
    restored boolean NOT NULL DEFAULT false  -- from a backup, and nobody has said yet what was asked since
) WITH (fillfactor = 50);

-- A row for each meter of a holdout: what may be spent, and what is.
CREATE TABLE holdoutd.meters (
    holdout bigint NOT NULL REFERENCES holdoutd.books (holdout),
    name    text   COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 32),
    cap     bigint NOT NULL CHECK (cap >= 0),
    spent   bigint NOT NULL CHECK (spent BETWEEN 0 AND cap),
    PRIMARY KEY (holdout, name)
) WITH (fillfactor = 50);

-- debit and spent are objects of meters in their one spelling: what the chain commits to.
CREATE TABLE holdoutd.entries (
    holdout   bigint  NOT NULL REFERENCES holdoutd.holdouts (number),
    seq       bigint  NOT NULL CHECK (seq >= 0),
    version   integer NOT NULL,
    kind      text    COLLATE "C" NOT NULL CHECK (kind IN ('genesis', 'answer', 'void', 'deleted')),
    time      bigint  NOT NULL,
    query     bytea   NOT NULL,
    canonical bytea   NOT NULL,
    principal bytea   NOT NULL,
    debit     text    NOT NULL CHECK (json_typeof(debit::json) = 'object'),
    spent     text    NOT NULL CHECK (json_typeof(spent::json) = 'object'),
    body      bytea   NOT NULL,
    head      bytea   NOT NULL CHECK (octet_length(head) = 32),
    PRIMARY KEY (holdout, seq)
);

CREATE UNIQUE INDEX entries_query ON holdoutd.entries (holdout, query) WHERE kind = 'answer';
CREATE INDEX entries_void ON holdoutd.entries (holdout, query) WHERE kind = 'void';
CREATE INDEX entries_principal ON holdoutd.entries (principal, holdout, seq); -- not holdout first: entries_pkey alone is for ranges of seq

CREATE TABLE holdoutd.notes (
    holdout bigint NOT NULL,
    seq     bigint NOT NULL,
    note    bytea  NOT NULL CHECK (octet_length(note) > 0),
    PRIMARY KEY (holdout, seq),
    FOREIGN KEY (holdout, seq) REFERENCES holdoutd.entries (holdout, seq)
);

CREATE TABLE holdoutd.idempotency (
    principal bytea  NOT NULL,
    key       bytea  NOT NULL,
    request   bytea  NOT NULL CHECK (octet_length(request) = 32),
    resource  bytea  NOT NULL,
    created   bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint,
    PRIMARY KEY (principal, key)
);

CREATE INDEX idempotency_created ON holdoutd.idempotency (created);

-- Sessions that were ended before their time, which need not be known after it.
CREATE TABLE holdoutd.ended_sessions (
    id    bytea  PRIMARY KEY CHECK (octet_length(id) = 32),
    until bigint NOT NULL
);

CREATE TABLE holdoutd.keys (
    id      bytea   PRIMARY KEY,
    name    bytea   NOT NULL,
    scope   bytea   NOT NULL,
    created bigint  NOT NULL,
    hash    bytea   NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    revoked boolean NOT NULL,
    holdouts     bytea[] CHECK (cardinality(holdouts) > 0), -- to which it is limited; NULL: to none
    only_granted boolean NOT NULL
);

-- Slices of a holdout's budget. A grant is a row that is written once, and once more when it ends; what is spent of it moves with the debits that it
-- pays. Which grant paid for an entry is beside the chain: no head commits to it. That the sums agree is verified.
CREATE TABLE holdoutd.grants (
    number    bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    holdout   bigint  NOT NULL REFERENCES holdoutd.books (holdout),
    id        bytea   NOT NULL UNIQUE CHECK (id <> ''),
    parent    bytea   REFERENCES holdoutd.grants (id),
    holder    bytea   NOT NULL CHECK (holder <> ''),
    name      bytea   NOT NULL,
    shows     bytea   NOT NULL,
    may_grant boolean NOT NULL,
    maker     bytea   NOT NULL,
    created   bigint  NOT NULL,
    expires   bigint,
    ended     bigint,
    ended_by  bytea   NOT NULL DEFAULT ''
);

CREATE INDEX grants_holdout ON holdoutd.grants (holdout, number);
CREATE INDEX grants_holder ON holdoutd.grants (holder, number);
CREATE INDEX grants_due ON holdoutd.grants (holdout, expires) WHERE ended IS NULL AND expires IS NOT NULL;

-- Of a grant: what may be spent, what was, and what the grants that are parts of it have left.
CREATE TABLE holdoutd.grant_meters (
    owner bytea  NOT NULL REFERENCES holdoutd.grants (id),
    name  text   COLLATE "C" NOT NULL,
    cap   bigint NOT NULL CHECK (cap >= 0),
    spent bigint NOT NULL CHECK (spent BETWEEN 0 AND cap),
    held  bigint NOT NULL CHECK (held BETWEEN 0 AND cap - spent),
    PRIMARY KEY (owner, name)
) WITH (fillfactor = 50);

-- Of a holdout: what the grants of its own budget have left. None where nothing was ever granted.
CREATE TABLE holdoutd.granted (
    holdout bigint NOT NULL REFERENCES holdoutd.books (holdout),
    name    text   COLLATE "C" NOT NULL,
    held    bigint NOT NULL CHECK (held >= 0),
    PRIMARY KEY (holdout, name)
) WITH (fillfactor = 50);

-- Of a holdout: how often grants of it were made or ended.
CREATE TABLE holdoutd.granting (
    holdout bigint PRIMARY KEY REFERENCES holdoutd.books (holdout),
    changes bigint NOT NULL CHECK (changes > 0)
);

-- Which grant paid for an entry. An entry without a row was paid from what is not granted.
CREATE TABLE holdoutd.payers (
    holdout bigint NOT NULL,
    seq     bigint NOT NULL,
    payer   bytea  NOT NULL REFERENCES holdoutd.grants (id),
    PRIMARY KEY (holdout, seq),
    FOREIGN KEY (holdout, seq) REFERENCES holdoutd.entries (holdout, seq)
);

-- standing is where each holdout stands. An entry that ended its questions is a void by a name that no question has; the last of the names counts.
CREATE VIEW holdoutd.standing AS
    SELECT h.number, h.id, b.moves, b.seq, b.head, b.deleted, b.draft, b.restored, b.state,
        (SELECT coalesce(json_object_agg(m.name, m.cap), '{}')::text FROM holdoutd.meters m WHERE m.holdout = h.number) AS limits,
        (SELECT coalesce(json_object_agg(m.name, m.spent), '{}')::text FROM holdoutd.meters m WHERE m.holdout = h.number) AS spent,
        coalesce((SELECT e.query FROM holdoutd.entries e WHERE e.holdout = h.number AND e.kind = 'void' AND e.query >= 'end:' AND e.query < 'end;'
            ORDER BY e.query DESC LIMIT 1), '') AS ended,
        (SELECT coalesce(json_object_agg(g.name, g.held), '{}')::text FROM holdoutd.granted g WHERE g.holdout = h.number) AS held,
        coalesce((SELECT min(g.expires) FROM holdoutd.grants g WHERE g.holdout = h.number AND g.ended IS NULL AND g.expires IS NOT NULL), 0) AS due,
        coalesce((SELECT g.changes FROM holdoutd.granting g WHERE g.holdout = h.number), 0) AS changes
    FROM holdoutd.holdouts h JOIN holdoutd.books b ON b.holdout = h.number;

-- held_now is what grants of a holdout hold at a time: what has expired holds nothing, though no update has ended it yet. Where the holdout's questions were
-- ended no grant does.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.held_now(p_holdout bigint, p_now bigint) RETURNS text STABLE LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(json_object_agg(t.name, CASE WHEN t.held = 0 THEN 0 ELSE t.held - coalesce((SELECT sum(m.cap - m.spent) FROM holdoutd.grants g JOIN holdoutd.grant_meters m ON m.owner = g.id
        WHERE g.holdout = t.holdout AND g.parent IS NULL AND g.ended IS NULL AND g.expires <= p_now AND m.name = t.name), 0) END), '{}')::text
    FROM holdoutd.granted t WHERE t.holdout = p_holdout;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION holdoutd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on holdoutd.%: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0];
END $$;
-- +goose StatementEnd

CREATE TRIGGER entries_are_never_changed BEFORE UPDATE OR DELETE ON holdoutd.entries FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('entries are append-only');
CREATE TRIGGER entries_are_never_emptied BEFORE TRUNCATE ON holdoutd.entries FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('entries are append-only');
CREATE TRIGGER notes_are_never_changed BEFORE UPDATE OR DELETE ON holdoutd.notes FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('notes are append-only');
CREATE TRIGGER notes_are_never_emptied BEFORE TRUNCATE ON holdoutd.notes FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('notes are append-only');
CREATE TRIGGER books_are_never_forgotten BEFORE DELETE ON holdoutd.books FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER books_are_never_emptied BEFORE TRUNCATE ON holdoutd.books FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER meters_are_never_forgotten BEFORE DELETE ON holdoutd.meters FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER meters_are_never_emptied BEFORE TRUNCATE ON holdoutd.meters FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER holdouts_are_never_forgotten BEFORE DELETE ON holdoutd.holdouts FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('holdouts are never forgotten');
CREATE TRIGGER holdouts_are_never_emptied BEFORE TRUNCATE ON holdoutd.holdouts FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('holdouts are never forgotten');

CREATE TRIGGER grants_are_never_forgotten BEFORE DELETE ON holdoutd.grants FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('grants are never forgotten');
CREATE TRIGGER grants_are_never_emptied BEFORE TRUNCATE ON holdoutd.grants FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('grants are never forgotten');
CREATE TRIGGER grant_meters_are_never_forgotten BEFORE DELETE ON holdoutd.grant_meters FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER grant_meters_are_never_emptied BEFORE TRUNCATE ON holdoutd.grant_meters FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER payers_are_never_changed BEFORE UPDATE OR DELETE ON holdoutd.payers FOR EACH ROW EXECUTE FUNCTION holdoutd.refuse('who paid is never changed');
CREATE TRIGGER payers_are_never_emptied BEFORE TRUNCATE ON holdoutd.payers FOR EACH STATEMENT EXECUTE FUNCTION holdoutd.refuse('who paid is never changed');

CREATE TRIGGER grants_end_once BEFORE UPDATE ON holdoutd.grants FOR EACH ROW
    WHEN (OLD.ended IS NOT NULL OR NEW.ended IS NULL OR NEW.number <> OLD.number OR NEW.holdout <> OLD.holdout OR NEW.id <> OLD.id OR NEW.parent IS DISTINCT FROM OLD.parent
        OR NEW.holder <> OLD.holder OR NEW.name <> OLD.name OR NEW.shows <> OLD.shows OR NEW.may_grant <> OLD.may_grant OR NEW.maker <> OLD.maker
        OR NEW.created <> OLD.created OR NEW.expires IS DISTINCT FROM OLD.expires)
    EXECUTE FUNCTION holdoutd.refuse('a grant is never changed, and ends once');
CREATE TRIGGER grants_spend_and_never_get_back BEFORE UPDATE ON holdoutd.grant_meters FOR EACH ROW
    WHEN (NEW.spent < OLD.spent OR NEW.cap <> OLD.cap OR NEW.name <> OLD.name OR NEW.owner <> OLD.owner)
    EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER spent_never_falls BEFORE UPDATE ON holdoutd.meters FOR EACH ROW
    WHEN (NEW.spent < OLD.spent OR NEW.cap <> OLD.cap OR NEW.name <> OLD.name OR NEW.holdout <> OLD.holdout)
    EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER books_never_go_back BEFORE UPDATE ON holdoutd.books FOR EACH ROW
    WHEN (NEW.holdout <> OLD.holdout OR NEW.seq < OLD.seq OR NEW.moves < OLD.moves OR NEW.deleted < OLD.deleted OR NEW.draft > OLD.draft OR NEW.restored > OLD.restored)
    EXECUTE FUNCTION holdoutd.refuse('a budget is never given back');
CREATE TRIGGER holdouts_are_never_changed BEFORE UPDATE ON holdoutd.holdouts FOR EACH ROW
    WHEN (NEW.number <> OLD.number OR NEW.id <> OLD.id OR NEW.created <> OLD.created OR NEW.digest <> OLD.digest OR NEW.public <> OLD.public OR NEW.secret IS NOT NULL)
    EXECUTE FUNCTION holdoutd.refuse('the facts of a holdout are never changed');

-- +goose StatementBegin
CREATE FUNCTION holdoutd.entries_have_no_gaps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq > 0 AND NOT EXISTS (SELECT FROM holdoutd.entries WHERE holdout = NEW.holdout AND seq = NEW.seq - 1) THEN
        RAISE EXCEPTION 'entries have no gaps';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER entries_have_no_gaps BEFORE INSERT ON holdoutd.entries FOR EACH ROW EXECUTE FUNCTION holdoutd.entries_have_no_gaps();

-- +goose StatementBegin
CREATE FUNCTION holdoutd.books_end_where_the_chain_does() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holdoutd.entries WHERE holdout = NEW.holdout AND seq = NEW.seq AND head = NEW.head)
       OR EXISTS (SELECT FROM holdoutd.entries WHERE holdout = NEW.holdout AND seq > NEW.seq) THEN
        RAISE EXCEPTION 'the books end where the chain does';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER books_end_where_the_chain_does AFTER UPDATE ON holdoutd.books FOR EACH ROW EXECUTE FUNCTION holdoutd.books_end_where_the_chain_does();

-- +goose StatementBegin
CREATE FUNCTION holdoutd.meters_are_as_at_creation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.spent <> 0 OR (SELECT moves FROM holdoutd.books WHERE holdout = NEW.holdout) <> 0 THEN
        RAISE EXCEPTION 'a holdout gets no meters after its creation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER meters_are_as_at_creation BEFORE INSERT ON holdoutd.meters FOR EACH ROW EXECUTE FUNCTION holdoutd.meters_are_as_at_creation();

-- +goose StatementBegin
CREATE FUNCTION holdoutd.granted_is_left() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.held > (SELECT cap - spent FROM holdoutd.meters WHERE holdout = NEW.holdout AND name = NEW.name) THEN
        RAISE EXCEPTION 'more is granted than is left';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER granted_is_left BEFORE INSERT OR UPDATE ON holdoutd.granted FOR EACH ROW EXECUTE FUNCTION holdoutd.granted_is_left();

-- +goose StatementBegin
CREATE FUNCTION holdoutd.granted_is_not_spent_by_others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.spent > NEW.cap - coalesce((SELECT held FROM holdoutd.granted WHERE holdout = NEW.holdout AND name = NEW.name), 0) THEN
        RAISE EXCEPTION 'what is granted is spent by others';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER granted_is_not_spent_by_others BEFORE UPDATE ON holdoutd.meters FOR EACH ROW EXECUTE FUNCTION holdoutd.granted_is_not_spent_by_others();

-- durable refuses to write where a commit would not last. A server looks at these when it connects; fsync and full_page_writes can be changed
-- afterwards by a reload.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.durable() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('fsync') <> 'on' OR current_setting('full_page_writes') <> 'on' OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        RAISE EXCEPTION 'a debit would not be durable: fsync is %, full_page_writes %, synchronous_commit %',
            current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit') USING ERRCODE = '58030';
    END IF;
END $$;
-- +goose StatementEnd

-- lock_books locks a holdout's books and reads them: in a statement of its own, for only a later one sees what the lock was waiting for.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.lock_books(p_holdout bigint) RETURNS SETOF holdoutd.standing
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM holdoutd.books WHERE holdout = p_holdout FOR UPDATE;
    RETURN QUERY SELECT * FROM holdoutd.standing WHERE number = p_holdout;
END $$;
-- +goose StatementEnd

-- move_grants writes what an update makes of grants: those that it made, and what was spent, held and ended of all that it changed. Ids and texts are in
-- hexadecimal, for JSON has no bytes. It has the rights of its caller, which is move_books.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.move_grants(p_holdout bigint, p jsonb) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed bigint;
BEGIN
    INSERT INTO holdoutd.grants (holdout, id, parent, holder, name, shows, may_grant, maker, created, expires)
        SELECT p_holdout, decode(g.id, 'hex'), decode(g.parent, 'hex'), decode(g.holder, 'hex'), decode(g.name, 'hex'), decode(g.shows, 'hex'), g.may_grant,
            decode(g.maker, 'hex'), g.created, g.expires
        FROM ROWS FROM (jsonb_to_recordset(p -> 'made') AS (id text, parent text, holder text, name text, shows text, may_grant boolean, maker text, created bigint, expires bigint))
            WITH ORDINALITY AS g (id, parent, holder, name, shows, may_grant, maker, created, expires, n)
        ORDER BY g.n;
    INSERT INTO holdoutd.grant_meters (owner, name, cap, spent, held)
        SELECT decode(m.owner, 'hex'), m.name, m.cap, m.spent, m.held FROM jsonb_to_recordset(p -> 'begun') AS m (owner text, name text, cap bigint, spent bigint, held bigint);
    UPDATE holdoutd.grant_meters m SET spent = t.spent, held = t.held
        FROM jsonb_to_recordset(p -> 'moved') AS t (owner text, name text, spent bigint, held bigint)
        WHERE m.owner = decode(t.owner, 'hex') AND m.name = t.name;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> jsonb_array_length(p -> 'moved') THEN
        RAISE EXCEPTION '% amounts of grants changed, not %', changed, jsonb_array_length(p -> 'moved');
    END IF;
    UPDATE holdoutd.grants g SET ended = t.at, ended_by = decode(t.by, 'hex')
        FROM jsonb_to_recordset(p -> 'ended') AS t (id text, at bigint, by text)
        WHERE g.id = decode(t.id, 'hex') AND g.holdout = p_holdout;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> jsonb_array_length(p -> 'ended') THEN
        RAISE EXCEPTION '% grants ended, not %', changed, jsonb_array_length(p -> 'ended');
    END IF;
    INSERT INTO holdoutd.granted (holdout, name, held) SELECT p_holdout, t.name, t.held FROM jsonb_to_recordset(p -> 'held') AS t (name text, held bigint)
        ON CONFLICT (holdout, name) DO UPDATE SET held = excluded.held;
    INSERT INTO holdoutd.granting (holdout, changes) SELECT p_holdout, (p ->> 'changes')::bigint WHERE (p ->> 'changes')::bigint > 0
        ON CONFLICT (holdout) DO UPDATE SET changes = excluded.changes;
END $$;
-- +goose StatementEnd

-- move_books is the end of an update, in one round trip. The caller has run it on the books with p_moves and p_head, and believed that none of
-- p_absent is answered and that no key of w_… was used. It returns
--   0: all of it was so, and what the update makes of the books is written;
--   1: the books are others by now; 2: one of p_absent is answered; 3: a key was used. Nothing is written.
-- An update that changes nothing (p_change false) is only told whether what it saw was so.
--
-- Here and below a loop looks rows up one by one where a join could: a plan is made while tables are small, and kept while they grow.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.move_books(p_holdout bigint, p_moves bigint, p_head bytea, p_absent bytea[], w_principal bytea[], w_key bytea[],
    p_change boolean, p_accept boolean, p_state bytea, p_new_head bytea, p_meters text[], p_spent bigint[],
    e_version integer[], e_kind text[], e_time bigint[], e_query bytea[], e_canonical bytea[], e_principal bytea[], e_debit text[], e_spent text[],
    e_body bytea[], e_head bytea[], e_note bytea[], e_payer bytea[], p_grants jsonb, i_principal bytea[], i_key bytea[], i_request bytea[], i_resource bytea[])
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
    q bytea;
    changed bigint;
BEGIN
    IF p_change THEN
        PERFORM holdoutd.durable();
        SELECT moves, head, seq, deleted, restored INTO b FROM holdoutd.books WHERE holdout = p_holdout FOR UPDATE;
    ELSE
        SELECT moves, head, seq, deleted, restored INTO b FROM holdoutd.books WHERE holdout = p_holdout;
    END IF;
    IF NOT FOUND OR b.moves <> p_moves OR b.head <> p_head OR b.deleted OR (b.restored AND p_change AND NOT p_accept) THEN
        RETURN 1;
    END IF;
    FOREACH q IN ARRAY p_absent LOOP
        IF EXISTS (SELECT FROM holdoutd.entries WHERE holdout = p_holdout AND query = q AND kind = 'answer') THEN
            RETURN 2;
        END IF;
    END LOOP;
    FOR n IN 1 .. cardinality(w_key) LOOP
        IF EXISTS (SELECT FROM holdoutd.idempotency WHERE principal = w_principal[n] AND key = w_key[n]) THEN
            RETURN 3;
        END IF;
    END LOOP;
    IF cardinality(i_key) > 0 THEN
        PERFORM holdoutd.durable();
        INSERT INTO holdoutd.idempotency (principal, key, request, resource) SELECT * FROM unnest(i_principal, i_key, i_request, i_resource);
    END IF;
    IF p_change THEN
        IF p_grants IS NOT NULL THEN -- before what is spent: what a grant spends it does not hold any more
            PERFORM holdoutd.move_grants(p_holdout, p_grants);
        END IF;
        INSERT INTO holdoutd.entries (holdout, seq, version, kind, time, query, canonical, principal, debit, spent, body, head)
            SELECT p_holdout, b.seq + n, version, kind, time, query, canonical, principal, debit, spent, body, head
            FROM unnest(e_version, e_kind, e_time, e_query, e_canonical, e_principal, e_debit, e_spent, e_body, e_head) WITH ORDINALITY
                AS e (version, kind, time, query, canonical, principal, debit, spent, body, head, n)
            ORDER BY n;
        INSERT INTO holdoutd.notes (holdout, seq, note)
            SELECT p_holdout, b.seq + n, note FROM unnest(e_note) WITH ORDINALITY AS e (note, n) WHERE octet_length(note) > 0;
        INSERT INTO holdoutd.payers (holdout, seq, payer)
            SELECT p_holdout, b.seq + n, payer FROM unnest(e_payer) WITH ORDINALITY AS e (payer, n) WHERE octet_length(payer) > 0;
        IF cardinality(p_meters) > 0 THEN
            UPDATE holdoutd.meters m SET spent = p.spent FROM unnest(p_meters, p_spent) p (name, spent) WHERE m.holdout = p_holdout AND m.name = p.name;
            GET DIAGNOSTICS changed = ROW_COUNT;
            IF changed <> cardinality(p_meters) THEN
                RAISE EXCEPTION '% meters changed, not %', changed, cardinality(p_meters);
            END IF;
        END IF;
        UPDATE holdoutd.books SET moves = moves + 1, state = p_state, seq = b.seq + cardinality(e_kind), head = p_new_head, restored = false WHERE holdout = p_holdout;
    END IF;
    RETURN 0;
END $$;
-- +goose StatementEnd

-- lock_creation lets one server at a time create, replace or delete a holdout or make a key, so that what it looks up first stays so.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.lock_creation() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    PERFORM pg_advisory_xact_lock(5207667809442);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION holdoutd.use_idempotency(p_principal bytea, p_key bytea, p_request bytea, p_resource bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO holdoutd.idempotency (principal, key, request, resource) VALUES (p_principal, p_key, p_request, p_resource);
$$;
-- +goose StatementEnd

-- insert_holdout records a holdout with its books, its meters and the first entries of its chain: the genesis, and what it begins with as spent.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.insert_holdout(p_id bytea, p_created bigint, p_digest bytea, p_public bytea, p_secret bytea, p_state bytea, p_draft boolean,
    p_meters text[], p_caps bigint[], p_spent bigint[],
    e_version integer[], e_kind text[], e_time bigint[], e_query bytea[], e_canonical bytea[], e_principal bytea[], e_debit text[], e_spent text[], e_body bytea[], e_head bytea[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last integer := cardinality(e_kind);
    h bigint;
BEGIN
    PERFORM holdoutd.durable();
    INSERT INTO holdoutd.holdouts (id, created, digest, public, secret) VALUES (p_id, p_created, p_digest, p_public, p_secret) RETURNING number INTO h;
    INSERT INTO holdoutd.books (holdout, moves, state, seq, head, deleted, draft) VALUES (h, 0, p_state, last - 1, e_head[last], false, p_draft);
    INSERT INTO holdoutd.meters (holdout, name, cap, spent) SELECT h, m.name, m.cap, 0 FROM unnest(p_meters, p_caps) m (name, cap);
    UPDATE holdoutd.meters m SET spent = p.spent FROM unnest(p_meters, p_spent) p (name, spent) WHERE m.holdout = h AND m.name = p.name AND p.spent <> 0;
    INSERT INTO holdoutd.entries (holdout, seq, version, kind, time, query, canonical, principal, debit, spent, body, head)
        SELECT h, n - 1, version, kind, time, query, canonical, principal, debit, spent, body, head
        FROM unnest(e_version, e_kind, e_time, e_query, e_canonical, e_principal, e_debit, e_spent, e_body, e_head) WITH ORDINALITY
            AS e (version, kind, time, query, canonical, principal, debit, spent, body, head, n)
        ORDER BY n;
END $$;
-- +goose StatementEnd

-- end_holdout ends a chain and erases the holdout's secret and state. The caller holds its books (lock_books).
-- +goose StatementBegin
CREATE FUNCTION holdoutd.end_holdout(p_holdout bigint, p_seq bigint, e_version integer, e_time bigint, e_principal bytea, e_debit text, e_spent text, e_body bytea, e_head bytea)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    INSERT INTO holdoutd.entries (holdout, seq, version, kind, time, query, canonical, principal, debit, spent, body, head)
        VALUES (p_holdout, p_seq, e_version, 'deleted', e_time, '', '', e_principal, e_debit, e_spent, e_body, e_head);
    UPDATE holdoutd.holdouts SET secret = NULL WHERE number = p_holdout;
    UPDATE holdoutd.books SET state = NULL, deleted = true, seq = p_seq, head = e_head, moves = moves + 1 WHERE holdout = p_holdout;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION holdoutd.settle_holdout(p_holdout bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    UPDATE holdoutd.books SET draft = false WHERE holdout = p_holdout AND draft;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION holdoutd.insert_key(p_id bytea, p_name bytea, p_scope bytea, p_created bigint, p_hash bytea, p_revoked boolean,
    p_holdouts bytea[], p_only_granted boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO holdoutd.keys (id, name, scope, created, hash, revoked, holdouts, only_granted)
        VALUES (p_id, p_name, p_scope, p_created, p_hash, p_revoked, p_holdouts, p_only_granted);
$$;
-- +goose StatementEnd

-- revoke_key returns whether there is such a key.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.revoke_key(p_id bytea) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    UPDATE holdoutd.keys SET revoked = true WHERE id = p_id AND NOT revoked;
    RETURN EXISTS (SELECT FROM holdoutd.keys WHERE id = p_id);
END $$;
-- +goose StatementEnd

-- end_session remembers that a session was ended, and forgets those of which nobody has to know any more.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.end_session(p_id bytea, p_until bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    DELETE FROM holdoutd.ended_sessions WHERE until < (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint;
    INSERT INTO holdoutd.ended_sessions (id, until) VALUES (p_id, p_until) ON CONFLICT (id) DO UPDATE SET until = greatest(ended_sessions.until, excluded.until);
END $$;
-- +goose StatementEnd

-- key_check records the value by which the ledger knows its server key, unless there is one, and returns the one that is recorded.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.key_check(p_value bytea) RETURNS bytea LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    INSERT INTO holdoutd.meta (name, value) VALUES ('key-check', p_value) ON CONFLICT (name) DO NOTHING;
    RETURN (SELECT value FROM holdoutd.meta WHERE name = 'key-check');
END $$;
-- +goose StatementEnd

-- probe is the smallest durable change. When it is committed, everything that could be read before it is durable too, on the standby as well.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.probe() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdoutd.durable();
    INSERT INTO holdoutd.meta (name, value) VALUES ('probe', convert_to(clock_timestamp()::text, 'UTF8'))
        ON CONFLICT (name) DO UPDATE SET value = excluded.value;
END $$;
-- +goose StatementEnd

-- prune forgets idempotency keys that are older than they are remembered, by the database's clock: 7 days.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.prune() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM holdoutd.idempotency WHERE created < (extract(epoch FROM clock_timestamp() - interval '7 days') * 1000000000)::bigint;
$$;
-- +goose StatementEnd

-- admit lets a role serve this ledger: read all of it, and execute what is above. Whoever calls it must own the schema. It holds for what
-- later migrations add, too.
-- +goose StatementBegin
CREATE FUNCTION holdoutd.admit(p_role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA holdoutd TO %I', p_role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA holdoutd TO %I', p_role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdoutd TO %I', p_role);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION holdoutd.admit(text) FROM %I', p_role);
    EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA holdoutd GRANT SELECT ON TABLES TO %I', p_role);
    EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA holdoutd GRANT EXECUTE ON FUNCTIONS TO %I', p_role);
END $$;
-- +goose StatementEnd

REVOKE ALL ON SCHEMA holdoutd FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdoutd FROM PUBLIC;
