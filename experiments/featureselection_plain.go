package experiments

import (
	"context"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/featuresel"
	"github.com/holdoutd/holdoutd/session"
)

// selectionData is one part of the data. Every column comes from a seed of its own, so that none has to be kept.
type selectionData struct {
	size  selectionSize
	seed  uint64
	label []float64
}

var _ featuresel.Data = (*selectionData)(nil)

func newSelectionData(s selectionSize, seed uint64) *selectionData {
	d := &selectionData{size: s, seed: seed, label: make([]float64, s.n)}
	r := rand.New(rand.NewPCG(seedOf(seed, 0, 1), seedOf(seed, 0, 2)))
	for i := range d.label {
		d.label[i] = float64(2*r.IntN(2) - 1)
	}
	return d
}

// Rows implements featuresel.Data.
func (d *selectionData) Rows() int { return d.size.n }

// Columns implements featuresel.Data.
func (d *selectionData) Columns() int { return d.size.d }

// Label implements featuresel.Data.
func (d *selectionData) Label() []float64 { return d.label }

// Column implements featuresel.Data: standard normal variables, plus the label times the shift of a column that knows it.
func (d *selectionData) Column(dst []float64, j int) {
	r := rand.New(rand.NewPCG(seedOf(d.seed, uint64(j)+1, 1), seedOf(d.seed, uint64(j)+1, 2)))
	shift := d.size.shift(j)
	for i := range dst {
		dst[i] = r.NormFloat64() + shift*d.label[i]
	}
}

// selectionParts are the three parts of a repetition.
type selectionParts struct{ training, holdout, fresh *selectionData }

func newSelectionParts(s selectionSize, seed uint64) selectionParts {
	return selectionParts{newSelectionData(s, seedOf(seed, 1)), newSelectionData(s, seedOf(seed, 2)), newSelectionData(s, seedOf(seed, 3))}
}

// plainSelection is a repetition on data that is drawn, by the selection code and the mechanism that are shipped.
func plainSelection(ctx context.Context, s selectionSize, method string, seed uint64) (path, error) {
	parts := newSelectionParts(s, seed)
	if method == selectionStandard {
		return parts.play(ctx, featuresel.Exact{Data: parts.holdout})
	}
	p, err := featuresel.Science2015(int64(s.n), int64(s.n), int64(s.d+len(s.ks)))
	if err != nil {
		return path{}, err
	}
	o := &featuresel.Holdout{Simulated: session.Simulated{Guarantee: p, Seed: seedOf(seed, 4)}, Training: parts.training, Holdout: parts.holdout}
	out, err := parts.play(ctx, o)
	out.Above = int(o.State.Tokens)
	return out, err
}

// play lets the published analyst play against an oracle of the holdout, and measures what it made.
func (p selectionParts) play(ctx context.Context, o featuresel.Oracle) (path, error) {
	s := p.training.size
	c, told, err := featuresel.Published(ctx, o, featuresel.Correlations(p.training), selectionCutoff*s.deviation(), s.ks)
	if err != nil {
		return path{}, err
	}
	return path{Training: featuresel.Path(p.training, c, s.ks), Told: told, Fresh: featuresel.Path(p.fresh, c, s.ks), Selected: len(c.Columns)}, nil
}
