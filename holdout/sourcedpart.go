package holdout

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// partSuffix is that of the files in a holdout's directory that say which part of a source is which side: docs/format/part.md. What is in them are checksums of rows, so they are as secret
// as column files; the card has their fingerprint, which a random salt keeps from being a checksum of rows, too.
const partSuffix = ".part"

// keptPartVersion is the version of keptPart.
const keptPartVersion = 1

// keptPart is the contents of such a file.
type keptPart struct {
	Version int              `json:"version"`
	Salt    string           `json:"salt"`   // 32 random bytes, in hexadecimal
	Source  string           `json:"source"` // "": the part is in segments beside this file
	Kind    string           `json:"kind"`
	Part    sources.PartInfo `json:"part"`
}

// partFiles are the files that a holdout of a source can have, one for each part.
var partFiles = []string{trainingDir + partSuffix, checkDir + partSuffix, holdoutDir + partSuffix}

// writePart keeps what is known of a part.
func writePart(dir, name string, from *CardSource, info sources.PartInfo) error {
	var salt [32]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return err
	}
	kept := keptPart{Version: keptPartVersion, Salt: hex.EncodeToString(salt[:]), Part: info}
	if from != nil {
		kept.Source, kept.Kind = from.Name, from.Kind
	}
	text, err := json.MarshalIndent(kept, "", "\t")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, name+partSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readPart reads what is known of a part, and the fingerprint of the file.
func readPart(dir, file string) (k keptPart, fingerprint string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return k, "", err
	}
	if err = readVersion(file, text, keptPartVersion); err == nil {
		err = json.Unmarshal(text, &k)
	}
	return k, fingerprintText(sha256.Sum256(text)), err
}

// keptParts are the names of the parts of a source that the files in a directory say, and the source; "" where there are none.
func keptParts(dir string) (source string, names []string, err error) {
	for _, file := range partFiles {
		k, _, err := readPart(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if k.Source != "" {
			source, names = k.Source, append(names, k.Part.Name)
		}
	}
	return source, names, nil
}

// sourcedPart is a part that a source keeps.
type sourcedPart struct {
	sources.Part
	info  sources.PartInfo
	found func(error) *Error // takes the holdout out of service, whose rows are not those that were registered
	most  int64              // of the work of a request, for what the source reads and the server sums

	mu       sync.Mutex
	distinct map[string]*dataset.Column // that were asked for; nil: more than queries.MaxValues
}

// openPart opens one part of a holdout of a source.
func (h *opened) openPart(ctx context.Context, dir, name string) (part, error) {
	k, fingerprint, err := readPart(dir, name+partSuffix)
	if err != nil {
		return nil, err
	}
	if want := h.card.Parts[name+partSuffix]; want != fingerprint {
		return nil, fmt.Errorf("the part %s is not this holdout's: its fingerprint is %s, the card says %s", name, fingerprint, want)
	}
	if h.card.Source == nil {
		own, err := openOwn(ctx, dir, k.Part, h.card.LargestUnit)
		if err != nil {
			return nil, err
		}
		return &sourcedPart{Part: own, info: k.Part, found: h.faulted, most: h.most, distinct: map[string]*dataset.Column{}}, nil
	}
	if h.from == nil { // the files are compared, and no source is asked
		return closedPart{&sourcedPart{info: k.Part}}, nil
	}
	opened, err := h.from.Open(ctx, k.Part, h.card.LargestUnit)
	if err != nil {
		return nil, err
	}
	return &sourcedPart{Part: opened, info: k.Part, found: h.faulted, most: h.most, distinct: map[string]*dataset.Column{}}, nil
}

// closedPart is a part of which its file alone is known.
type closedPart struct{ *sourcedPart }

func (p closedPart) Units() int64         { return p.info.Units }
func (p closedPart) shape() dataset.Shape { return dataset.Shape{} }
func (p closedPart) close() error         { return nil }

// Sums implements session.Source.
func (p *sourcedPart) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	sums, err := p.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements session.Source. Nothing is sent for nothing.
func (p *sourcedPart) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if len(batch.Functions) == 0 {
		return rowfn.Sums{Values: []int64{}, Products: []rowfn.Wide{}}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, p.within(batch))
	defer cancel()
	sums, err := p.Part.Moments(ctx, batch, from, to)
	if err == nil && (len(sums.Values) != len(batch.Functions) || len(sums.Products) != len(batch.Products)) {
		err = fmt.Errorf("holdout: the source has summed %d and %d of %d row functions and %d products", len(sums.Values), len(sums.Products), len(batch.Functions), len(batch.Products))
	}
	if err != nil {
		return rowfn.Sums{}, p.failed(err)
	}
	return sums, nil
}

// sumsWithin is the least time that a source is given for sums that were reserved, and sumsSlow how many times what it has priced. Sources have deadlines of their own for what they are asked; this is for one that
// does not keep them, whose questions would stay reserved for ever.
var sumsWithin = time.Hour

const sumsSlow = 20

// within is how long the source is waited for.
func (p *sourcedPart) within(batch rowfn.Batch) time.Duration {
	price, err := p.Part.Price(batch)
	if err != nil { // admission has refused it
		return sumsWithin
	}
	const longest = 100 * time.Hour
	return max(sumsWithin, time.Duration(min(sumsSlow*price.Seconds, longest.Seconds())*float64(time.Second)))
}

// failed is what is said of an error of the source.
func (p *sourcedPart) failed(err error) error {
	if _, own := p.Part.(ownPart); own {
		err = ownError(err)
	}
	if isChanged(err) || errors.Is(err, dataset.ErrDamaged) {
		return p.found(err)
	}
	return sourceError(err)
}

// isChanged reports whether rows of a source are not those that were registered.
func isChanged(err error) bool {
	var theirs *sources.Error
	return errors.As(err, &theirs) && theirs.Kind == sources.Changed
}

func (p *sourcedPart) schema() dataset.Schema { return p.info.Schema }
func (p *sourcedPart) shape() dataset.Shape   { return p.Part.Shape() }
func (p *sourcedPart) close() error           { return p.Part.Close() }

// pushedMemory is what a row function takes while its statement is made and sent.
const pushedMemory = 16 << 10

// work is what the server has to do itself. What the source does is bounded by the source, which refuses what is too dear; it counts in the line of the key, but no question is refused
// because a table is large: a pass over a hundred million rows is what a source is for.
func (p *sourcedPart) work(batch rowfn.Batch) Work {
	if len(batch.Functions) == 0 {
		return Work{}
	}
	price, err := p.Part.Price(batch)
	if err != nil {
		return Work{refused: sourceError(err)}
	}
	w := Work{Steps: int64(min(price.Seconds*1e9, float64(p.most))), Pass: pushedMemory * int64(price.Pushed)}
	if price.Read > 0 {
		w.Pass += engine.EstimateBatch(batch, p.shape()).Memory
	}
	return w
}

func (p *sourcedPart) time(batch rowfn.Batch, _ float64) float64 {
	if len(batch.Functions) == 0 {
		return 0
	}
	price, err := p.Part.Price(batch)
	if err != nil { // admission has refused it
		return 0
	}
	return paceHeadroom * 1e9 * price.Seconds
}

// values are the different values of a column; nil where there are more than queries.MaxValues. They never change, so they are asked for once.
func (p *sourcedPart) values(column string, kind dataset.Kind) (*dataset.Column, bool) {
	if f := fieldOf(p.info.Schema, column); f == nil || f.Kind != kind {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.distinct[column]; ok {
		return known, true
	}
	c, few, err := p.Part.Distinct(context.Background(), column, queries.MaxValues)
	if err != nil {
		_ = p.failed(err) // the scan that follows meets the same, and says so
		return nil, false
	}
	p.distinct[column] = nil
	if few {
		p.distinct[column] = &c
	}
	return p.distinct[column], true
}

func (p *sourcedPart) texts(column string) []string {
	c, ok := p.values(column, dataset.Text)
	switch {
	case !ok:
		return nil
	case c == nil:
		return make([]string, queries.MaxValues+1)
	}
	texts := make([]string, 0, c.Len())
	for _, code := range c.Codes {
		if code != 0 {
			texts = append(texts, c.Dictionary.Text(int(code)-1))
		}
	}
	slices.Sort(texts)
	return texts
}

func (p *sourcedPart) numbers(column string, most int) []float64 {
	c, ok := p.values(column, dataset.Number)
	if !ok || c == nil || c.Len() > most {
		return nil
	}
	return c.Numbers
}

const (
	// pieceRows is about how many rows a piece has: a file that a notebook reads at once.
	pieceRows = 1 << 20
	// pieceCells bounds rows times columns of a piece, which is put together in memory: 128 MB of numbers.
	pieceCells = 1 << 24
)

// piecesOf is in how many pieces a part is given out.
func piecesOf(rows, units int64, columns int) int {
	if units == 0 {
		return 0
	}
	each := pieceUnits(rows, units, columns)
	return int((units + each - 1) / each)
}

// pieceUnits is how many units a piece has; the last may have fewer.
func pieceUnits(rows, units int64, columns int) int64 {
	most := min(pieceRows, pieceCells/int64(max(1, columns)))
	return max(1, most*units/max(1, rows))
}

func (p *sourcedPart) pieces() int {
	return piecesOf(p.info.Rows, p.info.Units, len(p.info.Schema.Fields))
}

func (p *sourcedPart) export(ctx context.Context, out io.Writer, piece int) error {
	each := pieceUnits(p.info.Rows, p.info.Units, len(p.info.Schema.Fields))
	t, offsets, err := p.read(ctx, int64(piece)*each, min(int64(piece+1)*each, p.info.Units))
	if err == nil && offsets != nil {
		t, err = orderedUnits(t, offsets)
	}
	if err != nil {
		return err
	}
	return ingest.Export(out, t)
}

// orderedUnits puts the rows of each unit in the order of their values: a source gives them in any, and a piece must be the same bytes whenever it is asked for, since a download that was cut
// off goes on in the middle of them.
func orderedUnits(t *dataset.Table, offsets []uint32) (*dataset.Table, error) {
	order := make([]uint32, t.Rows())
	for i := range order {
		order[i] = uint32(i)
	}
	for u := range len(offsets) - 1 {
		slices.SortFunc(order[offsets[u]:offsets[u+1]], func(a, b uint32) int {
			for i := range t.Columns() {
				c, way := t.Column(i), 0
				switch c.Kind {
				case dataset.Text:
					way = cmp.Compare(c.Codes[a], c.Codes[b])
				case dataset.Bool:
					way = cmp.Compare(c.Bools[a], c.Bools[b])
				default:
					way = cmp.Compare(c.Numbers[a], c.Numbers[b])
				}
				if way != 0 {
					return way
				}
			}
			return 0
		})
	}
	columns := make([]dataset.Column, t.Columns())
	for i := range columns {
		columns[i] = pick(*t.Column(i), order)
	}
	return dataset.FromColumns(columns...)
}

// read reads the rows of some units, and where each begins; nil offsets: each row is a unit.
func (p *sourcedPart) read(ctx context.Context, from, to int64) (*dataset.Table, []uint32, error) {
	g := gathering{schema: p.info.Schema, next: from}
	if err := p.Part.Read(ctx, nil, from, to, g.add); err != nil {
		return nil, nil, p.failed(err)
	}
	if g.next != to {
		return nil, nil, fmt.Errorf("holdout: the source has given the units up to %d, want %d", g.next, to)
	}
	return g.table()
}

// gathering puts blocks of rows together.
type gathering struct {
	schema  dataset.Schema
	next    int64 // the unit that comes next
	columns []dataset.Column
	texts   []map[string]uint32 // codes, by column
	listed  [][]string
	offsets []uint32
	rows    int
}

func (g *gathering) add(b sources.Block) error {
	if b.First != g.next {
		return fmt.Errorf("holdout: the source gives unit %d, want %d", b.First, g.next)
	}
	if g.columns == nil {
		g.columns = make([]dataset.Column, len(g.schema.Fields))
		g.texts, g.listed = make([]map[string]uint32, len(g.columns)), make([][]string, len(g.columns))
		for i, f := range g.schema.Fields {
			g.columns[i].Field, g.texts[i] = f, map[string]uint32{}
		}
	}
	for i := range g.columns {
		c, ok := b.Rows.Lookup(g.columns[i].Name)
		if !ok || c.Kind != g.columns[i].Kind {
			return fmt.Errorf("holdout: the source gives no column %q", g.columns[i].Name)
		}
		g.columns[i].Numbers = append(g.columns[i].Numbers, c.Numbers...)
		g.columns[i].Bools = append(g.columns[i].Bools, c.Bools...)
		if c.Kind == dataset.Text {
			g.addTexts(i, c)
		}
	}
	if b.Offsets == nil {
		g.next += int64(b.Rows.Rows())
	} else {
		for _, o := range b.Offsets[:len(b.Offsets)-1] {
			g.offsets = append(g.offsets, uint32(g.rows)+o)
		}
		g.next += int64(len(b.Offsets) - 1)
	}
	g.rows += b.Rows.Rows()
	return nil
}

func (g *gathering) addTexts(i int, c *dataset.Column) {
	remap := make([]uint32, c.Dictionary.Len()+1)
	for code := range c.Dictionary.Len() {
		text := c.Dictionary.Text(code)
		known, ok := g.texts[i][text]
		if !ok {
			g.listed[i] = append(g.listed[i], text)
			known = uint32(len(g.listed[i]))
			g.texts[i][text] = known
		}
		remap[code+1] = known
	}
	for _, code := range c.Codes {
		g.columns[i].Codes = append(g.columns[i].Codes, remap[code])
	}
}

// table is what was gathered.
func (g *gathering) table() (*dataset.Table, []uint32, error) {
	for i := range g.columns {
		if g.columns[i].Kind == dataset.Text {
			g.columns[i].Dictionary = dataset.NewDictionary(g.listed[i]...)
		}
	}
	t, err := dataset.FromColumns(g.columns...)
	if g.offsets != nil {
		g.offsets = append(g.offsets, uint32(g.rows))
	}
	return t, g.offsets, err
}

// absentSource refuses a holdout whose source this server was not started with.
func absentSource(id string, from *CardSource) *Error {
	return &Error{Kind: SourceUnavailable, Err: errNoTables, Members: map[string]any{"holdout": id},
		Detail: fmt.Sprintf("the rows of this holdout are in the source %s (%s), which this server was not started with: start it with --source %s=URL. Recorded answers still replay", from.Name, from.Kind, from.Name)}
}

// sourceAway is what is said of a holdout whose source does not answer when its parts are opened. The next request asks again.
func sourceAway(id string, err error) error {
	said := sourceError(err)
	var e *Error
	if !errors.As(said, &e) {
		return said
	}
	away := *e
	away.Members, away.Err = map[string]any{"holdout": id}, fmt.Errorf("%w: %w", errNoTables, err)
	away.Detail += ". Nothing was debited. Recorded answers still replay"
	return &away
}
