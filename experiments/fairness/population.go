package fairness

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/experiments/tables"
)

// subgroupAirports are where the flights of the subgroup leave from. The model, which knows the hour alone, is right about half of them: in the west of the country
// delays have another course over the day.
var subgroupAirports = []string{"PHX", "LAS", "SEA", "SJC"}

// elsewhere is the rule of a flight that is not in the subgroup.
const elsewhere = -1

// population is the demo's flights, with what the model makes of them.
type population struct {
	rule  []int16 // of each flight: which rule is about it, or elsewhere
	right []bool  // whether the model is, about each flight
	whole part    // every flight once
}

// flights are the population, made once. The model says "late" in the hours in which most flights are. A rule is about the flights of the subgroup in one hour of one weekday;
// rules are in the order of how many flights they are about, most first.
var flights = sync.OnceValues(func() (*population, error) {
	f, err := tables.Flights()
	if err != nil {
		return nil, err
	}
	rows, err := tables.FlightRows()
	if err != nil {
		return nil, err
	}
	origin, known := rows.Lookup("origin")
	if !known || len(origin.Codes) != f.Rows() {
		return nil, errors.New("experiments: the flights lack their origin")
	}
	west := map[uint32]bool{}
	for _, airport := range subgroupAirports {
		code, known := origin.Dictionary.Find(airport)
		if !known {
			return nil, errors.New("experiments: no flight leaves from " + airport)
		}
		west[code] = true
	}
	late := func(i int) bool { return f.Delay[i] > 0 }
	var count, lateCount [24]int
	for i, hour := range f.Hour {
		if count[hour]++; late(i) {
			lateCount[hour]++
		}
	}
	p := &population{rule: make([]int16, f.Rows()), right: make([]bool, f.Rows())}
	cell := func(i int) int { return f.Weekday[i]*24 + f.Hour[i] }
	about := make([]int, 7*24)
	for i, hour := range f.Hour {
		p.right[i] = late(i) == (2*lateCount[hour] > count[hour])
		if west[origin.Codes[i]] {
			about[cell(i)]++
		}
	}
	var cells []int
	for c, flown := range about {
		if flown > 0 {
			cells = append(cells, c)
		}
	}
	slices.SortFunc(cells, func(a, b int) int { return cmp.Or(about[b]-about[a], a-b) })
	for i := range p.rule {
		if p.rule[i] = elsewhere; west[origin.Codes[i]] {
			p.rule[i] = int16(slices.Index(cells, cell(i)))
		}
	}
	p.whole = p.newPart(len(p.rule), len(cells), func(i int) (int, bool) { return i, p.right[i] })
	return p, nil
})

// rules is how many rules there are.
func (p *population) rules() int { return len(p.whole.right) }

// part is the training part or the holdout, counted: rules do not overlap, so that no more is asked of it.
type part struct {
	n            int64
	right, wrong []int64 // by rule: flights that the model is right about, and wrong
	members      int64   // of the subgroup
	othersRight  int64   // flights of others that the model is right about
}

// newPart counts n flights. of says which flight of the population each is, and whether the model is right about it.
func (p *population) newPart(n, rules int, of func(i int) (row int, right bool)) part {
	out := part{n: int64(n), right: make([]int64, rules), wrong: make([]int64, rules)}
	for i := range n {
		row, right := of(i)
		switch rule := p.rule[row]; {
		case rule == elsewhere && right:
			out.othersRight++
		case rule == elsewhere:
		case right:
			out.right[rule]++
			out.members++
		default:
			out.wrong[rule]++
			out.members++
		}
	}
	return out
}

// draw takes n flights with replacement. Where the subgroup's labels are coins, the model is right about a flight of it as a coin falls, whatever a rule makes of it.
func (p *population) draw(seed uint64, n int, coins bool) part {
	r := rand.New(rand.NewPCG(seed, 0))
	return p.newPart(n, p.rules(), func(int) (int, bool) {
		row := r.IntN(len(p.rule))
		if coins && p.rule[row] != elsewhere {
			return row, r.Uint64()&1 == 1
		}
		return row, p.right[row]
	})
}

// hits is how many flights of the subgroup the model is right about when it decides the other way by these rules.
func (p *part) hits(turned []bool) (count int64) {
	for rule, other := range turned {
		if other {
			count += p.wrong[rule]
		} else {
			count += p.right[rule]
		}
	}
	return count
}

// truth is what is so in the population.
type truth struct {
	share    float64   // of the subgroup among all flights
	others   float64   // accuracy for all others
	about    []float64 // by rule: its share of the subgroup
	accuracy []float64 // by rule: of the model as it is
}

// truth of the flights as they are, or with coins for the subgroup's labels.
func (p *population) truth(coins bool) truth {
	w := p.whole
	t := truth{share: float64(w.members) / float64(w.n), others: float64(w.othersRight) / float64(w.n-w.members)}
	for rule, right := range w.right {
		flown := float64(right + w.wrong[rule])
		t.about = append(t.about, flown/float64(w.members))
		if coins {
			t.accuracy = append(t.accuracy, 0.5)
		} else {
			t.accuracy = append(t.accuracy, float64(right)/flown)
		}
	}
	return t
}

// turned is the subgroup's accuracy when the model decides the other way by these rules.
func (t truth) turned(turned []bool) (accuracy float64) {
	for rule, other := range turned {
		if other {
			accuracy += t.about[rule] * (1 - t.accuracy[rule])
		} else {
			accuracy += t.about[rule] * t.accuracy[rule]
		}
	}
	return accuracy
}
