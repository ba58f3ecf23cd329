package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// sink takes the files of a backup as they come. What it got is worth nothing until all has come: see read.
type sink interface {
	// begin hears what the backup is, before everything else.
	begin(h Header) error
	// file takes a file of a holdout or a key. It need not read all of it.
	file(path string, size int64, r io.Reader) error
	// ledger takes the ledger's rows, and says where each holdout stood.
	ledger(r io.Reader) ([]ledger.Report, error)
}

// open takes the layers off a backup.
func open(in io.Reader, identities []age.Identity) (io.Reader, func(), error) {
	clear, err := age.Decrypt(in, identities...)
	var other *age.NoIdentityMatchError
	switch {
	case errors.As(err, &other):
		return nil, nil, errors.New("the backup cannot be opened: it is for another passphrase or another key than this one")
	case err != nil:
		return nil, nil, damaged("it is not a backup, or its beginning is damaged (%v)", err)
	}
	unpacked, err := zstd.NewReader(clear, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, nil, damaged("%v", err)
	}
	return unpacked, unpacked.Close, nil
}

// read reads the whole archive. It believes neither lengths nor names, and returns the manifest only if every file is what the manifest says, none is missing, none is
// beside it, and the ledger's rows are where the manifest says that each holdout stood.
func read(ctx context.Context, in io.Reader, to sink) (m Manifest, err error) {
	r := reader{tar: tar.NewReader(interruptible{ctx, in}), to: to, seen: map[string]bool{}}
	for {
		h, err := r.tar.Next()
		if errors.Is(err, io.EOF) {
			return m, r.wrong(ctx, damaged("it is cut off"))
		}
		if err != nil {
			return m, r.wrong(ctx, err)
		}
		done, err := r.member(h)
		if err != nil {
			return m, r.wrong(ctx, err)
		}
		if done {
			break
		}
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return m, r.wrong(ctx, errors.Join(damaged("something follows its end"), err))
	}
	// All layers must end here, too: what was cut off or put behind is noticed by them alone.
	if n, err := io.Copy(io.Discard, io.LimitReader(interruptible{ctx, in}, 1)); err != nil || n != 0 {
		return m, r.wrong(ctx, errors.Join(damaged("something follows its end"), err))
	}
	return r.manifest, nil
}

// reader is what was read so far.
type reader struct {
	tar      *tar.Reader
	to       sink
	seen     map[string]bool
	last     int // rank of the last member
	header   *Header
	files    []File
	reports  []ledger.Report
	ledger   bool
	manifest Manifest
}

// wrong says what a failed layer means to a person. What the sink said stays as it is.
func (r *reader) wrong(ctx context.Context, err error) error {
	var ours *sinkError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &ours):
		return ours.error
	case errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it is cut off")
	}
	return damaged("%v", err)
}

// sinkError is an error of whoever takes the files.
type sinkError struct{ error }

// member reads one member. done is true for the last.
func (r *reader) member(h *tar.Header) (done bool, err error) {
	at := rank(h.Name)
	switch {
	case at < 0:
		return false, damaged("it has a file %q, which no backup has", short(h.Name))
	case h.Typeflag != tar.TypeReg || h.Linkname != "" || h.Size < 0:
		return false, damaged("%s is no ordinary file", h.Name)
	case r.seen[h.Name]:
		return false, damaged("it has %s twice", h.Name)
	case at < r.last || (at > 0) != (r.header != nil):
		return false, damaged("%s is not in its place", h.Name)
	case len(r.seen) >= maxMembers:
		return false, damaged("it has more than %d files", maxMembers)
	}
	for record := range h.PAXRecords {
		if record != "size" { // of files of 8 GiB and more; others could make a file larger than it says
			return false, damaged("%s has the property %q", h.Name, short(record))
		}
	}
	r.seen[h.Name], r.last = true, at
	body := &hashed{r: r.tar, sum: sha256.New()}
	switch h.Name {
	case headerMember:
		err = r.begin(h.Size, body)
	case ledgerMember:
		r.ledger = true
		r.reports, err = r.to.ledger(body)
		if err != nil && body.err == nil {
			err = &sinkError{err}
		}
	case manifestMember:
		return true, r.end(h.Size, body)
	default:
		if at > 1 && h.Size > maxKeyFile {
			return false, damaged("%s has %d bytes", h.Name, h.Size)
		}
		if err = r.to.file(h.Name, h.Size, body); err != nil && body.err == nil {
			err = &sinkError{err}
		}
	}
	if body.err != nil {
		err = body.err
	}
	if err != nil {
		return false, err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return false, err
	}
	r.files = append(r.files, File{Path: h.Name, Bytes: body.n, SHA256: hex.EncodeToString(body.sum.Sum(nil))})
	return false, nil
}

// begin reads the header.
func (r *reader) begin(size int64, body io.Reader) error {
	text, err := readText(headerMember, size, maxHeader, body)
	if err != nil {
		return err
	}
	var what struct{ Format string }
	if err := json.Unmarshal(text, &what); err != nil {
		return damaged("%s: %v", headerMember, err)
	}
	if digits, ok := strings.CutPrefix(what.Format, formatName); ok && what.Format != Format {
		if version, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return &sinkError{&ledger.VersionError{What: "the backup", Got: version, Known: formatVersion}}
		}
	}
	if what.Format != Format {
		return damaged("its format is %q, not %q", short(what.Format), Format)
	}
	r.header = &Header{}
	if err := strictly(headerMember, text, r.header); err != nil {
		return err
	}
	if err := r.to.begin(*r.header); err != nil {
		return &sinkError{err}
	}
	return nil
}

// end reads the manifest, and compares it with what came.
func (r *reader) end(size int64, body io.Reader) error {
	text, err := readText(manifestMember, size, maxManifest, body)
	if err != nil {
		return err
	}
	m := &r.manifest
	if err := strictly(manifestMember, text, m); err != nil {
		return err
	}
	switch {
	case m.Header != *r.header:
		return damaged("its end says that it is another backup than its beginning")
	case !r.ledger:
		return damaged("it has no ledger")
	case r.seen[serverKey] != m.ServerKey:
		return damaged("it says something else of the server's key than it has")
	case !slices.Equal(m.Files, r.files):
		return damaged("%s", firstDifference(m.Files, r.files))
	}
	stood := make([]Holdout, len(r.reports))
	for i := range r.reports {
		stood[i] = holdoutFrom(&r.reports[i])
		if i < len(m.Holdouts) {
			stood[i].Without, stood[i].Name = m.Holdouts[i].Without, m.Holdouts[i].Name
		}
	}
	if !slices.EqualFunc(m.Holdouts, stood, func(a, b Holdout) bool {
		return a.ID == b.ID && a.Seq == b.Seq && a.Head == b.Head && a.Answers == b.Answers && a.Voids == b.Voids && a.Deleted == b.Deleted && a.Spent.Equal(b.Spent) && a.Limits.Equal(b.Limits)
	}) {
		return damaged("the ledger is another one than its list of holdouts says")
	}
	return nil
}

// firstDifference says what is not as the manifest says.
func firstDifference(listed, came []File) string {
	for i, f := range came {
		if i >= len(listed) || listed[i].Path != f.Path {
			return fmt.Sprintf("%s is not in its list of files, or not in this place", f.Path)
		}
		if listed[i] != f {
			return fmt.Sprintf("%s is not what was written: its length or its SHA-256 is another one", f.Path)
		}
	}
	return fmt.Sprintf("%s is missing", listed[len(came)].Path)
}

// holdoutFrom is what a manifest says of a holdout.
func holdoutFrom(r *ledger.Report) Holdout {
	return Holdout{ID: r.Holdout, Seq: r.Entries - 1, Head: r.Head, Answers: r.Answers, Voids: r.Voids, Spent: r.Spent, Limits: r.Limits, Deleted: r.Deleted}
}

// readText reads a short member.
func readText(name string, size, most int64, body io.Reader) ([]byte, error) {
	if size > most {
		return nil, damaged("%s has %d bytes, at most %d", name, size, most)
	}
	return io.ReadAll(body)
}

// strictly reads JSON that has no members beside those of v.
func strictly(name string, text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return damaged("%s: %v", name, err)
	}
	return nil
}

// hashed hashes what is read, and remembers how reading failed: an error of the layers below is not the sink's.
type hashed struct {
	r   io.Reader
	sum hash.Hash
	n   int64
	err error
}

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.sum.Write(p[:n])
	h.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		h.err = err
	}
	return n, err
}

// interruptible ends reading when ctx ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

// short keeps foreign text in messages short.
func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
