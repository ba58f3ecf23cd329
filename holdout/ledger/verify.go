package ledger

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line of an export that is read: a body and a canonical query at their limits, every byte
// escaped as six.
const maxLine = 6*(MaxCoreBytes+MaxCanonicalBytes+MaxPublicBytes) + 1<<16

// verifier recomputes one holdout's chain and books.
type verifier struct {
	holdout  *Holdout
	prev     digest
	next     int64
	spent    Meters
	queries  map[digest]int64 // seq of the answer, by the hash of the query's id
	voids    int64
	epsilons Epsilons
	releases map[digest]int64 // seq of the release, by the hash of the request's id
	closed   bool
	retired  bool
	deleted  bool
}

func newVerifier(h *Holdout) *verifier {
	return &verifier{holdout: h, spent: h.Limits.none(), queries: map[digest]int64{}, releases: map[digest]int64{}}
}

// add checks the next entry. The error is nil if there is nothing wrong with it.
func (v *verifier) add(e *Entry) error {
	if e.Seq != v.next {
		return wrong("expected seq %d", v.next)
	}
	if v.deleted {
		return wrong("an entry follows the holdout's deletion")
	}
	if v.closed && e.Kind != KindRetired && e.Kind != KindDeleted {
		return wrong("an entry follows the closing, and is neither a retirement nor a deletion")
	}
	if v.retired && e.Kind != KindDeleted {
		return wrong("an entry follows the retirement, and is no deletion")
	}
	if err := e.CheckHead(v.prev); err != nil {
		return err
	}
	core, _ := split(e.Body, e.Seq, e.Head) // CheckHead has done it
	if err := checkCore(core); err != nil {
		return wrong("body: %v", err)
	}
	if reason := v.debit(e); reason != "" {
		return wrong("%s", reason)
	}
	if reason := v.meaning(e, core); reason != "" {
		return wrong("%s", reason)
	}
	v.prev, v.spent = e.Head, e.Spent
	v.next++
	return nil
}

// located says where something is wrong. What is not a *CorruptError becomes the cause of one.
func located(err error, holdout string, line, seq int64) error {
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		return &CorruptError{Holdout: holdout, Line: line, Seq: seq, Reason: "it cannot be read", Err: err}
	}
	return &CorruptError{Holdout: holdout, Line: line, Seq: seq, Reason: corrupt.Reason, Err: corrupt.Err}
}

func wrong(format string, args ...any) error {
	return &CorruptError{Seq: -1, Reason: fmt.Sprintf(format, args...)}
}

// debit checks the books: what was spent is added up for each meter, and stays within its limit.
func (v *verifier) debit(e *Entry) (reason string) {
	limits := v.holdout.Limits
	if !limits.sameNames(e.Debit) || !limits.sameNames(e.Spent) {
		return fmt.Sprintf("debit and spent name other meters than the limits: %v and %v, not %v", e.Debit, e.Spent, limits)
	}
	for name, left := range limits.left(v.spent) {
		switch amount := e.Debit[name]; {
		case amount < 0:
			return "negative debit"
		case amount > left:
			return fmt.Sprintf("debit of %d %s, but only %d were left", amount, name, left)
		case e.Spent[name] != v.spent[name]+amount:
			return "spent is not what was spent before plus this debit"
		case (e.Kind == KindClosed || e.Kind == KindRetired) && amount != left:
			return "a closing and a retirement debit all that is left"
		case amount != 0 && (e.Kind == KindGenesis || e.Kind == KindRelease || e.Kind == KindDeleted):
			return "only answers, voids, closings and retirements cost"
		}
	}
	return ""
}

// meaning checks what each kind of entry says.
func (v *verifier) meaning(e *Entry, core []byte) (reason string) {
	if (e.Kind == KindGenesis) != (e.Seq == 0) {
		return "the genesis entry is the first, and no other"
	}
	if e.Kind != KindAnswer && e.Kind != KindVoid && e.Kind != KindRelease && (e.Query != "" || len(e.Canonical) != 0) {
		return "only answers, voids and releases have a query"
	}
	switch e.Kind {
	case KindGenesis:
		if !bytes.Equal(core, v.holdout.core()) || !e.Time.Equal(v.holdout.Created) || e.Principal != "" {
			return "the genesis entry is about other facts than these of the holdout"
		}
	case KindAnswer:
		if e.Query == "" {
			return "an answer without a query"
		}
		key := sha256.Sum256([]byte(e.Query))
		if first, ok := v.queries[key]; ok {
			return fmt.Sprintf("query %s was answered at seq %d", short(e.Query), first)
		}
		v.queries[key] = e.Seq
	case KindVoid:
		if e.Query == "" {
			return "a void without a query"
		}
		v.voids++
	case KindRelease:
		if e.Query == "" {
			return "a release without an id"
		}
		key := sha256.Sum256([]byte(e.Query))
		if first, ok := v.releases[key]; ok {
			return fmt.Sprintf("request %s was released at seq %d", short(e.Query), first)
		}
		epsilons, err := v.epsilons.With(e.Canonical)
		if err != nil {
			return err.Error()
		}
		v.epsilons, v.releases[key] = epsilons, e.Seq
	case KindClosed:
		v.closed = true
	case KindRetired:
		v.retired = true
	case KindDeleted:
		if !bytes.Equal(core, deletionCore(v.holdout.ID)) {
			return "the deletion is about another holdout"
		}
		v.deleted = true
	default:
		return fmt.Sprintf("unknown kind %q", short(e.Kind))
	}
	return ""
}

// end compares the chain with the books that were kept beside it.
func (v *verifier) end(entries int64, head digest) (Report, error) {
	h := v.holdout
	report := Report{Holdout: h.ID, Entries: v.next, Answers: int64(len(v.queries)), Voids: v.voids, Spent: v.spent,
		Limits: h.Limits, Head: HeadText(v.prev), Deleted: v.deleted, Closed: v.closed, Retired: v.retired, Releases: v.epsilons.Made, Epsilon: float64(v.epsilons.Spent) / 1e6, Public: string(h.Public)}
	switch {
	case v.next != entries:
		return report, wrong("the chain has %d entries, not %d", v.next, entries)
	case v.prev != head:
		return report, wrong("the chain ends in another head")
	case !v.spent.Equal(h.Spent):
		return report, wrong("the books say that %v are spent, the chain %v", h.Spent, v.spent)
	case v.deleted != h.Deleted:
		return report, wrong("chain and books disagree on whether the holdout is deleted")
	}
	return report, nil
}

// Each hears of every entry that a verification finds in order, in the order of the chain.
type Each func(holdout string, e *Entry)

// Verify recomputes the chain and what is spent. An error is a *CorruptError that says where, a *VersionError in one, or what the
// entries failed with.
func (c *Chain) Verify(each ...Each) (Report, error) {
	if err := c.Holdout.Limits.checkLimits(); err != nil {
		return Report{}, located(wrong("%v", err), c.Holdout.ID, 0, -1)
	}
	v := newVerifier(&c.Holdout)
	for e, err := range c.Entries {
		if err != nil {
			return Report{}, err
		}
		if err := v.add(&e); err != nil {
			return Report{}, located(err, c.Holdout.ID, 0, e.Seq)
		}
		for _, hear := range each {
			hear(c.Holdout.ID, &e)
		}
	}
	report, err := v.end(c.Seq+1, c.Head)
	if err == nil && v.epsilons.Text() != c.Holdout.Released.Text() {
		err = wrong("the books say of releases %q, the chain %q", c.Holdout.Released.Text(), v.epsilons.Text())
	}
	if err != nil {
		return Report{}, located(err, c.Holdout.ID, 0, -1)
	}
	return report, nil
}

// VerifyExport recomputes the chain and the books of an export, and needs nothing else. It accepts exactly the bytes
// that Export writes; anything else is a *CorruptError that says where. What it cannot see is a whole chain that was
// made anew, or cut off with its header adjusted: compare the reported head, or any answer's, with one kept elsewhere.
func VerifyExport(r io.Reader, each ...Each) (Report, error) {
	lines := &lineReader{r: bufio.NewReaderSize(r, 1<<16)}
	var h exportHeader
	if err := lines.header(&h); err != nil {
		if errors.Is(err, io.EOF) {
			err = &CorruptError{Line: 1, Seq: -1, Reason: "the export is empty"}
		}
		return Report{}, err
	}
	corrupt := func(seq int64, err error) error { return located(err, short(h.Holdout), lines.line, seq) }
	holdout, err := h.holdout()
	if err != nil {
		return Report{}, corrupt(-1, err)
	}
	head, ok := parseHead(h.Head)
	if !ok {
		return Report{}, corrupt(-1, wrong("head is not sha256: and 64 hexadecimal digits"))
	}
	v := newVerifier(&holdout)
	for {
		var r exportRecord
		err := lines.next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Report{}, err
		}
		e, err := r.entry()
		if err != nil {
			return Report{}, corrupt(r.Seq, err)
		}
		if err := v.add(&e); err != nil {
			return Report{}, corrupt(e.Seq, err)
		}
		for _, hear := range each {
			hear(holdout.ID, &e)
		}
	}
	report, err := v.end(h.Entries, head)
	if err != nil {
		return Report{}, corrupt(-1, err)
	}
	return report, nil
}

// lineReader reads JSON Lines strictly: one spelling for one value.
type lineReader struct {
	r    *bufio.Reader
	line int64
}

// header reads the first line. What it says of the format comes before everything else about it.
func (l *lineReader) header(h *exportHeader) error {
	l.line++
	line, err := l.read()
	if err != nil {
		return err
	}
	var what struct{ Format string }
	if err := json.Unmarshal(line, &what); err == nil {
		if err := checkFormat(what.Format); err != nil {
			return &CorruptError{Line: l.line, Seq: -1, Reason: "header", Err: err}
		}
	}
	return l.strict(line, h)
}

// next reads one line into v, which is a pointer to a struct. It returns io.EOF after the last line.
func (l *lineReader) next(v any) error {
	l.line++
	line, err := l.read()
	if err != nil {
		return err
	}
	return l.strict(line, v)
}

func (l *lineReader) strict(line []byte, v any) error {
	err := json.Unmarshal(line, v)
	if r, ok := v.(*exportRecord); ok && r.Version != EntryVersion {
		return &CorruptError{Line: l.line, Seq: r.Seq, Reason: "it cannot be read", Err: unknownEntry(r.Version)}
	}
	if err != nil {
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
