package model

import "math"

// Metric is how far a row u is from a vector v.
type Metric string

const (
	Euclidean Metric = "euclidean" // sqrt(sum (u_j-v_j)²)
	Manhattan Metric = "manhattan" // sum |u_j-v_j|
)

// Weighting is what a neighbour weighs.
type Weighting string

const (
	Uniform    Weighting = "uniform"  // 1
	ByDistance Weighting = "distance" // 1/distance; where some have the distance 0, theirs is 1 and that of others 0
)

// neighbors is the mean of what the nearest vectors have: a number, or a class. Of vectors that are equally far the first is nearer.
type neighbors struct {
	*space
	k         int
	metric    Metric
	weighting Weighting
	values    []float64 // by vector: a number, or the place of a class
	classes   int       // 1 without classes
}

// maxNeighbors bounds k: each neighbour takes a worker 16 KiB.
const maxNeighbors = 256

// neighbors reads {"neighbors": {...}}.
func (r *reader) neighbors(pointer string, in any) *Model {
	o := r.object(pointer, in, append([]string{"k", "metric", "weighting", "values", "classes", "link"}, spaceMembers...)...)
	m := &Model{}
	form := map[string]any{}
	n := &neighbors{classes: r.ends(pointer, o, form, m, Identity), k: r.whole(pointer+"/k", o["k"], 5, 1, maxNeighbors),
		metric: choice(r, pointer+"/metric", o["metric"], Euclidean, Manhattan), weighting: choice(r, pointer+"/weighting", o["weighting"], Uniform, ByDistance)}
	if !r.ok() {
		return nil
	}
	if n.space = r.space(pointer, o, form, m); !r.ok() {
		return nil
	}
	n.values = r.array(pointer+"/values", o["values"])
	switch {
	case !r.ok():
		return nil
	case len(n.values) != n.count():
		r.add(pointer+"/values", "has %d numbers; there are %d vectors", len(n.values), n.count())
	case n.k > n.count():
		r.add(pointer+"/k", "is %d; there are %d vectors", n.k, n.count())
	}
	for i, x := range n.values {
		if n.classes > 1 && (x != math.Trunc(x) || x < 0 || x >= float64(n.classes)) {
			r.add(pointer+"/values", "number %d must be the place of a class, from 0 to %d", i, n.classes-1)
			break
		}
	}
	r.bound(pointer, n.space, n.each())
	form["values"] = numberArray(n.values)
	if n.k != 5 {
		form["k"] = n.k
	}
	if n.metric != Euclidean {
		form["metric"] = n.metric
	}
	if n.weighting != Uniform {
		form["weighting"] = n.weighting
	}
	m.scorer = &Scorer{features: len(m.features), outputs: n.classes, form: n}
	m.form = map[string]any{"neighbors": form}
	return m
}

// scratch is what a block needs: coordinates, distances, and of each neighbour its distance and its value.
func (n *neighbors) scratch() (numbers, bits int) {
	return n.space.scratch() + (2+2*n.k)*MaxBlock, 0
}

func (n *neighbors) bytes() int64 { return n.space.bytes(n.values) }

// each is what a vector takes a row beside its numbers: it goes past every neighbour.
func (n *neighbors) each() int64 { return 2 + 3*int64(n.k) }

func (n *neighbors) steps() int64 { return n.space.steps(n.each()) + int64(n.k)*int64(4+2*n.classes) }

func (n *neighbors) block(dst, features [][]float64, scratch []float64) {
	rows := len(dst[0])
	var heads [MaxUnits][]float64
	at := n.place(features, rows, scratch, &heads)
	scratch = scratch[n.space.scratch():]
	take := func() []float64 {
		row := scratch[:rows]
		scratch = scratch[MaxBlock:]
		return row
	}
	distance, value := take(), take()
	var nearest, values [maxNeighbors][]float64
	for j := range n.k {
		nearest[j], values[j] = take(), take()
		for i := range nearest[j] {
			nearest[j][i] = math.Inf(1)
		}
		clear(values[j])
	}
	for v := n.count() - 1; v >= 0; v-- { // the last first, so that of those that are equally far an earlier one goes before a later one
		vector := n.vectors[v*len(n.axes):][:len(n.axes)]
		if n.metric == Manhattan {
			absolutes(distance, at, vector)
		} else {
			squares(distance, at, vector)
		}
		for i := range value {
			value[i] = n.values[v]
		}
		for j := range n.k {
			insert(nearest[j], values[j], distance, value)
		}
	}
	n.counted(dst, nearest[:n.k], values[:n.k], distance, value)
}

// insert puts what is nearer, or as near, into a place, and takes out what was there: of all rows, without a branch.
func insert(nearest, values, distance, value []float64) {
	nearest, values, value = nearest[:len(distance)], values[:len(distance)], value[:len(distance)]
	for i, d := range distance {
		old := nearest[i]
		nearer := -uint64(bit(d <= old))
		other := nearer & (math.Float64bits(d) ^ math.Float64bits(old))
		nearest[i] = math.Float64frombits(math.Float64bits(old) ^ other)
		distance[i] = math.Float64frombits(math.Float64bits(d) ^ other)
		other = nearer & (math.Float64bits(value[i]) ^ math.Float64bits(values[i]))
		values[i] = math.Float64frombits(math.Float64bits(values[i]) ^ other)
		value[i] = math.Float64frombits(math.Float64bits(value[i]) ^ other)
	}
}

// counted makes the predictions of the neighbours, nearest first. total and weight are scratch.
func (n *neighbors) counted(dst, nearest, values [][]float64, total, weight []float64) {
	for _, d := range dst {
		clear(d)
	}
	for i, far := range nearest[n.k-1] {
		total[i] = far - far // 0; where so many are not at a finite distance there is no prediction
	}
	for j := range nearest {
		n.weights(weight, nearest[j], nearest[0])
		for i, w := range weight {
			total[i] += w
		}
		if n.classes == 1 {
			for i, w := range weight {
				dst[0][i] += float64(w * values[j][i])
			}
			continue
		}
		for k, d := range dst {
			for i, w := range weight {
				d[i] += w * float64(bit(values[j][i] == float64(k)))
			}
		}
	}
	for _, d := range dst {
		for i := range d {
			d[i] /= total[i]
		}
	}
}

// weights are those of neighbours at a distance; first is that of the nearest ones.
func (n *neighbors) weights(dst, distance, first []float64) {
	for i, d := range distance {
		w := 1.0
		if n.weighting == ByDistance {
			if n.metric == Euclidean {
				d = math.Sqrt(d)
			}
			at, some := float64(bit(d == 0)), float64(bit(first[i] == 0))
			w = at + (1-some)/(d+at) // d is not 0 where none is
		}
		dst[i] = w
	}
}
