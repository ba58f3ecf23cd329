package holdout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset/prints"
)

// A budget follows the rows of a table of a source, too, as far as its units say who they are: of each part the tags of some units are kept, sealed, and a table that is registered later
// is compared with them (docs/format/sketch.md). It is less than prints are (reuse.go): it knows a unit by its key alone.

// sketchFile is in the directory of a holdout of a source, also when its parts are dropped.
const sketchFile = "sketch"

const (
	sketchVersion = 1
	// sketchTags is how many tags of a part are kept: the least. Tags are a keyed hash, so these are a random sample of the units.
	sketchTags = 4096
	// leastShared is how many tags must be found again: below a thousandth of a part a holdout has no more to fear than from units that are alike.
	leastShared = 4
)

// sketch is what is kept of a registered table's units.
type sketch struct {
	Version int      `json:"version"`
	Key     []string `json:"key"` // the columns
	Day     bool     `json:"day,omitempty"`
	Columns []string `json:"columns"` // of the table
	// Parts are those of printedParts.
	Parts []sketchedPart `json:"parts"`
}

type sketchedPart struct {
	Units int64    `json:"units"`
	Tags  []uint64 `json:"tags"`
}

// sketchOf is what a holdout's sketch is sealed as.
func sketchOf(id string) string { return "sketch of " + id }

// sketch makes the sketch of the table. Rows that are known by their places have none: each table has rows at these.
func (g *registering) sketch() *sketch {
	if len(g.by.Columns) == 0 {
		return nil
	}
	k := &sketch{Version: sketchVersion, Key: g.by.Columns, Day: g.by.Day, Parts: make([]sketchedPart, len(printedParts))}
	for _, f := range g.table.Schema.Fields {
		k.Columns = append(k.Columns, f.Name)
	}
	for i, tag := range g.places.sorted {
		part := &k.Parts[g.sideAt(g.places.place[i])]
		if part.Units++; len(part.Tags) < sketchTags {
			part.Tags = append(part.Tags, tag)
		}
	}
	return k
}

// sideAt is the number in printedParts of the side with this place.
func (g *registering) sideAt(place uint32) int {
	part := len(g.sides) - 1
	for int64(place) < g.places.first[part] {
		part--
	}
	return slices.Index(printedParts, g.sides[part].name)
}

// like reports whether two tables could be versions of one: their units are known by the same columns, and they share at least half of the columns that the smaller one has. The ids of two
// tables of other things are often the same numbers.
func (k *sketch) like(other *sketch) bool {
	if !slices.Equal(k.Key, other.Key) || k.Day != other.Day {
		return false
	}
	shared := 0
	for _, name := range k.Columns {
		if slices.Contains(other.Columns, name) {
			shared++
		}
	}
	return 2*shared >= min(len(k.Columns), len(other.Columns))
}

// write keeps a sketch in a holdout's directory.
func (s *Service) writeSketch(dir, id string, k *sketch) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	sealed, err := s.printSealer.Seal(text, sketchOf(id))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sketchFile), sealed, secretMode)
}

// readSketch reads a holdout's sketch; nil where it has none.
func (s *Service) readSketch(id string) (*sketch, error) {
	sealed, err := os.ReadFile(s.holdoutPath(id, sketchFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("holdout: sketch: %w", err)
	}
	text, err := s.printSealer.Open(sealed, sketchOf(id))
	k := &sketch{}
	if err == nil {
		if err = readVersion("the sketch", text, sketchVersion); err == nil {
			err = json.Unmarshal(text, k)
		}
	}
	if err == nil && len(k.Parts) != len(printedParts) {
		err = fmt.Errorf("it has %d parts", len(k.Parts))
	}
	if err != nil {
		return nil, fmt.Errorf("holdout: sketch of %s: %w", id, err)
	}
	return k, nil
}

// compare looks for the table's units among those of earlier holdouts of sources, and does what the policy says. It keeps a sketch of the parts.
func (g *registering) compare(dir string) error {
	s, own := g.service, g.sketch()
	if own == nil {
		return nil
	}
	if err := s.writeSketch(dir, g.id, own); err != nil {
		return fmt.Errorf("holdout: sketch: %w", err)
	}
	before, err := g.earlierHoldouts()
	if err != nil {
		return err
	}
	var reused []Reuse
	var concerned []older
	for _, e := range before {
		k, err := s.readSketch(e.id)
		if err != nil {
			return err
		}
		if k == nil || !own.like(k) {
			continue
		}
		found := false
		for from, part := range k.Parts {
			hits := make([]int, len(printedParts))
			for _, tag := range part.Tags {
				if at, ok := g.places.at(tag); ok {
					hits[g.sideAt(g.places.place[at])]++
				}
			}
			for to, n := range hits {
				way := prints.Way{From: from, To: to}
				why := e.why(way)
				if n < min(leastShared, len(part.Tags)) || n == 0 || why == "" {
					continue
				}
				share := float64(n) / float64(len(part.Tags))
				reused = append(reused, Reuse{Holdout: e.id, From: printedNames[from], To: printedNames[to], Share: roundShare(share), Why: why})
				found = true
			}
		}
		if found {
			concerned = append(concerned, e)
		}
	}
	return g.decide(reused, concerned)
}

// at finds a tag.
func (x *assigned) at(tag uint64) (int, bool) {
	if tag>>x.shift+1 >= uint64(len(x.start)) {
		return 0, false
	}
	low, high := x.start[tag>>x.shift], x.start[tag>>x.shift+1]
	at, ok := slices.BinarySearch(x.sorted[low:high], tag)
	return int(low) + at, ok
}

// alsoSketched is one of some holdouts that, by sketches, holds out units that nobody was given of a holdout of a source; "" if there is none. The least tags of two parts that share units
// are, in part, the same.
func (s *Service) alsoSketched(id string, open []older) (other string, err error) {
	own, err := s.readSketch(id)
	if err != nil || own == nil {
		return "", err
	}
	for _, e := range open {
		k, err := s.readSketch(e.id)
		if err != nil {
			return "", err
		}
		if k == nil || !own.like(k) {
			continue
		}
		for _, mine := range []int{printedHoldout, printedCheck} {
			for _, tag := range own.Parts[mine].Tags {
				if _, found := slices.BinarySearch(k.Parts[printedHoldout].Tags, tag); found {
					return e.id, nil
				}
			}
		}
	}
	return "", nil
}

// PartFile is the file of a holdout's directory whose SHA-256 is the fingerprint of a part, as the card says it.
func PartFile(part, manifest string) string {
	if strings.HasSuffix(part, partSuffix) {
		return part
	}
	return part + "/" + manifest
}
