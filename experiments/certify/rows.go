package certify

import (
	"fmt"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
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

// checksOf: no attack succeeds inside a radius, attacks outside do, and radii come in the order of the papers.
func checksOf(checks *run.Checks, all []condition, found []certified, count int) {
	for c, condition := range all {
		digits := found[c*count : (c+1)*count]
		broken, attacked, reached, reach := 0, 0, 0, reachOf(condition.noise.Family)
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
			}
		}
		checks.Stated(failure/float64(len(all)), run.Check{What: fmt.Sprintf("%v: attacks at %v of the certified radius that succeed, of %d", condition, inside, attacked),
			Got: float64(broken), Low: float64(broken), High: float64(broken), Agrees: broken == 0, Criterion: "none",
			Notices: fmt.Sprintf("radii %v times too large, of half of the digits", reach)})
		changed := run.Row{Mean: float64(reached) / float64(max(1, attacked)), Repetitions: max(1, attacked), Rate: true}
		changed.Low, changed.High = run.RateInterval(int64(reached), int64(attacked), 0.05)
		checks.AtLeast(fmt.Sprintf("%v: share of certified predictions that an attack within %v radii changes", condition, reach), 0.5, changed)
		orderChecks(checks, condition, digits)
	}
}

// orderChecks compare mean radii of the certificates that have the same bounds of the same draws.
func orderChecks(checks *run.Checks, c condition, digits []certified) {
	all := ways(c.noise.Family)
	radius := func(m certify.Method) run.Row {
		for i, w := range all {
			if w.method == m && w.bound == certify.ClopperPearson {
				return run.Measured(run.Row{}, digits, func(f certified) float64 { return f.Found[i].Radius })
			}
		}
		return run.Row{}
	}
	order := []certify.Method{certify.PixelDP, certify.Renyi, certify.TwoSided}
	if c.noise.Family == certify.Laplace {
		order = []certify.Method{certify.PixelDP, certify.TwoSided}
	}
	for i := 1; i < len(order); i++ {
		small, large := radius(order[i-1]), radius(order[i])
		checks.Stated(0, run.Check{What: fmt.Sprintf("%v: mean radius, %v beside %v", c, order[i], order[i-1]), Expected: small.Mean,
			Got: large.Mean, Low: large.Low, High: large.High, Criterion: "not smaller; exact, both come from the same draws", Agrees: large.Mean >= small.Mean,
			Notices: fmt.Sprintf("radii %.3g times too large or too small", large.Mean/small.Mean)})
	}
}
