package session

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// statisticOf is what a part of n units says to a statistic that a plan declares: of the next of the sums that one pass made, in the order of
// [queries.Plan.Pass]. half has those of the holdout's first half, of
// statistics that need them. It is the one place where what the language declares and what mechanisms check meet: a new kind of
// statistic has a line here.
func statisticOf(declared shape.Statistic, sums, half *rowfn.Sums, n int64, role role) (thresholdout.Statistic, error) {
	sampled := role.sampled()
	batch := declared.Batch()
	if sampled {
		batch = declared.Sampled()
	}
	own := sums.Cut(batch)
	switch d := declared.(type) {
	case *shape.Equation:
		if d.Whole {
			return rootOf(d, own, n, sampled), nil
		}
		return weightedOf(d, own, n), nil
	case *shape.Difference:
		first := d.First.Batch()
		if sampled {
			first = d.First.Sampled()
		}
		return thresholdout.DifferenceSums{First: rootOf(d.First, own.Cut(first), n, sampled), Second: rootOf(d.Second, own, n, sampled)}, nil
	case *shape.Tally:
		var first rowfn.Sums
		if d.Halves() && role != trainingPart {
			first = half.Cut(batch)
		}
		return tallyOf(d, own.Values, first.Values, n, role == trainingPart)
	case *shape.Clusters:
		var first rowfn.Sums
		if role != trainingPart {
			first = half.Cut(batch)
		}
		return clusteredOf(d, own, first, n, role == trainingPart)
	case *shape.Joint:
		return jointOf(d, own, n, sampled), nil
	}
	panic(fmt.Sprintf("session: no statistic is known for %T", declared))
}

// jointOf are the sums of several means, which a part's own batch has one after another.
func jointOf(j *shape.Joint, sums rowfn.Sums, n int64, sampled bool) thresholdout.JointSums {
	all := thresholdout.JointSums{Shares: j.Shares, Low: j.Range.Low, High: j.Range.High, Make: func(means []thresholdout.Known, units int64) thresholdout.Known {
		parts := make([]queries.Part, len(means))
		for i, m := range means {
			parts[i] = queries.Part{Value: m.Value, Low: m.Low, High: m.High, Bounded: true}
		}
		made := j.Make(parts, units)
		return thresholdout.Known{Value: made.Value, Low: made.Low, High: made.High}
	}}
	for i := range j.Means {
		e := &j.Means[i]
		batch := e.Batch()
		if sampled {
			batch = e.Sampled()
		}
		all.Means = append(all.Means, rootOf(e, sums.Cut(batch), n, sampled))
	}
	return all
}

// rootOf are the sums of an equation in which B is 0 or 1.
func rootOf(e *shape.Equation, sums rowfn.Sums, n int64, sampled bool) thresholdout.RootSums {
	all := e.Sums(sums, n)
	r := thresholdout.RootSums{All: n, Partial: e.B != nil, Binary: e.Binary,
		Sums: moments.Sums{Units: all.B / rowfn.One, Sum: all.A, Squares: moments.Wide(all.AA)}}
	if sampled {
		if third, fourth, ok := e.Higher(sums); ok {
			r.Higher = &thresholdout.Higher{Third: moments.Wide(third), Fourth: moments.Wide(fourth)}
		}
	}
	return r
}

// weightedOf are the sums of an equation in which B is any number.
func weightedOf(e *shape.Equation, sums rowfn.Sums, n int64) thresholdout.WeightedSums {
	all := e.Sums(sums, n)
	return thresholdout.WeightedSums{WeightedSums: moments.WeightedSums{Units: n, A: all.A, B: all.B,
		SquareA: moments.Wide(all.AA), Mixed: moments.Wide(all.AB), SquareB: moments.Wide(all.BB)}}
}
