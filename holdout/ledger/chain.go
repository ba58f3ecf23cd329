package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// chainTag separates these hashes from any other use of SHA-256 and names the version of the encoding.
const chainTag = "holdoutd ledger entry 2\n"

type digest = [sha256.Size]byte

// headOf chains an entry to the head before it. Every part has a fixed width or goes behind its length, so that no
// two different entries have the same encoding; docs/format/ledger.md has the picture.
func headOf(prev digest, r *Entry, core []byte) digest {
	h := sha256.New()
	var n [8]byte
	number := func(v int64) { binary.BigEndian.PutUint64(n[:], uint64(v)); h.Write(n[:]) }
	text := func(s []byte) { number(int64(len(s))); h.Write(s) }
	coreSum := sha256.Sum256(core)

	h.Write([]byte(chainTag))
	h.Write(prev[:])
	number(r.Seq)
	text([]byte(r.Kind))
	text([]byte(timeText(r.Time)))
	text([]byte(r.Query))
	text(r.Canonical)
	text([]byte(r.Principal))
	names := r.Spent.names()
	number(int64(len(names)))
	for _, name := range names { // the same as those of the debit
		text([]byte(name))
		number(r.Debit[name])
		number(r.Spent[name])
	}
	h.Write(coreSum[:])
	return digest(h.Sum(nil))
}

// seal fills Head and Body from the head before and the core.
func (r *Entry) seal(prev digest, core []byte) {
	r.Head = headOf(prev, r, core)
	r.Body = join(core, r.Seq, r.Head)
}

// timeText is how times are hashed and exported: RFC 3339 in UTC with as many decimals of a second as it takes.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// parseTime is the inverse of timeText and accepts nothing else; time.Parse alone is lenient.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err == nil && timeText(t) != s {
		err = errors.New("not in UTC and in its shortest spelling")
	}
	return t, err
}

// HeadText is how heads and ids of queries are written: "sha256:" and 64 hexadecimal digits.
func HeadText(head digest) string { return "sha256:" + hex.EncodeToString(head[:]) }

// parseHead is the inverse of HeadText and accepts nothing else.
func parseHead(s string) (head digest, ok bool) {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok {
		return head, false
	}
	return parseHex(digits)
}

// parseHex accepts 64 lower-case hexadecimal digits and nothing else.
func parseHex(digits string) (d digest, ok bool) {
	if len(digits) != 2*len(d) || strings.ToLower(digits) != digits {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(digits))
	return d, err == nil
}

// place is what join puts before the last brace of the core.
func place(seq int64, head digest) string {
	return `,"ledger":{"seq":` + strconv.FormatInt(seq, 10) + `,"head":"` + HeadText(head) + `"}}`
}

// join makes the released bytes of a core.
func join(core []byte, seq int64, head digest) []byte {
	suffix := place(seq, head)
	body := make([]byte, 0, len(core)-1+len(suffix))
	return append(append(body, core[:len(core)-1]...), suffix...)
}

// split is the inverse of join; ok is false if the body does not carry this place in the chain.
func split(body []byte, seq int64, head digest) (core []byte, ok bool) {
	rest, ok := bytes.CutSuffix(body, []byte(place(seq, head)))
	if !ok {
		return nil, false
	}
	return append(bytes.Clone(rest), '}'), true
}

// checkCore says whether join and split work on a core, and whether a reader of JSON sees the ledger's member only once.
func checkCore(core []byte) error {
	switch {
	case len(core) > MaxCoreBytes:
		return invalid("answer of %d bytes, at most %d", len(core), MaxCoreBytes)
	case !utf8.Valid(core):
		return invalid("answer is not UTF-8")
	case len(core) < 2 || core[0] != '{' || core[len(core)-1] != '}' || !json.Valid(core):
		return invalid("answer is not a JSON object without surrounding space")
	case len(bytes.TrimSpace(core[1:len(core)-1])) == 0:
		return invalid("answer is an empty object")
	}
	// The writer checks every answer, so it decodes only those in which the name can be hidden.
	if bytes.IndexByte(core, '\\') < 0 && !bytes.Contains(bytes.ToLower(core), []byte("ledger")) {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(core, &members); err != nil {
		return invalid("answer is not a JSON object: %v", err)
	}
	for name := range members {
		if strings.EqualFold(name, "ledger") {
			return invalid("answer has a member %q already", name)
		}
	}
	return nil
}

// checkText keeps texts short and printable in an export.
func checkText(what, s string, empty bool) error {
	switch {
	case s == "" && !empty:
		return invalid("%s is empty", what)
	case len(s) > MaxTextBytes:
		return invalid("%s of %d bytes, at most %d", what, len(s), MaxTextBytes)
	case !utf8.ValidString(s):
		return invalid("%s is not UTF-8", what)
	}
	return nil
}

// checkTime keeps times within what nanoseconds in an int64 can say.
func checkTime(t time.Time) error {
	if !time.Unix(0, t.UnixNano()).Equal(t) {
		return invalid("time %v is before 1678 or after 2261", t)
	}
	return nil
}

// genesis are the public facts of a holdout: the core of its chain's first entry.
type genesis struct {
	Holdout string `json:"holdout"`
	Created string `json:"created"`
	Digest  string `json:"digest"` // keyed, in hex
	Limits  Meters `json:"limits"`
	Public  string `json:"public"` // "sha256:…" of the card and settings
}

// core is that of the genesis entry: the holdout's public facts.
func (h *Holdout) core() []byte {
	core, err := json.Marshal(genesis{
		Holdout: h.ID, Created: timeText(h.Created), Digest: hex.EncodeToString(h.Digest[:]),
		Limits: h.Limits, Public: HeadText(sha256.Sum256(h.Public)),
	})
	if err != nil {
		panic(err) // a struct of strings and integers
	}
	return core
}

// Genesis is the first entry of the holdout's chain. It is a function of ID, Created, Digest, Limits and Public.
func (h *Holdout) Genesis() Entry {
	none := h.Limits.none()
	e := Entry{Version: EntryVersion, Kind: KindGenesis, Time: h.Created.UTC(), Debit: none, Spent: none}
	e.seal(digest{}, h.core())
	return e
}

// deletion is the core of a chain's last entry.
type deletion struct {
	Deleted string `json:"deleted"` // the holdout's id
}

func deletionCore(id string) []byte {
	core, err := json.Marshal(deletion{Deleted: id})
	if err != nil {
		panic(err) // a struct of a string
	}
	return core
}

// Deletion is the last entry of a deleted holdout's chain. The error is ErrInvalid for a principal that cannot be recorded.
func (b *Books) Deletion(principal string, at time.Time) (Entry, error) {
	if err := errors.Join(checkText("principal", principal, true), checkTime(at)); err != nil {
		return Entry{}, err
	}
	e := Entry{Version: EntryVersion, Seq: b.Seq + 1, Kind: KindDeleted, Time: at.UTC(), Principal: principal,
		Debit: b.Limits.none(), Spent: b.Spent}
	e.seal(b.Head, deletionCore(b.ID))
	return e, nil
}

// CheckHead recomputes an entry's head from the one before. It is nil if it fits, and otherwise a *VersionError or a *CorruptError,
// which does not name the holdout.
func (e *Entry) CheckHead(prev [32]byte) error {
	if e.Version != EntryVersion {
		return unknownEntry(e.Version)
	}
	core, ok := split(e.Body, e.Seq, e.Head)
	if !ok {
		return &CorruptError{Seq: e.Seq, Reason: "body does not end with its place in the chain"}
	}
	if !e.Debit.sameNames(e.Spent) || headOf(prev, e, core) != e.Head {
		return &CorruptError{Seq: e.Seq, Reason: "head does not match: this entry or one before it was changed"}
	}
	return nil
}

// CheckEnds compares the books with the ends of the chain, and reads no more of it: the first entry, the last, and the one before. read returns the entries
// behind a seq in order, at most as many as it is told. An error is a *CorruptError that says where, a *VersionError in one, or what read failed with.
func (c *Chain) CheckEnds(read func(after int64, most int) ([]Entry, error)) error {
	first, err := read(-1, 1)
	if err != nil {
		return err
	}
	last, err := read(c.Seq-2, 3) // one more than there should be
	if err != nil {
		return err
	}
	return c.compareEnds(first, last)
}

func (c *Chain) compareEnds(first, last []Entry) error {
	damaged := func(format string, args ...any) error { return located(wrong(format, args...), c.Holdout.ID, 0, -1) }
	if len(first) != 1 || first[0].Head != c.Holdout.Genesis().Head {
		return damaged("the genesis entry is about other facts than these of the holdout")
	}
	if len(last) == 0 || last[len(last)-1].Seq != c.Seq {
		return damaged("the books end at seq %d, the chain elsewhere", c.Seq)
	}
	e := &last[len(last)-1]
	switch {
	case e.Head != c.Head:
		return damaged("the chain ends in another head than the books say")
	case !e.Spent.Equal(c.Holdout.Spent):
		return damaged("the books say that other amounts are spent than the chain")
	case (e.Kind == KindDeleted) != c.Holdout.Deleted:
		return damaged("chain and books disagree on whether the holdout is deleted")
	case c.Seq == 0:
		return nil
	case len(last) != 2:
		return damaged("the entry before the last is missing")
	}
	if err := e.CheckHead(last[0].Head); err != nil {
		return located(err, c.Holdout.ID, 0, e.Seq)
	}
	return nil
}

func unknownEntry(version int) error {
	return &VersionError{What: "the entry", Got: int64(version), Known: EntryVersion}
}
