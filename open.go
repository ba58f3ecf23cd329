package holdoutd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout"
)

// Spec says what holdout is made of a table. Three members matter: Questions (how many answers you will ever want),
// Unit (the column of what is independent of the others; "": each row is) and Label (the column that you predict). The
// zero value of a member is its default.
type Spec = holdout.Settings

// Answer is an answer to a query: Value, and an Interval that holds the true value of the population, together with
// all others of the holdout, with its confidence.
type Answer = client.Answer

// Holdout is a holdout of a program's own: the service of package holdout with one table, and no server. It may be
// used from many goroutines.
type Holdout struct {
	service *holdout.Service
	id      string
}

// owner asks and reads the training part.
var owner = holdout.Principal{KeyID: "key_owner", Scope: holdout.Admin}

// Directory is where [Open] keeps the holdout of a file: beside it, with ".holdout" behind its name.
func Directory(parquet string) string { return parquet + ".holdout" }

// Open makes a holdout of a Parquet file, or goes on with the one that it made before: what was asked is debited on
// the disk before it is answered, and stays so. The file is split once, into [Directory]; where the same file comes
// with the same spec again, that is opened. Other settings are taken as long as nothing was shown; what is refused
// says why, as a *holdout.Error. The file is decoded in this process, so it should be your own.
//
// The rows that are held out lie in that directory, for its owner alone. To look at them, or to delete the directory
// and begin anew, breaks what the intervals promise, and only you can keep yourself from it. A server (cmd/holdoutd)
// keeps others from it, too.
func Open(ctx context.Context, parquet string, spec Spec) (*Holdout, error) {
	return OpenIn(ctx, holdout.Options{Dir: Directory(parquet)}, parquet, spec)
}

// OpenIn is Open with options of the service, such as another directory (Dir). Without a Decoder the file is decoded
// in this process.
func OpenIn(ctx context.Context, o holdout.Options, parquet string, spec Spec) (*Holdout, error) {
	if o.Decoder == nil {
		o.Decoder = ingest.InProcess()
	}
	now, err := newOpened(parquet, spec)
	if err != nil {
		return nil, err
	}
	service, err := holdout.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	h := &Holdout{service: service}
	if err := h.find(ctx, now, filepath.Join(o.Dir, openedFile), parquet, spec); err != nil {
		return nil, errors.Join(err, service.Close())
	}
	return h, nil
}

// openedFile says, in the directory, of which file and spec a holdout is.
const openedFile = "opened.json"

// opened is its content.
type opened struct {
	File    string `json:"file"` // SHA-256
	Spec    Spec   `json:"spec"` // as it was given
	Holdout string `json:"holdout,omitempty"`
}

func newOpened(parquet string, spec Spec) (o opened, err error) {
	f, err := os.Open(parquet)
	if err != nil {
		return o, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return o, err
	}
	return opened{File: hex.EncodeToString(h.Sum(nil)), Spec: spec}, nil
}

// find finds the holdout that was made before of the same file and spec, or makes it.
func (h *Holdout) find(ctx context.Context, now opened, record, parquet string, spec Spec) error {
	var before opened
	text, err := os.ReadFile(record)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("holdoutd: %s: %w", record, err)
	}
	if now.Holdout = before.Holdout; now.equal(before) {
		h.id = before.Holdout
		_, err := h.Card(ctx)
		return err
	}
	if spec.Name == "" {
		spec.Name = strings.TrimSuffix(filepath.Base(parquet), filepath.Ext(parquet))
	}
	f, err := os.Open(parquet)
	if err != nil {
		return err
	}
	defer f.Close()
	card, _, err := h.service.Create(ctx, owner, spec, holdout.SingleUpload(f), "")
	var known *holdout.Error
	switch {
	case err == nil:
		h.id = card.ID
	case errors.As(err, &known) && known.Members["reason"] == "same-settings": // made, and the program ended before it was noted
		h.id = fmt.Sprint(known.Members["holdout"])
	default:
		return err
	}
	now.Holdout = h.id
	return now.write(record)
}

// write writes it for good: once something was asked, the holdout is found by it alone.
func (o opened) write(path string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = dataset.SyncDir(filepath.Dir(path))
	}
	return err
}

// equal compares what JSON keeps of them.
func (o opened) equal(other opened) bool {
	a, wrong := json.Marshal(o)
	b, err := json.Marshal(other)
	return wrong == nil && err == nil && string(a) == string(b)
}

// Ask answers a query, in JSON (docs/QUERIES.md). A query that was answered before gets the same answer at no cost.
// Errors are *holdout.Error.
func (h *Holdout) Ask(ctx context.Context, query string) (Answer, error) {
	reply, err := h.service.Ask(ctx, owner, h.id, []byte(query), "")
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	if err := json.Unmarshal(reply.Body, &a); err != nil {
		return Answer{}, fmt.Errorf("holdoutd: the recorded answer: %w", err)
	}
	return a, nil
}

// Card is what may be known of the holdout: its settings, columns, counts and warnings.
func (h *Holdout) Card(ctx context.Context) (holdout.Card, error) {
	return h.service.Card(ctx, owner, h.id)
}

// Budget is what is left.
func (h *Holdout) Budget(ctx context.Context) (holdout.Budget, error) {
	return h.service.Budget(ctx, owner, h.id)
}

// Training is the training part as a Parquet file, which you close. What you fit, fit to it.
func (h *Holdout) Training(ctx context.Context) (*os.File, error) {
	return h.service.Training(ctx, owner, h.id)
}

// Service is the service that keeps the holdout, and the holdout's id there, for all that is not here: batches,
// explanations, reports.
func (h *Holdout) Service() (service *holdout.Service, id string) { return h.service, h.id }

// Close ends it. What was recorded stays.
func (h *Holdout) Close() error { return h.service.Close() }
