package selection

import (
	"context"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/featuresel"
	"github.com/holdoutd/holdoutd/session"
)

// A Part is one part of the data. Every column comes from a seed of its own, so that none has to be kept.
type Part struct {
	Shape Shape
	seed  uint64
	label []float64
}

var _ featuresel.Data = (*Part)(nil)

func newPart(s Shape, seed uint64) *Part {
	d := &Part{Shape: s, seed: seed, label: make([]float64, s.N)}
	r := rand.New(rand.NewPCG(seeds.Of(seed, 0, 1), seeds.Of(seed, 0, 2)))
	for i := range d.label {
		d.label[i] = float64(2*r.IntN(2) - 1)
	}
	return d
}

// Rows implements featuresel.Data.
func (d *Part) Rows() int { return d.Shape.N }

// Columns implements featuresel.Data.
func (d *Part) Columns() int { return d.Shape.D }

// Label implements featuresel.Data.
func (d *Part) Label() []float64 { return d.label }

// Column implements featuresel.Data: standard normal variables, plus the label times the shift of a column that knows it.
func (d *Part) Column(dst []float64, j int) {
	r := rand.New(rand.NewPCG(seeds.Of(d.seed, uint64(j)+1, 1), seeds.Of(d.seed, uint64(j)+1, 2)))
	shift := d.Shape.shift(j)
	for i := range dst {
		dst[i] = r.NormFloat64() + shift*d.label[i]
	}
}

// Parts are the three parts of a repetition.
type Parts struct{ Training, Holdout, Fresh *Part }

// NewParts are drawn from a seed: rows, columns and labels of another seed are independent of them.
func NewParts(s Shape, seed uint64) Parts {
	return Parts{newPart(s, seeds.Of(seed, 1)), newPart(s, seeds.Of(seed, 2)), newPart(s, seeds.Of(seed, 3))}
}

// PlayDrawn is a repetition by [StandardReuse] or [ThroughThresholdout] on data that is drawn, by the selection code and the mechanism that are shipped.
func PlayDrawn(ctx context.Context, s Shape, method string, seed uint64) (Path, error) {
	parts := NewParts(s, seed)
	if method == StandardReuse {
		return parts.Play(ctx, featuresel.Exact{Data: parts.Holdout})
	}
	p, err := featuresel.Science2015(int64(s.N), int64(s.N), int64(s.D+len(s.Ks)))
	if err != nil {
		return Path{}, err
	}
	o := &featuresel.Holdout{Simulated: session.Simulated{Guarantee: p, Seed: seeds.Of(seed, 4)}, Training: parts.Training, Holdout: parts.Holdout}
	out, err := parts.Play(ctx, o)
	out.Above = int(o.State.Tokens)
	return out, err
}

// Play lets the published analyst play against an oracle of the holdout, and measures what it made.
func (p Parts) Play(ctx context.Context, o featuresel.Oracle) (Path, error) {
	s := p.Training.Shape
	c, told, err := featuresel.Published(ctx, o, featuresel.Correlations(p.Training), filterCutoff*s.deviation(), s.Ks)
	if err != nil {
		return Path{}, err
	}
	return Path{Training: featuresel.Path(p.Training, c, s.Ks), Told: told, Fresh: featuresel.Path(p.Fresh, c, s.Ks), Selected: len(c.Columns)}, nil
}
