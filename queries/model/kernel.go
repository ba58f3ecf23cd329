package model

import "math"

// Kernel is how alike a row u and a vector v are.
type Kernel string

const (
	RBF           Kernel = "rbf"       // exp(-gamma |u-v|²)
	LinearKernel  Kernel = "linear"    // u·v
	Polynomial    Kernel = "poly"      // (gamma u·v + coef0)^degree
	SigmoidKernel Kernel = "sigmoid"   // tanh(gamma u·v + coef0)
	Laplacian     Kernel = "laplacian" // exp(-gamma sum |u_j-v_j|)
)

// kernel is functions that are each a sum of coefficients times kernels: of support vectors, or of kernel ridge regression.
type kernel struct {
	*space
	of           Kernel
	gamma, coef0 float64
	degree       int
	base         []float64 // by function
	coefficients []float64 // function after function, a number for each vector
	votes        bool      // functions are of pairs of classes, each with a vote
}

// maxVoters bounds the classes that functions of pairs vote for: each pair takes a worker 8 KiB.
const maxVoters = 32

// kernel reads {"kernel": {...}}.
func (r *reader) kernel(pointer string, in any) *Model {
	o := r.object(pointer, in, append([]string{"function", "gamma", "coef0", "degree", "coefficients", "base", "votes", "classes", "link"}, spaceMembers...)...)
	m := &Model{}
	form := map[string]any{}
	outputs := r.ends(pointer, o, form, m, Identity)
	k := &kernel{of: choice(r, pointer+"/function", o["function"], RBF, LinearKernel, Polynomial, SigmoidKernel, Laplacian),
		gamma: r.number(pointer+"/gamma", o["gamma"], 1), coef0: r.number(pointer+"/coef0", o["coef0"], 0), degree: r.whole(pointer+"/degree", o["degree"], 3, 1, 32)}
	if k.gamma < 0 {
		r.add(pointer+"/gamma", "must not be negative")
	}
	functions := outputs
	if o["votes"] != nil {
		var ok bool
		if k.votes, ok = o["votes"].(bool); !ok || k.votes && (outputs == 1 || outputs > maxVoters) {
			r.add(pointer+"/votes", "must be true or false; true is for 2 to %d classes", maxVoters)
		}
		if k.votes {
			functions, form["votes"] = outputs*(outputs-1)/2, true
		}
	}
	if k.base = r.base(pointer+"/base", o["base"], form, functions); !r.ok() {
		return nil
	}
	if k.space = r.space(pointer, o, form, m); !r.ok() {
		return nil
	}
	k.coefficients = r.array(pointer+"/coefficients", o["coefficients"])
	if r.ok() && len(k.coefficients) != functions*k.count() {
		r.add(pointer+"/coefficients", "has %d numbers and must have %d, one of each of %d vectors for each of %d functions", len(k.coefficients), functions*k.count(), k.count(), functions)
	}
	r.bound(pointer, k.space, k.each())
	form["coefficients"] = numberArray(k.coefficients)
	k.says(form)
	m.scorer = &Scorer{features: len(m.features), outputs: outputs, form: k}
	m.form = map[string]any{"kernel": form}
	return m
}

// says writes into a form what the function is. What it does not read is not said.
func (k *kernel) says(form map[string]any) {
	if k.of != RBF {
		form["function"] = k.of
	}
	if k.of != LinearKernel && k.gamma != 1 {
		form["gamma"] = k.gamma
	}
	if (k.of == Polynomial || k.of == SigmoidKernel) && k.coef0 != 0 {
		form["coef0"] = k.coef0
	}
	if k.of == Polynomial && k.degree != 3 {
		form["degree"] = k.degree
	}
}

// scratch is what a block needs: coordinates, kernels, and the functions that vote.
func (k *kernel) scratch() (numbers, bits int) {
	most := k.space.scratch() + MaxBlock
	if k.votes {
		most += len(k.base) * MaxBlock
	}
	return most, 0
}

func (k *kernel) bytes() int64 { return k.space.bytes(k.coefficients) }

// each is what a vector takes a row beside its numbers.
func (k *kernel) each() int64 {
	each := int64(2 + len(k.base))
	switch k.of {
	case RBF, SigmoidKernel, Laplacian:
		each += exponentialSteps
	case Polynomial:
		each += int64(k.degree)
	}
	return each
}

func (k *kernel) steps() int64 { return k.space.steps(k.each()) + int64(len(k.base)) }

func (k *kernel) block(dst, features [][]float64, scratch []float64) {
	rows := len(dst[0])
	var heads [MaxUnits][]float64
	at := k.place(features, rows, scratch, &heads)
	scratch = scratch[k.space.scratch():]
	alike, scratch := scratch[:rows], scratch[MaxBlock:]
	sums := dst
	if k.votes {
		var heads [maxVoters * (maxVoters - 1) / 2][]float64
		sums = heads[:len(k.base)]
		for f := range sums {
			sums[f] = scratch[f*MaxBlock:][:rows]
		}
	}
	for f, b := range k.base {
		for i := range sums[f] {
			sums[f][i] = b
		}
	}
	n := k.count()
	for v := range n {
		k.alike(alike, at, k.vectors[v*len(k.axes):][:len(k.axes)])
		for f := range sums {
			addTimes(sums[f], alike, k.coefficients[f*n+v])
		}
	}
	if k.votes {
		vote(dst, sums)
	}
}

// alike writes the kernel of the rows and a vector. It takes the same steps for every row.
func (k *kernel) alike(dst []float64, at [][]float64, vector []float64) {
	switch k.of {
	case RBF:
		squares(dst, at, vector)
		k.exponentials(dst)
	case Laplacian:
		absolutes(dst, at, vector)
		k.exponentials(dst)
	case LinearKernel:
		products(dst, at, vector)
	case Polynomial:
		products(dst, at, vector)
		for i, x := range dst {
			x = float64(k.gamma*x) + k.coef0
			power := x
			for range k.degree - 1 {
				power *= x
			}
			dst[i] = power
		}
	case SigmoidKernel:
		products(dst, at, vector)
		for i, x := range dst {
			dst[i] = 1 - 2/(1+math.Exp(2*(float64(k.gamma*x)+k.coef0)))
		}
	}
}

// vanishes is where an exponential is 0 in doubles.
const vanishes = -745.2

func (k *kernel) exponentials(dst []float64) {
	for i, x := range dst {
		e := math.Exp(max(-k.gamma*x, -largestExponent)) // what is smaller takes other steps
		dst[i] = math.Float64frombits(math.Float64bits(e) &^ -uint64(bit(-k.gamma*x <= vanishes)))
	}
}

// vote counts the votes of functions of pairs, (0,1), (0,2), …, (1,2), …: above 0 for the first class of the pair, else for the second. Where a function is no
// finite number the votes of its classes are none.
func vote(dst, sums [][]float64) {
	for _, d := range dst {
		clear(d)
	}
	pair := 0
	for a := range dst {
		for b := a + 1; b < len(dst); b++ {
			first, second := dst[a], dst[b]
			for i, x := range sums[pair] {
				yes, gone := float64(bit(x > 0)), x-x
				first[i] += yes + gone
				second[i] += 1 - yes + gone
			}
			pair++
		}
	}
}
