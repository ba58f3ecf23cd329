package freedman

import (
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
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

// analysis is the paper's analysis of one data set.
type analysis struct {
	First  regression `json:"first"`
	Second regression `json:"second"`
}

// analyse draws noise, fits it, keeps what is significant at screeningLevel, and fits again.
func analyse(seed uint64, n, p int) (analysis, error) {
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
		return analysis{}, err
	}
	var kept []int
	for j, p := range first.p {
		if p < screeningLevel {
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
			return analysis{}, err
		}
	}
	return analysis{First: first, Second: second}, nil
}

// analyseOrthonormal is the same for regressors that are orthonormal and orthogonal to the intercept. Along each the response has an
// independent standard normal coordinate, and n-p-1 more are the residual's: so these are drawn instead of the data.
func analyseOrthonormal(seed uint64, n, p int) (analysis, error) {
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
		if p < screeningLevel {
			kept = append(kept, z[j])
		} else {
			rest += z[j] * z[j]
		}
	}
	return analysis{First: first, Second: orthonormalRegression(n, kept, rest)}, nil
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
