package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// Parts of an upload.
const (
	partTable    = "table"
	partTraining = "training"
	partHoldout  = "holdout"
	partCheck    = "check"
)

// allParts are the parts that an upload can have, in the order in which they are read.
var allParts = []string{partTable, partTraining, partHoldout, partCheck}

// Upload yields the parts of an upload in order: ("table", r) once, or ("training", r) and ("holdout", r), and perhaps ("check", r); io.EOF
// ends it. A body is read before the next call.
type Upload func() (part string, body io.Reader, err error)

// SingleUpload is the upload of one table.
func SingleUpload(r io.Reader) Upload {
	done := false
	return func() (string, io.Reader, error) {
		if done {
			return "", nil, io.EOF
		}
		done = true
		return partTable, r, nil
	}
}

// spool copies the parts to disk, at most Limits.UploadBytes together, and returns the digests of what came where they are asked for.
func (c *creation) spool(up Upload, digested bool) (map[string][sha256.Size]byte, error) {
	left := c.service.limits.UploadBytes
	c.uploads = map[string]string{}
	digests := map[string][sha256.Size]byte{}
	for {
		part, body, err := up()
		if errors.Is(err, io.EOF) {
			return digests, c.checkParts()
		}
		if err != nil {
			return nil, readError(err)
		}
		if !slices.Contains(allParts, part) {
			return nil, invalid("parts", wantedParts)
		}
		if c.uploads[part] != "" {
			return nil, invalid("parts", "the part %s was sent twice", part)
		}
		path := filepath.Join(c.work, part+".parquet")
		size, digest, err := spoolPart(c.ctx, path, body, left, digested)
		if err != nil {
			return nil, err
		}
		if size > left {
			return nil, &Error{Kind: TooLarge, Detail: fmt.Sprintf("the upload is larger than the %d bytes that this server takes", c.service.limits.UploadBytes),
				Members: map[string]any{"limit": c.service.limits.UploadBytes}}
		}
		left -= size
		c.uploads[part], digests[part] = path, digest
	}
}

// checkParts compares the parts that came with the split that was asked for.
func (c *creation) checkParts() error {
	whole, given := c.uploads[partTable] != "", c.uploads[partTraining] != "" && c.uploads[partHoldout] != ""
	switch {
	case len(c.uploads) == 0:
		return fail(BadUpload, "the upload is empty: send the Parquet file as the request's body")
	case !whole && c.settings.Split != splitGiven:
		return invalid("split", "the parts training and holdout were uploaded; that needs split=given")
	case !given && c.settings.Split == splitGiven:
		return invalid("split", "split=given needs two parts, training and holdout, and takes a third, check")
	case whole && len(c.uploads) != 1:
		return invalid("parts", wantedParts)
	}
	return nil
}

const wantedParts = "an upload has a part table, or the parts training and holdout and, if you like, check"

// spoolBuffer is how much of a body is read at once.
const spoolBuffer = 1 << 18

// spoolPart copies one part, and one byte more than limit at most: a size above limit says that there is more.
func spoolPart(ctx context.Context, path string, body io.Reader, limit int64, digested bool) (size int64, digest [sha256.Size]byte, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return 0, digest, fmt.Errorf("holdout: upload: %w", err)
	}
	h, source := sha256.New(), &uploadReader{ctx: ctx, body: body}
	to := io.Writer(struct{ io.Writer }{f}) // not by the file's own ReadFrom, which would take smaller pieces
	if digested {
		to = io.MultiWriter(f, h)
	}
	size, err = io.CopyBuffer(to, io.LimitReader(source, limit+1), make([]byte, spoolBuffer))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if source.err != nil {
		return size, digest, readError(source.err)
	}
	if err != nil {
		return size, digest, fmt.Errorf("holdout: upload: %w", err)
	}
	if digested {
		digest = [sha256.Size]byte(h.Sum(nil))
	}
	return size, digest, nil
}

// uploadReader tells errors of the body from those of the disk, and ends with the request.
type uploadReader struct {
	ctx  context.Context
	body io.Reader
	err  error
}

func (r *uploadReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		r.err = err
		return 0, err
	}
	n, err := r.body.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// readError is about a body that could not be read to its end. An error that has a kind already keeps it.
func readError(err error) error {
	var ours *Error
	if errors.As(err, &ours) {
		return err
	}
	return &Error{Kind: Malformed, Detail: "the upload ended before it was complete", Err: err}
}

// createDigest identifies an upload for its Idempotency-Key: the settings as they were sent, and the bytes.
func createDigest(set Settings, parts map[string][sha256.Size]byte) [32]byte {
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // checked numbers and texts
	}
	h := sha256.New()
	fmt.Fprintf(h, "create\n%s\n", text)
	for _, part := range allParts {
		if digest, ok := parts[part]; ok {
			fmt.Fprintln(h, part, hex.EncodeToString(digest[:]))
		}
	}
	return [32]byte(h.Sum(nil))
}

// decode turns the spooled files into tables, each in a child process, and removes the files.
func (c *creation) decode() error {
	c.tables = map[string]*dataset.Table{}
	results := map[string]ingest.Result{}
	sends := func(part string) bool { return c.uploads[part] != "" || part == partTable && c.files != nil }
	for _, part := range allParts {
		if !sends(part) {
			continue
		}
		var err error
		if results[part], err = c.decodePart(part, nil); err != nil {
			return err
		}
	}
	var sent []string
	var decoded []ingest.Result
	for _, part := range allParts {
		if sends(part) {
			sent, decoded = append(sent, part), append(decoded, results[part])
		}
	}
	for i, as := range ingest.Reconciled(decoded) {
		if part := sent[i]; as != nil {
			var err error
			if results[part], err = c.decodePart(part, as); err != nil {
				return err
			}
		}
	}
	for _, part := range allParts {
		result := results[part]
		for _, s := range result.Skipped {
			if _, known := skipReasons(c.skipped)[s.Name]; !known {
				c.skipped = append(c.skipped, Skipped{Name: s.Name, Reason: s.Reason})
			}
		}
		for _, w := range result.Warnings {
			if !slices.ContainsFunc(c.said, func(known Warning) bool { return known.Code == w.Code && known.Column == w.Column }) {
				c.said = append(c.said, Warning{Code: w.Code, Column: w.Column, Detail: w.Detail})
			}
		}
		if path, ok := c.uploads[part]; ok {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("holdout: upload: %w", err)
			}
		}
	}
	c.said = append(skippedWarnings(c.skipped), c.said...)
	for _, part := range []string{partTraining, partTable} {
		if result, ok := results[part]; ok {
			c.orders, c.named = result.Orders, result.Categories
		}
	}
	for _, part := range []string{partHoldout, partCheck} {
		if result, ok := results[part]; ok {
			if err := sameSchema(results[partTraining], result, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodePart decodes one part; as says how columns whose kind their values leave open are read.
func (c *creation) decodePart(part string, as map[string]dataset.Kind) (ingest.Result, error) {
	if t := c.tables[part]; t != nil {
		delete(c.tables, part)
		if err := t.Close(); err != nil {
			return ingest.Result{}, fmt.Errorf("holdout: decoded upload: %w", err)
		}
		if err := os.RemoveAll(filepath.Join(c.work, part)); err != nil {
			return ingest.Result{}, fmt.Errorf("holdout: decoded upload: %w", err)
		}
	}
	dir := filepath.Join(c.work, part)
	var result ingest.Result
	var t *dataset.Table
	var err error
	if c.files != nil {
		result, t, err = c.decodeFiles(dir)
	} else {
		limits := ingest.Limits{MaxFileBytes: c.service.limits.UploadBytes, MemoryBytes: c.service.decodeMemory}
		if c.sourceTable != nil {
			limits.MaxExpansion = madeExpansion
		}
		result, t, err = ingest.RunAs(c.ctx, c.service.decoder, c.uploads[part], dir, limits, as)
	}
	if err != nil && c.ctx.Err() != nil {
		return result, &Error{Kind: Unavailable, Detail: "the upload was given up", Err: err}
	}
	if err != nil {
		return result, uploadError(part, err)
	}
	c.tables[part] = t
	return result, nil
}

// skipReasons are by the names of the columns.
func skipReasons(skipped []Skipped) map[string]string {
	reasons := make(map[string]string, len(skipped))
	for _, s := range skipped {
		reasons[s.Name] = s.Reason
	}
	return reasons
}

// maxSkippedNamed bounds how many skipped columns a warning names with their reasons; the card has all of them.
const maxSkippedNamed = 5

// skippedWarnings says that columns were left out.
func skippedWarnings(skipped []Skipped) []Warning {
	if len(skipped) == 0 {
		return nil
	}
	var said []string
	for _, s := range skipped[:min(len(skipped), maxSkippedNamed)] {
		said = append(said, fmt.Sprintf("%q (%s)", s.Name, s.Reason))
	}
	if more := len(skipped) - maxSkippedNamed; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	w := Warning{Code: "skipped-columns", Detail: fmt.Sprintf("%d columns of the upload are not in the holdout: %s", len(skipped), strings.Join(said, "; "))}
	if len(skipped) == 1 {
		w.Column, w.Detail = skipped[0].Name, "a column of the upload is not in the holdout: "+said[0]
	}
	return []Warning{w}
}

// checkDecodeMemory refuses uploads where nothing is left to decode them with.
func (s *Service) checkDecodeMemory() error {
	if s.decodeMemory >= ingest.LeastMemoryBytes {
		return nil
	}
	return &Error{Kind: Unavailable, Detail: fmt.Sprintf("uploads cannot be decoded: of the memory of the machine, or of its control group, --memory leaves %d MiB, and %d are needed; start the server with a smaller --memory, or give it more",
		max(s.decodeMemory, 0)>>20, int64(ingest.LeastMemoryBytes)>>20)}
}

// uploadError says why a file was not taken.
func uploadError(part string, err error) error {
	var e *ingest.Error
	if !errors.As(err, &e) || e.Kind == ingest.Internal {
		return fmt.Errorf("holdout: decode: %w", err)
	}
	switch e.Kind {
	case ingest.Unavailable:
		return &Error{Kind: Unavailable, Detail: e.Detail, Err: err}
	case ingest.DiskFull:
		return &Error{Kind: DiskFull, Detail: e.Detail, Err: err}
	}
	ours := &Error{Kind: BadUpload, Detail: e.Says(), Err: err, Members: map[string]any{"reason": string(e.Kind)}}
	if e.Kind == ingest.TooLarge {
		ours.Kind = TooLarge
	}
	if e.Column != "" {
		ours.Members["column"] = e.Column
	}
	if part != partTable {
		ours.Detail = "part " + part + ": " + ours.Detail
	}
	return ours
}

// sameSchema refuses given parts that are not of one table.
func sameSchema(training, part ingest.Result, name string) error {
	lacks := func(has string, f dataset.Field, lacks string, other ingest.Result) error {
		for _, s := range other.Skipped {
			if s.Name == f.Name {
				return fail(BadUpload, "the column %q is %v (%s) in the part %s, and was skipped in the part %s: %s", f.Name, f.Kind, f.Source, has, lacks, s.Reason)
			}
		}
		return fail(BadUpload, "the part %s has a column %q, the part %s has not", has, f.Name, lacks)
	}
	for _, f := range training.Schema.Fields {
		switch other := fieldOf(part.Schema, f.Name); {
		case other == nil:
			return lacks(partTraining, f, name, part)
		case !ingest.Alike(f, *other):
			return fail(BadUpload, "the column %q is %s in the part training and %s in the part %s; write it with one type in both, for example in pandas: df[%[1]q] = df[%[1]q].astype(\"string\")",
				f.Name, ingest.Described(f), ingest.Described(*other), name)
		}
	}
	for _, f := range part.Schema.Fields {
		if fieldOf(training.Schema, f.Name) == nil {
			return lacks(name, f, partTraining, training)
		}
	}
	return nil
}
