package certify

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// What is measured, run.Row.Set, beside accuracies at attack sizes.
const (
	abstained      = "abstained"                              // share of predictions that are not certified
	certifiedSize  = "certified radius"                       // mean, 0 where nothing is certified
	brokenInside   = "attacks inside the radius that succeed" // share of predictions
	smallestAttack = "smallest attack that succeeds"          // mean size
)

// certifiedAccuracy and attackedAccuracy are measures at an attack size.
func certifiedAccuracy(size float64) string { return fmt.Sprintf("certified accuracy at %v", size) }

func attackedAccuracy(size float64) string { return fmt.Sprintf("accuracy under attack at %v", size) }

// attackOn names the attack in Row.Method.
func attackOn(scores bool) string {
	if scores {
		return "attack on scores"
	}
	return "attack on labels"
}

func (c certified) assault(scores bool) assault {
	if scores {
		return c.Scores
	}
	return c.Labels
}

// rowsOf are the rows of one condition, from all of its digits.
func rowsOf(c condition, found []certified, draws int) (rows []run.Row) {
	base := run.Row{Condition: c.String(), N: int64(draws), K: int64(len(found)), Repetitions: len(found)}
	rate := func(method, set string, event func(f certified) bool) {
		r := base
		r.Method, r.Set, r.Rate = method, set, true
		rows = append(rows, run.Measured(r, found, func(f certified) float64 { return run.Indicator(event(f)) }))
	}
	mean := func(method, set string, value func(f certified) float64) {
		r := base
		r.Method, r.Set = method, set
		rows = append(rows, run.Measured(r, found, value))
	}
	for i, w := range ways(c.noise.Family) {
		for _, size := range attackSizes {
			rate(w.String(), certifiedAccuracy(size), func(f certified) bool { return f.Found[i].accurate(f.Label, size) })
		}
		rate(w.String(), abstained, func(f certified) bool { return f.Found[i].Prediction == certify.Abstain })
		mean(w.String(), certifiedSize, func(f certified) float64 { return f.Found[i].Radius })
	}
	for _, scores := range []bool{false, true} {
		for _, size := range attackSizes {
			rate(attackOn(scores), attackedAccuracy(size), func(f certified) bool { return f.assault(scores).survives(f.Label, size) })
		}
		rate(attackOn(scores), brokenInside, func(f certified) bool { return f.assault(scores).Broken })
		mean(attackOn(scores), smallestAttack, func(f certified) float64 { return f.assault(scores).Smallest })
	}
	return rows
}

// accurate reports whether the true label is certified against attacks up to this size.
func (v verdict) accurate(label int, size float64) bool {
	return v.Prediction == label && v.Radius > size
}

// tableOf has, for each condition and way, abstentions, radius and accuracies at attack sizes, and what attacks leave of it.
func tableOf(rows []run.Row) [][]string {
	head := []string{"MODEL AND NOISE", "CERTIFICATE", "ABSTAINED", "RADIUS (SMALLEST ATTACK)"}
	for _, size := range attackSizes {
		head = append(head, fmt.Sprint(size))
	}
	table := [][]string{head}
	per := len(attackSizes) + 2
	for i := 0; i+per <= len(rows); i += per {
		last, first := rows[i+per-1], rows[i+per-2]
		line := []string{last.Condition, last.Method, fmt.Sprintf("%.3f", first.Mean), fmt.Sprintf("%.3f", last.Mean)}
		if first.Set == brokenInside {
			line[2], line[3] = "", fmt.Sprintf("(%.3f)", last.Mean)
		}
		for _, r := range rows[i : i+len(attackSizes)] {
			line = append(line, fmt.Sprintf("%.3f", r.Mean))
		}
		table = append(table, line)
	}
	return table
}

// reachOf is by how much the smallest attack that succeeds may exceed a certified radius in most digits: an attack that does worse could
// not tell a radius that is too large. In the L1 norm the certificate has to reckon with a function of one pixel; against
// one of all 64 an attack of the same size moves the noise by far less, so that no attack comes as near.
func reachOf(family certify.Family) float64 {
	if family == certify.Laplace {
		return 8
	}
	return 3
}

// comparisons: no attack succeeds inside a radius, attacks outside do, radii come in the order of the papers, and the formulas give
// their published values.
func comparisons(conditions []condition, found []certified, count int) (all []checks.Comparison, err error) {
	for c, condition := range conditions {
		digits := found[c*count : (c+1)*count]
		broken, attacked, reached, reach, nearest := 0, 0, 0, reachOf(condition.noise.Family), math.Inf(1)
		for _, f := range digits {
			for _, a := range []assault{f.Labels, f.Scores} {
				if a.Radius == 0 {
					continue
				}
				attacked++
				if a.Broken {
					broken++
				}
				if a.ratio() <= reach {
					reached++
				}
				nearest = min(nearest, a.ratio())
			}
		}
		all = append(all, checks.Never(fmt.Sprintf("%v: attacks at %v of the certified radius that succeed, of %d", condition, inside, attacked), broken,
			(1-knownPart)*failure/float64(len(conditions)), nearest, tooLarge(nearest)),
			checks.RateAtLeast(fmt.Sprintf("%v: share of certified predictions that an attack within %v radii changes", condition, reach), 0.5, checks.Count{Events: reached, Runs: attacked}))
		all = append(all, orderComparisons(condition, digits)...)
	}
	formulas, err := formulaComparisons()
	return append(all, formulas...), err
}

// orderComparisons compare mean radii of the certificates that have the same bounds of the same draws.
func orderComparisons(c condition, digits []certified) (all []checks.Comparison) {
	every := ways(c.noise.Family)
	radius := func(m certify.Method) float64 {
		for i, w := range every {
			if w.method == m && w.bound == certify.ClopperPearson {
				sum := 0.0
				for _, f := range digits {
					sum += f.Found[i].Radius
				}
				return sum / float64(len(digits))
			}
		}
		return 0
	}
	order := []certify.Method{certify.PixelDP, certify.Renyi, certify.TwoSided}
	if c.noise.Family == certify.Laplace {
		order = []certify.Method{certify.PixelDP, certify.TwoSided}
	}
	for i := 1; i < len(order); i++ {
		all = append(all, checks.NotBelow(fmt.Sprintf("%v: mean radius, %v beside %v, from the same draws", c, order[i], order[i-1]), radius(order[i-1]), radius(order[i])))
	}
	return all
}

//go:embed reference.json
var referenceText []byte

// radii are the functions of dp/certify by their names in the reference.
var radii = map[string]func(top, rest, scale float64) float64{"pixeldp_laplace": certify.PixelDPLaplace, "pixeldp_gaussian": certify.PixelDPGaussian,
	"smoothing_gaussian": certify.SmoothingGaussian, "smoothing_laplace": certify.SmoothingLaplace, "renyi_gaussian": certify.RenyiGaussian}

// formulaError is relative: what maxima over different grids leave, and rounding.
const formulaError = 1e-6

// formulaComparisons are published values, those of the PixelDP and smoothing code for their inputs, and the radii of a separate program for all formulas.
func formulaComparisons() ([]checks.Comparison, error) {
	exact := func(what string, expected, got float64) checks.Comparison {
		return checks.Exactly(what, expected, formulaError*expected, got)
	}
	top, _, _ := certify.ClopperPearson.Ends(9200, 9200, 10_000, 0.005)
	_, rest, _ := certify.ClopperPearson.Ends(400, 400, 10_000, 0.005)
	cohen, _, _ := certify.ClopperPearson.Ends(99_900, 99_900, 100_000, 0.001)
	all := []checks.Comparison{
		exact("PixelDP's radius, Laplace, 9200 and 400 of 10,000 draws, L = 0.1, eps = 1 (its code)", 0.15013514191845664, certify.PixelDPLaplace(top, rest, 0.1)),
		exact("Cohen's radius, 99,900 of 100,000 draws, sigma = 0.25, alpha = 0.001 (its code)", 0.750050247, certify.SmoothingGaussian(cohen, 1-cohen, 0.25)),
	}
	var reference struct {
		Radii []struct {
			Function                 string
			Top, Rest, Scale, Radius float64
		}
	}
	if err := json.Unmarshal(referenceText, &reference); err != nil {
		return nil, fmt.Errorf("experiments: certify: reference: %w", err)
	}
	of := map[string][]checks.Comparison{}
	for _, r := range reference.Radii {
		f, ok := radii[r.Function]
		if !ok {
			return nil, fmt.Errorf("experiments: certify: reference: %s is unknown", r.Function)
		}
		of[r.Function] = append(of[r.Function], exact(fmt.Sprintf("%v and %v, scale %v", r.Top, r.Rest, r.Scale), r.Radius, f(r.Top, r.Rest, r.Scale)))
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, checks.Worst("radius of "+strings.ReplaceAll(name, "_", ", ")+" against a separate program", of[name]))
	}
	return all, nil
}
