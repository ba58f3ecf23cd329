package holdout

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/rowfn"
)

// A holdout's held-out rows can lie in an SQL engine instead of column files: an upload names a source, and everything but the held-out part stays here
// (docs/decisions/0012-sources.md). The table there has a name of its own that nobody is told. What is known of it is in the holdout's directory.

// Source is an SQL engine for held-out tables.
type Source struct {
	Engine  string // EngineClickHouse, EngineTrino or EngineFiles; "" is ClickHouse
	Address string // http://HOST:PORT/DATABASE, or https://; of Trino http://HOST:PORT/CATALOG/SCHEMA; of files a directory
	Reader  Login  // asks; a user that may read and nothing else, with what docs/format/sql.md says of the engine
	Loader  Login  // makes and drops tables. Without a user the source is a database that tables are taken from, and no held-out rows are put there
	// Cluster is of ClickHouse the name of a cluster, "": one server. Its tables are distributed over a server of each shard: that of Address, and Shards.
	Cluster string
	Shards  []string // addresses of the other shards, as Address
}

// Engines of sources.
const (
	EngineClickHouse = "clickhouse"
	EngineTrino      = "trino"
)

// Login is a user of an engine.
type Login struct{ User, Password string }

// source is an open one.
type source struct {
	name   string
	reader remote.Engine
	loader remote.Loader
}

// connection is of one user.
type connection interface {
	remote.Engine
	remote.Loader
	remote.Tables
}

// sourceName is what a source may be called: its name is on cards, and in names of variables.
var sourceName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// openSources makes the connections; nothing is asked yet.
func (s *Service) openSources(all map[string]Source) error {
	s.sources, s.folders, s.tableSources = map[string]*source{}, map[string]string{}, map[string]*tableSource{}
	if err := checkApart(all); err != nil {
		return err
	}
	for name, of := range all {
		if !sourceName.MatchString(name) {
			return fmt.Errorf("holdout: the name of a source is up to 32 of a-z, 0-9, _ and -, and begins with a letter; %q is not", name)
		}
		if of.Engine == EngineFiles {
			if err := s.openFolder(name, of.Address); err != nil {
				return err
			}
			continue
		}
		tell := func(words string) { s.log.Error("what a source said", "source", name, "words", words) }
		if of.Loader.User == "" {
			if err := s.openTables(name, of, remote.Options{Tell: tell}); err != nil {
				return err
			}
			continue
		}
		reader, err := of.connect(name, of.Reader, remote.Options{Tell: tell})
		if err != nil {
			return err
		}
		loader, err := of.connectLoader(name, remote.Options{Tell: tell})
		if err != nil {
			return err
		}
		s.sources[name] = &source{name, reader, loader}
	}
	return nil
}

// connectLoader makes the connections of the user that makes tables: to each shard of a cluster, or to the one server.
func (of Source) connectLoader(name string, o remote.Options) (remote.Loader, error) {
	if of.Cluster == "" {
		if len(of.Shards) > 0 {
			return nil, fmt.Errorf("holdout: the source %s has shards and no name of the cluster", name)
		}
		return of.connect(name, of.Loader, o)
	}
	if of.Engine != "" && of.Engine != EngineClickHouse {
		return nil, fmt.Errorf("holdout: the source %s is of %s, which has no clusters to name", name, of.Engine)
	}
	var addresses []string
	for _, address := range append([]string{of.Address}, of.Shards...) {
		u, err := of.url(name, address, of.Loader)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, u.String())
	}
	return remote.NewShards(of.Cluster, addresses, o)
}

// url is an address with a user.
func (of Source) url(name, address string, l Login) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return nil, fmt.Errorf("holdout: the address of the source %s is not http://HOST:PORT/DATABASE, or /CATALOG/SCHEMA", name) // the text may have a password
	}
	u.User = url.UserPassword(l.User, l.Password)
	return u, nil
}

// connect makes the connection of a user.
func (of Source) connect(name string, l Login, o remote.Options) (connection, error) {
	u, err := of.url(name, of.Address, l)
	if err != nil {
		return nil, err
	}
	switch of.Engine {
	case "", EngineClickHouse:
		return remote.NewClickHouse(u.String(), o)
	case EngineTrino:
		if strings.Trim(u.Path, "/") == "" {
			return nil, fmt.Errorf("holdout: the address of the source %s needs /CATALOG/SCHEMA, where its tables are made", name)
		}
		return remote.NewTrino(u.String(), o)
	}
	return nil, fmt.Errorf("holdout: the source %s is of an engine %q; there are %s, %s and %s", name, of.Engine, EngineClickHouse, EngineTrino, EngineFiles)
}

// sourceFile is in the directory of a holdout whose held-out rows lie in a source.
const sourceFile = "holdout.source"

// registrationVersion is that of registration.
const registrationVersion = 1

// maxRegistration is more than a registration has: a schema of as many columns as an upload may have.
const maxRegistration = 64 << 20

// registration is what is known of a held-out table that lies in a source. Where its units begin is in a file of its own, as of tables that lie here.
type registration struct {
	Version  int                          `json:"version"`
	Source   string                       `json:"source"`
	Table    string                       `json:"table"` // random, so that the card's digest of this file tells nobody what the rows are
	Probe    string                       `json:"probe"`
	Rows     int64                        `json:"rows"`
	Units    int64                        `json:"units"`
	Largest  int64                        `json:"largest,omitempty"` // unit of the layout; 0 where rows are units
	Schema   dataset.Schema               `json:"schema"`
	Texts    map[string]dataset.TextShape `json:"texts,omitempty"`
	Checksum []string                     `json:"checksum,omitempty"` // absent until the table is whole
}

func (r *registration) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return replaceFile(dir, sourceFile, text)
}

// readRegistration reads it; where there is none the error is fs.ErrNotExist.
func readRegistration(dir string) (r registration, digest [32]byte, err error) {
	f, err := dataset.OpenRegular(filepath.Join(dir, sourceFile))
	if err != nil {
		return r, digest, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRegistration))
	if err == nil {
		err = readVersion("the registration "+filepath.Join(dir, sourceFile), text, registrationVersion)
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, sha256.Sum256(text), err
}

// registered is what package remote is told.
func (r *registration) registered(offsets []uint32) remote.Registered {
	return remote.Registered{Table: remote.Layout(r.Table, r.Schema, r.Largest), Units: r.Units, Rows: r.Rows, Offsets: offsets, Checksum: r.Checksum}
}

// checkSource refuses, before anything is decoded, what cannot be put into the source that the settings name.
func (s *Service) checkSource(ctx context.Context, set Settings) error {
	if set.Source == "" {
		return nil
	}
	if s.folders[set.Source] != "" || s.tableSources[set.Source] != nil {
		return invalid("source", "source: tables are taken from %s, and no held-out rows are put there; path=%[1]s/TABLE takes a table from it", set.Source)
	}
	of := s.sources[set.Source]
	if of == nil {
		return invalid("source", "source: this server has no source of that name; its operator names them with --source NAME=clickhouse://… or trino://…")
	}
	return of.ready(ctx)
}

// ready asks a source something that no row has to do with: whether it is there, and has the settings that a holdout needs.
func (of *source) ready(ctx context.Context) error {
	return of.failed(of.reader.CheckProfile(ctx))
}

// failed is what is said of an engine's error, in words that are the same whatever rows hold. One that says that the table is another stays as it is.
func (of *source) failed(err error) error { return engineFailed(of.name, err) }

func engineFailed(name string, err error) error {
	var e *remote.Error
	switch {
	case err == nil, errors.Is(err, &remote.Error{Kind: remote.Changed}):
		return err
	case errors.As(err, &e):
		return &Error{Kind: Unavailable, Err: &notAnswered{err}, Detail: fmt.Sprintf("the source %s: %s", name, strings.TrimPrefix(e.Error(), "remote: "))}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{Kind: Unavailable, Err: &notAnswered{err}, Detail: "the source " + name + " did not answer in time; ask the same again"}
	}
	return err
}

// notAnswered is an engine's failure after which a question is neither answered nor void: asked again, it goes on.
type notAnswered struct{ error }

func (e *notAnswered) Unwrap() error { return e.error }

// load writes the held-out part into the source, and leaves of it in dir where its units begin and what is registered.
func (c *creation) load(dir string) error {
	of := c.service.sources[c.settings.Source]
	table, err := dataset.Open(filepath.Join(dir, holdoutDir))
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	defer table.Close() // read only
	r := registration{Version: registrationVersion, Source: of.name, Rows: int64(table.Rows()), Units: int64(table.Rows()), Schema: table.Schema(), Texts: table.Shape().Texts}
	var offsets []uint32
	if c.card.Unit != rowUnit {
		if offsets, err = readUnits(dir, holdoutDir+unitsSuffix, &c.card); err != nil {
			return fmt.Errorf("holdout: %w", err)
		}
		r.Units, r.Largest = int64(len(offsets)-1), c.card.LargestUnit
	}
	var name [16]byte
	_, _ = rand.Read(name[:]) // it does not fail
	r.Table = "holdoutd_" + hex.EncodeToString(name[:])
	r.Probe = r.Table + "_probe"
	c.registered = &r
	if err := r.write(dir); err != nil { // before there is a table, so that the next start finds it
		return fmt.Errorf("holdout: %w", err)
	}
	if err := dataset.SyncDir(dir); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	layout := remote.Layout(r.Table, r.Schema, r.Largest)
	if err := layout.Check(); err != nil {
		return &Error{Kind: BadUpload, Detail: "this table cannot lie in a source: " + err.Error(), Err: err}
	}
	if err := of.failed(errors.Join(remote.LoadProbe(c.ctx, of.loader, r.Probe), remote.Load(c.ctx, of.loader, &layout, remote.Blocks(table, &layout, offsets)))); err != nil {
		return err
	}
	there, err := remote.New(of.reader, r.registered(offsets))
	if err != nil {
		return err
	}
	if r.Checksum, err = there.Checksum(c.ctx); err != nil {
		return of.failed(err)
	}
	if err := of.check(c.ctx, &r, offsets); err != nil {
		return &Error{Kind: Unavailable, Detail: "the source " + of.name + " does not have what was written into it; send the request again", Err: err}
	}
	if err := r.write(dir); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	if c.settings.Features == featuresPublic {
		public, err := dataset.FromColumns(withoutLabel(table, c.settings.Label)...)
		if err == nil {
			err = dataset.Write(filepath.Join(dir, holdoutDir+featuresSuffix), public)
		}
		if err != nil {
			return fmt.Errorf("holdout: %w", err)
		}
	}
	return os.RemoveAll(filepath.Join(dir, holdoutDir))
}

// featuresSuffix names the table of what is public of held-out rows that lie in a source: all but the label, which lies there alone.
const featuresSuffix = ".features"

// check compares a source's table, and how the engine computes, with what is registered.
func (of *source) check(ctx context.Context, r *registration, offsets []uint32) error {
	there, err := remote.New(of.reader, r.registered(offsets))
	if err != nil {
		return err
	}
	if err := of.reader.CheckProfile(ctx); err != nil {
		return err
	}
	if err := remote.CheckProbe(ctx, of.reader, r.Probe); err != nil {
		return err
	}
	return there.Verify(ctx)
}

// unload drops the tables in a source that belong to a holdout's directory, if it has any.
func (s *Service) unload(ctx context.Context, dir string) error {
	r, _, err := readRegistration(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.drop(ctx, &r)
}

// dropWait is how long dropping the tables of a holdout may take.
const dropWait = 30 * time.Second

// drop drops the tables of a registration.
func (s *Service) drop(ctx context.Context, r *registration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWait)
	defer cancel()
	of := s.sources[r.Source]
	if of == nil {
		return fmt.Errorf("holdout: this server has no source %s, where the table %s is to be dropped", r.Source, r.Table)
	}
	for _, name := range []string{r.Table, r.Probe} {
		layout := remote.Layout(name, r.Schema, r.Largest)
		if err := of.loader.Drop(ctx, &layout); err != nil {
			return fmt.Errorf("holdout: dropping the table %s in the source %s: %w", name, r.Source, err)
		}
	}
	return nil
}

// openRemote opens the held-out part in its source. Without a service nothing is asked: an offline check ends with what is here.
func (h *opened) openRemote(ctx context.Context, dir string, grouped bool) error {
	r, digest, err := readRegistration(dir)
	if err != nil {
		return err
	}
	if want := h.card.Parts[sourceFile]; want != fingerprintText(digest) || r.Source != h.card.Settings.Source {
		return fmt.Errorf("the registration %s is not this holdout's: its digest is %s, the card says %s", sourceFile, fingerprintText(digest), want)
	}
	var offsets []uint32
	if grouped {
		if offsets, err = readUnits(dir, holdoutDir+unitsSuffix, &h.card); err != nil {
			return err
		}
	}
	if h.publicFeatures() {
		if h.holdoutTable, err = dataset.Open(filepath.Join(dir, holdoutDir+featuresSuffix)); err != nil {
			return err
		}
		h.tables = append(h.tables, h.holdoutTable)
		if err := h.card.checkFingerprint(holdoutDir+featuresSuffix, h.holdoutTable); err != nil {
			return err
		}
	}
	h.schema, h.holdoutShape = r.Schema, dataset.Shape{Rows: r.Rows, Texts: r.Texts}
	if r.Units != r.Rows {
		h.holdoutShape.Units = r.Units
	}
	var reader remote.Engine
	if h.sources != nil {
		if h.at = h.sources[r.Source]; h.at == nil {
			return &Error{Kind: Unavailable, Detail: "this server was started without the source " + r.Source + ", where the rows of this holdout are; its operator names it with --source"}
		}
		reader = h.at.reader
	}
	there, err := remote.New(reader, r.registered(offsets))
	if err != nil {
		return err
	}
	h.holdout, h.far = distant{there, h.at, h.faulted}, there
	if h.at == nil {
		return nil
	}
	return h.at.failed(h.at.check(ctx, &r, offsets))
}

// distant is a held-out part in a source. A scan that finds another table there quarantines the holdout.
type distant struct {
	engine.MomentSource
	at    *source
	found func(error) *Error
}

// Sums implements engine.Source.
func (d distant) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	sums, err := d.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements engine.MomentSource.
func (d distant) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	sums, err := d.MomentSource.Moments(ctx, batch, from, to)
	if err == nil {
		return sums, nil
	}
	if errors.Is(err, &remote.Error{Kind: remote.Changed}) {
		return rowfn.Sums{}, d.found(err)
	}
	return rowfn.Sums{}, d.at.failed(err)
}

// fetch writes the rows of a source to dir, and behind them those of a table here where it is not nil. Its memory does not grow with the rows, but with the texts. The source's table is compared with what is registered when all was read.
func (h *opened) fetch(ctx context.Context, dir string, behind *dataset.Table) error {
	w, err := dataset.NewPassing(dir)
	if err != nil {
		return err
	}
	for _, field := range h.schema.Fields {
		if err = h.fetchColumn(ctx, w, field, behind); err != nil {
			break
		}
	}
	if err == nil {
		err = h.at.failed(h.far.Verify(ctx))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

func (h *opened) fetchColumn(ctx context.Context, w *dataset.Writer, field dataset.Field, behind *dataset.Table) error {
	if err := w.Begin(field); err != nil {
		return err
	}
	var texts []string
	places := map[string]uint32{}
	put := func(c dataset.Column) error {
		switch field.Kind {
		case dataset.Bool:
			return w.AppendBools(c.Bools)
		case dataset.Text:
			codes := make([]uint32, len(c.Codes))
			for row, code := range c.Codes {
				if code == 0 {
					continue
				}
				text := c.Dictionary.Text(int(code - 1))
				if places[text] == 0 {
					texts = append(texts, text)
					places[text] = uint32(len(texts))
				}
				codes[row] = places[text]
			}
			return w.AppendCodes(codes)
		}
		return w.AppendNumbers(slices.Clone(c.Numbers)) // which it cleans in place
	}
	if err := h.far.Column(ctx, field.Name, put); err != nil {
		return h.at.failed(err)
	}
	if behind != nil {
		c, ok := behind.Lookup(field.Name)
		if !ok {
			return fmt.Errorf("holdout: the check part has no column %q", field.Name)
		}
		if err := put(*c); err != nil {
			return err
		}
	}
	return w.End(texts)
}
