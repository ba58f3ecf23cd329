package featureselection

import (
	"context"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/featuresel"
	"github.com/holdoutd/holdoutd/session"
)

// drawnPart is one part of the data. Every column comes from a seed of its own, so that none has to be kept.
type drawnPart struct {
	size  shape
	seed  uint64
	label []float64
}

var _ featuresel.Data = (*drawnPart)(nil)

func newDrawnPart(s shape, seed uint64) *drawnPart {
	d := &drawnPart{size: s, seed: seed, label: make([]float64, s.n)}
	r := rand.New(rand.NewPCG(run.SeedOf(seed, 0, 1), run.SeedOf(seed, 0, 2)))
	for i := range d.label {
		d.label[i] = float64(2*r.IntN(2) - 1)
	}
	return d
}

// Rows implements featuresel.Data.
func (d *drawnPart) Rows() int { return d.size.n }

// Columns implements featuresel.Data.
func (d *drawnPart) Columns() int { return d.size.d }

// Label implements featuresel.Data.
func (d *drawnPart) Label() []float64 { return d.label }

// Column implements featuresel.Data: standard normal variables, plus the label times the shift of a column that knows it.
func (d *drawnPart) Column(dst []float64, j int) {
	r := rand.New(rand.NewPCG(run.SeedOf(d.seed, uint64(j)+1, 1), run.SeedOf(d.seed, uint64(j)+1, 2)))
	shift := d.size.shift(j)
	for i := range dst {
		dst[i] = r.NormFloat64() + shift*d.label[i]
	}
}

// drawnParts are the three parts of a repetition.
type drawnParts struct{ training, holdout, fresh *drawnPart }

func newDrawnParts(s shape, seed uint64) drawnParts {
	return drawnParts{newDrawnPart(s, run.SeedOf(seed, 1)), newDrawnPart(s, run.SeedOf(seed, 2)), newDrawnPart(s, run.SeedOf(seed, 3))}
}

// playDrawn is a repetition on data that is drawn, by the selection code and the mechanism that are shipped.
func playDrawn(ctx context.Context, s shape, method string, seed uint64) (path, error) {
	parts := newDrawnParts(s, seed)
	if method == standardReuse {
		return parts.play(ctx, featuresel.Exact{Data: parts.holdout})
	}
	p, err := featuresel.Science2015(int64(s.n), int64(s.n), int64(s.d+len(s.ks)))
	if err != nil {
		return path{}, err
	}
	o := &featuresel.Holdout{Simulated: session.Simulated{Guarantee: p, Seed: run.SeedOf(seed, 4)}, Training: parts.training, Holdout: parts.holdout}
	out, err := parts.play(ctx, o)
	out.Above = int(o.State.Tokens)
	return out, err
}

// play lets the published analyst play against an oracle of the holdout, and measures what it made.
func (p drawnParts) play(ctx context.Context, o featuresel.Oracle) (path, error) {
	s := p.training.size
	c, told, err := featuresel.Published(ctx, o, featuresel.Correlations(p.training), filterCutoff*s.deviation(), s.ks)
	if err != nil {
		return path{}, err
	}
	return path{Training: featuresel.Path(p.training, c, s.ks), Told: told, Fresh: featuresel.Path(p.fresh, c, s.ks), Selected: len(c.Columns)}, nil
}
