package experiments

import (
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// regression is what a table of ordinary least squares says.
type regression struct {
	R2          float64 `json:"r2"`
	F           float64 `json:"f"`
	P           float64 `json:"p"` // of F
	Regressors  int     `json:"regressors"`
	Significant int     `json:"significant"` // coefficients with P below 0.05, the intercept's aside

	p []float64 // of each coefficient, the intercept's aside
}

// freedmanRun is the paper's analysis of one data set.
type freedmanRun struct {
	First  regression `json:"first"`
	Second regression `json:"second"`
}

// freedmanFit draws noise, fits it, keeps what is significant at freedmanLevel, and fits again.
func freedmanFit(seed uint64, n, p int) (freedmanRun, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y := mat.NewDense(n, p, nil), make([]float64, n)
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			row[j] = r.NormFloat64()
		}
		y[i] = r.NormFloat64()
	}
	first, err := leastSquares(x, y)
	if err != nil {
		return freedmanRun{}, err
	}
	var kept []int
	for j, p := range first.p {
		if p < freedmanLevel {
			kept = append(kept, j)
		}
	}
	second := newRegression(nil, 0, 0, 0)
	if len(kept) > 0 {
		some := mat.NewDense(n, len(kept), nil)
		for i := range n {
			for c, j := range kept {
				some.Set(i, c, x.At(i, j))
			}
		}
		if second, err = leastSquares(some, y); err != nil {
			return freedmanRun{}, err
		}
	}
	return freedmanRun{First: first, Second: second}, nil
}

// freedmanOrthonormalFit is the same for regressors that are orthonormal and orthogonal to the intercept. Along each the response has an
// independent standard normal coordinate, and n-p-1 more are the residual's: so these are drawn instead of the data.
func freedmanOrthonormalFit(seed uint64, n, p int) (freedmanRun, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	z, rest := make([]float64, p), 0.0
	for j := range z {
		z[j] = r.NormFloat64()
	}
	for range n - p - 1 {
		e := r.NormFloat64()
		rest += e * e
	}
	first := orthonormalRegression(n, z, rest)
	var kept []float64
	for j, p := range first.p {
		if p < freedmanLevel {
			kept = append(kept, z[j])
		} else {
			rest += z[j] * z[j]
		}
	}
	return freedmanRun{First: first, Second: orthonormalRegression(n, kept, rest)}, nil
}

// orthonormalRegression has coefficients z, and leaves a residual whose square is rest.
func orthonormalRegression(n int, z []float64, rest float64) regression {
	fitted, freedom := 0.0, float64(n-len(z)-1)
	t := make([]float64, len(z))
	for j, v := range z {
		fitted += v * v
		t[j] = v / math.Sqrt(rest/freedom)
	}
	return newRegression(t, fitted, rest, freedom)
}

// newRegression is the table of coefficients with these t statistics, of which fitted and rest are explained and left.
func newRegression(t []float64, fitted, rest, freedom float64) regression {
	out := regression{Regressors: len(t), P: 1, p: make([]float64, len(t))}
	if len(t) == 0 {
		return out
	}
	out.R2 = fitted / (fitted + rest)
	out.F = fitted / float64(len(t)) / (rest / freedom)
	out.P = distuv.F{D1: float64(len(t)), D2: freedom}.Survival(out.F)
	student := distuv.StudentsT{Sigma: 1, Nu: freedom}
	for j := range t {
		out.p[j] = 2 * student.Survival(math.Abs(t[j]))
		if out.p[j] < 0.05 {
			out.Significant++
		}
	}
	return out
}

// leastSquares is the regression of y on x with an intercept, by the normal equations: columns of noise are far from dependent.
func leastSquares(x *mat.Dense, y []float64) (regression, error) {
	n, p := x.Dims()
	with := mat.NewDense(n, p+1, nil)
	for i := range n {
		row := with.RawRowView(i)
		row[0] = 1
		copy(row[1:], x.RawRowView(i))
	}
	var gram mat.SymDense
	gram.SymOuterK(1, with.T())
	var cholesky mat.Cholesky
	if !cholesky.Factorize(&gram) {
		return regression{}, errors.New("experiments: the regressors are dependent")
	}
	var right, coefficients mat.VecDense
	response := mat.NewVecDense(n, y)
	right.MulVec(with.T(), response)
	if err := cholesky.SolveVecTo(&coefficients, &right); err != nil {
		return regression{}, err
	}
	var inverse mat.SymDense
	if err := cholesky.InverseTo(&inverse); err != nil {
		return regression{}, err
	}
	var residual mat.VecDense
	residual.MulVec(with, &coefficients)
	residual.SubVec(response, &residual)
	mean, total := mat.Sum(response)/float64(n), 0.0
	for _, v := range y {
		total += (v - mean) * (v - mean)
	}
	rest, freedom := mat.Dot(&residual, &residual), float64(n-p-1)
	t := make([]float64, p)
	for j := range t {
		t[j] = coefficients.AtVec(j+1) / math.Sqrt(rest/freedom*inverse.At(j+1, j+1))
	}
	return newRegression(t, total-rest, rest, freedom), nil
}

// freedmanCut is where products of two standard normal variables are cut for a row function in [0,1]: one in two hundred is cut.
const freedmanCut = 4.0

// freedmanGame is one run of the analyst against a holdout.
type freedmanGame struct {
	Told   float64 `json:"told"` // how often the prediction hits the response's sign
	Low    float64 `json:"low"`  // interval of Told, the mechanism's or the plain one
	High   float64 `json:"high"`
	Missed bool    `json:"missed"` // some interval of the run
}

// freedmanPart is one part of the noise: columns come from seeds of their own, so that none has to be kept.
type freedmanPart struct {
	seed     uint64
	response []float64
	score    []float64
}

func newFreedmanPart(seed uint64, n int64) *freedmanPart {
	p := &freedmanPart{seed: seed, response: make([]float64, n), score: make([]float64, n)}
	r := p.column(-1)
	for i := range p.response {
		p.response[i] = r.NormFloat64()
	}
	return p
}

func (p *freedmanPart) column(j int) *rand.Rand { return rand.New(rand.NewPCG(p.seed, uint64(j+1))) }

// product is the mean of the cut product of a column and the response, from 0 to 1.
func (p *freedmanPart) product(j int) thresholdout.Mean {
	r, sum := p.column(j), int64(0)
	for _, y := range p.response {
		v := max(-freedmanCut, min(r.NormFloat64()*y, freedmanCut))
		sum += int64(math.Round((v + freedmanCut) / (2 * freedmanCut) * float64(grid)))
	}
	return thresholdout.Mean{Sum: sum, N: int64(len(p.response))}
}

// weigh adds a column to the prediction.
func (p *freedmanPart) weigh(j int, weight float64) {
	r := p.column(j)
	for i := range p.score {
		p.score[i] += weight * r.NormFloat64()
	}
}

// hits is how often the prediction has the sign of the response.
func (p *freedmanPart) hits() thresholdout.Mean {
	count := int64(0)
	for i, s := range p.score {
		if s*p.response[i] > 0 {
			count++
		}
	}
	return thresholdout.Mean{Sum: count * grid, N: int64(len(p.score))}
}

// freedmanAsk plays the analyst once.
func freedmanAsk(p thresholdout.Params, seed uint64) (freedmanGame, error) {
	holdout, training := newFreedmanPart(seedOf(seed, 1), p.N), newFreedmanPart(seedOf(seed, 2), p.Training)
	o := &referee{Oracle: newHoldout(p, seedOf(seed, 3))}
	ask := func(of func(part *freedmanPart) thresholdout.Mean) (float64, *thresholdout.Interval, error) {
		return o.Ask(Question{Truth: 0.5,
			Holdout:  func(int64, int64) thresholdout.Mean { return of(holdout) },
			Training: func() thresholdout.Mean { return of(training) }})
	}
	products, squares := make([]float64, p.Questions-1), 0.0
	for j := range products {
		told, _, err := ask(func(part *freedmanPart) thresholdout.Mean { return part.product(j) })
		if err != nil {
			return freedmanGame{}, err
		}
		products[j] = told - 0.5
		squares += products[j] * products[j]
	}
	limit := freedmanQuantile() * math.Sqrt(squares/float64(len(products)))
	for j, v := range products {
		if math.Abs(v) > limit {
			holdout.weigh(j, v)
			training.weigh(j, v)
		}
	}
	told, interval, err := ask((*freedmanPart).hits)
	if err != nil {
		return freedmanGame{}, err
	}
	if interval == nil {
		half := 1.96 * math.Sqrt(told*(1-told)/float64(p.N))
		interval = &thresholdout.Interval{Low: told - half, High: told + half}
	}
	return freedmanGame{Told: told, Low: interval.Low, High: interval.High, Missed: o.game.Missed}, nil
}

// fitOfHits is the R2 of a prediction that is jointly normal with the response and hits its sign so often.
func fitOfHits(hits float64) float64 {
	correlation := math.Sin(math.Pi * (max(0.5, hits) - 0.5))
	return correlation * correlation
}
