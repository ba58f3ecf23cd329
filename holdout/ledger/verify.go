package ledger

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxLine is the longest line of an export that is read: a body and a canonical query at their limits, every byte
// escaped as six.
const maxLine = 6*(MaxCoreBytes+MaxCanonicalBytes+MaxPublicBytes) + 1<<16

// verifier recomputes one holdout's chain and books.
type verifier struct {
	facts   facts
	prev    digest
	next    int64
	spent   Amount
	queries map[digest]int64 // seq of the answer, by the hash of the query's id
	voids   int64
	deleted bool
}

func newVerifier(f facts) *verifier {
	return &verifier{facts: f, queries: map[digest]int64{}}
}

// add checks the next entry. The reason is "" if there is nothing wrong with it.
func (v *verifier) add(r *record) (reason string) {
	if r.Seq != v.next {
		return fmt.Sprintf("expected seq %d", v.next)
	}
	if v.deleted {
		return "an entry follows the holdout's deletion"
	}
	core, ok := split(r.Body, r.Seq, r.Head)
	if !ok {
		return "body does not end with its place in the chain"
	}
	if err := checkCore(core); err != nil {
		return "body: " + err.Error()
	}
	if headOf(v.prev, r, core) != r.Head {
		return "head does not match: this entry or one before it was changed"
	}
	if reason := v.debit(r); reason != "" {
		return reason
	}
	if reason := v.meaning(r, core); reason != "" {
		return reason
	}
	v.prev, v.spent = r.Head, r.Spent
	v.next++
	return ""
}

// debit checks the books: what was spent is added up, and stays within the limits.
func (v *verifier) debit(r *record) (reason string) {
	left := Amount{v.facts.Limits.Questions - v.spent.Questions, v.facts.Limits.Tokens - v.spent.Tokens}
	switch {
	case r.Questions < 0 || r.Tokens < 0:
		return "negative debit"
	case r.Questions > left.Questions || r.Tokens > left.Tokens:
		return fmt.Sprintf("debit of %d questions and %d tokens, but only %d and %d were left", r.Questions, r.Tokens, left.Questions, left.Tokens)
	case r.Spent != Amount{v.spent.Questions + r.Questions, v.spent.Tokens + r.Tokens}:
		return "spent is not what was spent before plus this debit"
	case r.Kind != KindAnswer && r.Kind != KindVoid && (r.Questions != 0 || r.Tokens != 0):
		return "only answers and voids cost"
	}
	return ""
}

// meaning checks what each kind of entry says.
func (v *verifier) meaning(r *record, core []byte) (reason string) {
	if (r.Kind == KindGenesis) != (r.Seq == 0) {
		return "the genesis entry is the first, and no other"
	}
	if r.Kind != KindAnswer && r.Kind != KindVoid && (r.Query != "" || len(r.Canonical) != 0) {
		return "only answers and voids have a query"
	}
	switch r.Kind {
	case KindGenesis:
		if !bytes.Equal(core, v.facts.core()) || !r.Time.Equal(v.facts.Created) || r.Principal != "" {
			return "the genesis entry is about other facts than these of the holdout"
		}
	case KindAnswer:
		if r.Query == "" {
			return "an answer without a query"
		}
		key := sha256.Sum256([]byte(r.Query))
		if first, ok := v.queries[key]; ok {
			return fmt.Sprintf("query %s was answered at seq %d", short(r.Query), first)
		}
		v.queries[key] = r.Seq
	case KindVoid:
		if r.Query == "" {
			return "a void without a query"
		}
		v.voids++
	case KindDeleted:
		want, err := json.Marshal(deletion{Deleted: v.facts.ID})
		if err != nil || !bytes.Equal(core, want) {
			return "the deletion is about another holdout"
		}
		v.deleted = true
	default:
		return fmt.Sprintf("unknown kind %q", short(r.Kind))
	}
	return ""
}

// end compares the chain with the books that were kept beside it.
func (v *verifier) end(entries int64, spent Amount, head digest, deleted bool) (Report, string) {
	report := Report{Holdout: v.facts.ID, Entries: v.next, Answers: int64(len(v.queries)), Voids: v.voids, Spent: v.spent,
		Limits: v.facts.Limits, Head: headText(v.prev), Deleted: v.deleted, Public: string(v.facts.Public)}
	switch {
	case v.next != entries:
		return report, fmt.Sprintf("the chain has %d entries, not %d", v.next, entries)
	case v.prev != head:
		return report, "the chain ends in another head"
	case v.spent != spent:
		return report, fmt.Sprintf("the books say %d questions and %d tokens, the chain %d and %d",
			spent.Questions, spent.Tokens, v.spent.Questions, v.spent.Tokens)
	case v.deleted != deleted:
		return report, "chain and books disagree on whether the holdout is deleted"
	}
	return report, ""
}

// VerifyExport recomputes the chain and the books of an export, and needs nothing else. It accepts exactly the bytes
// that Export writes; anything else is a *CorruptError that says where. What it cannot see is a whole chain that was
// made anew, or cut off with its header adjusted: compare the reported head, or any answer's, with one kept elsewhere.
func VerifyExport(r io.Reader) (Report, error) {
	lines := &lineReader{r: bufio.NewReaderSize(r, 1<<16)}
	var h exportHeader
	if err := lines.next(&h); err != nil {
		if errors.Is(err, io.EOF) {
			err = &CorruptError{Line: 1, Seq: -1, Reason: "the export is empty"}
		}
		return Report{}, err
	}
	corrupt := func(seq int64, reason string, err error) error {
		return &CorruptError{Holdout: short(h.Holdout), Line: lines.line, Seq: seq, Reason: reason, Err: err}
	}
	f, err := h.facts()
	if err != nil {
		return Report{}, corrupt(-1, "header", err)
	}
	head, ok := parseHead(h.Head)
	if !ok {
		return Report{}, corrupt(-1, "header: head is not sha256: and 64 hexadecimal digits", nil)
	}
	v := newVerifier(f)
	for {
		var e exportRecord
		err := lines.next(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Report{}, err
		}
		rec, err := e.record()
		if err != nil {
			return Report{}, corrupt(e.Seq, "entry", err)
		}
		if reason := v.add(&rec); reason != "" {
			return Report{}, corrupt(rec.Seq, reason, nil)
		}
	}
	report, reason := v.end(h.Entries, h.Spent, head, h.Deleted)
	if reason != "" {
		return Report{}, corrupt(-1, reason, nil)
	}
	return report, nil
}

// lineReader reads JSON Lines strictly: one spelling for one value.
type lineReader struct {
	r    *bufio.Reader
	line int64
}

// next reads one line into v, which is a pointer to a struct. It returns io.EOF after the last line.
func (l *lineReader) next(v any) error {
	l.line++
	line, err := l.read()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, v); err != nil {
		return &CorruptError{Line: l.line, Seq: -1, Reason: "not a JSON object of the expected form", Err: err}
	}
	var again bytes.Buffer
	if err := newLines(&again).Encode(v); err != nil {
		return &CorruptError{Line: l.line, Seq: -1, Reason: "cannot be spelled", Err: err}
	}
	if !bytes.Equal(again.Bytes(), line) {
		return &CorruptError{Line: l.line, Seq: -1, Reason: "not spelled as an export spells it"}
	}
	return nil
}

// read returns the next line with its newline.
func (l *lineReader) read() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, &CorruptError{Line: l.line, Seq: -1, Reason: "line is too long"}
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, &CorruptError{Line: l.line, Seq: -1, Reason: "the last line is cut off"}
		default:
			return nil, fmt.Errorf("ledger: read export: %w", err)
		}
	}
}

// VerifyDatabase recomputes the chains and the books of all holdouts of the ledger file at path, in the order of their
// creation. It reads only, needs no server key, and may run while a server uses the file: it sees one moment of it.
func VerifyDatabase(ctx context.Context, path string) ([]Report, error) {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return nil, err
	}
	reports, err := verifyDatabase(ctx, db.DB)
	return reports, errors.Join(err, done())
}

// VerifySealed opens the sealed values of all holdouts of the ledger file at path with the server key. It fails with
// ErrWrongKey, or with a *CorruptError that names the first that does not open. It reads only.
func VerifySealed(ctx context.Context, path string, key [32]byte) error {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(verifySealed(ctx, db, sealer{key: key}), done())
}

func verifySealed(ctx context.Context, db *readers, s sealer) error {
	var check []byte
	if err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'key-check'").Scan(&check); err != nil {
		return unreadable(err)
	}
	if _, err := s.open(check, purposeKeyCheck); err != nil {
		return fmt.Errorf("%w: the ledger was sealed with another one than the server.key beside it", ErrWrongKey)
	}
	rows, err := db.QueryContext(ctx, "SELECT id, seq, secret, state FROM holdouts JOIN books ON holdout = number WHERE deleted = 0 ORDER BY number")
	if err != nil {
		return unreadable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var seq int64
		var secret, state []byte
		if err := rows.Scan(&id, &seq, &secret, &state); err != nil {
			return unreadable(err)
		}
		if _, err := s.open(secret, purposeSecret(id)); err != nil {
			return &CorruptError{Holdout: id, Seq: -1, Reason: "secret", Err: err}
		}
		if _, err := s.open(state, purposeState(id, seq)); err != nil {
			return &CorruptError{Holdout: id, Seq: seq, Reason: "mechanism state", Err: err}
		}
	}
	if err := rows.Err(); err != nil {
		return unreadable(err)
	}
	return nil
}

func verifyDatabase(ctx context.Context, db *sql.DB) ([]Report, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("ledger: verify: %w", err)
	}
	defer tx.Rollback() // nothing was written
	if err := checkIntegrity(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := readRows(ctx, tx, "ORDER BY number")
	if err != nil {
		return nil, unreadable(err)
	}
	var reports []Report
	for i := range rows {
		report, err := verifyRow(ctx, tx, &rows[i])
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// checkIntegrity asks SQLite about the file's structure, and looks for rows without the rows that they belong to.
func checkIntegrity(ctx context.Context, tx *sql.Tx) error {
	var verdict string
	if err := tx.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return unreadable(err)
	}
	if verdict != "ok" {
		return &CorruptError{Seq: -1, Reason: "the database file is damaged: " + verdict}
	}
	if err := checkVersion(ctx, tx); err != nil {
		return err
	}
	for reason, count := range map[string]string{
		"%d entries belong to no holdout": "SELECT count(*) FROM entries WHERE holdout NOT IN (SELECT number FROM holdouts)",
		"%d books belong to no holdout":   "SELECT count(*) FROM books WHERE holdout NOT IN (SELECT number FROM holdouts)",
		"%d holdouts have no books":       "SELECT count(*) FROM holdouts WHERE number NOT IN (SELECT holdout FROM books)",
	} {
		var n int64
		if err := tx.QueryRowContext(ctx, count).Scan(&n); err != nil {
			return unreadable(err)
		}
		if n > 0 {
			return &CorruptError{Seq: -1, Reason: fmt.Sprintf(reason, n)}
		}
	}
	return nil
}

func verifyRow(ctx context.Context, tx *sql.Tx, row *row) (Report, error) {
	v := newVerifier(row.facts)
	for after := int64(math.MinInt64); ; after = v.next - 1 {
		records, err := readRecords(ctx, tx, row.number, after, math.MaxInt64, exportPage, "")
		if err != nil {
			return Report{}, unreadable(err)
		}
		for i := range records {
			if reason := v.add(&records[i]); reason != "" {
				return Report{}, &CorruptError{Holdout: row.ID, Seq: records[i].Seq, Reason: reason}
			}
		}
		if len(records) == 0 {
			break
		}
	}
	report, reason := v.end(row.seq+1, row.spent, row.head, row.deleted)
	if reason != "" {
		return Report{}, &CorruptError{Holdout: row.ID, Seq: -1, Reason: reason}
	}
	return report, nil
}

// unreadable says that the database could not be read, which is corruption unless it was the caller who stopped.
func unreadable(err error) error {
	var known *CorruptError
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &CorruptError{Seq: -1, Reason: "the database cannot be read", Err: err}
}
