package prints

import (
	"math"
)

// Alarm is at most the probability that an upload of fresh rows, which are drawn as those of an earlier table were, is taken for one with rows of any earlier table.
const Alarm = 1e-6

// MinRows is how many rows of a part's sample have to be in a part of the upload before that is said; of samples of fewer than a few more it is four fifths. It keeps an
// upload of a few rows from telling whether these are among the rows that are held out.
const MinRows = 16

// levels are shares of a row's weight, ascending: how much of it another row must have to agree with it. The first finds rows of which columns were dropped, in tables whose rows differ much; the
// last finds rows of tables where rows are much alike by chance.
var levels = [...]float32{0.6, 0.75, 0.9}

// ownMargin is how much lower the level is at which chance is counted in the upload.
const ownMargin = 0.15

// wayAlarm is at most the probability that one way of a table that was recognised is only chance.
const wayAlarm = 1e-3

// A Recognition says that an upload has rows of an earlier table.
type Recognition struct {
	Earlier int // which of the tables
	Ways    []Way
}

// A Way is rows of a part of an earlier table that are in a part of the upload.
type Way struct {
	From, To int
	Share    float64 // of the part From: an estimate, chance taken off
}

// maxIndexed bounds how many tokens of samples are in memory at a time; with them the upload is read once more.
const maxIndexed = 4 << 20

// Recognise compares all rows of an upload, in its parts, with the samples of earlier tables. load reads the prints of one of n tables when it is their turn; nil are none.
//
// Let b be how many rows of a table's sample agree with a row of the upload, which has n rows. If the upload is a fresh sample of the same population, chance is as large as it is at home, in either of them:
//
//   - c rows of the sample agree with one of the N rows of their own table that are not sampled. Beside the sample, these and the n fresh ones are alike. So of b+c agreements each is one of the b with probability m/(1+m) at most, m = max(1, n/N).
//   - c' of the r' rows of the upload's own sample agree with one of its rows that are not sampled. Of two samples of one size, which have the same rows to agree with, the agreements are alike: of b+c' each is one of the b with
//     probability r/(r+r'). They are counted at a level lower by ownMargin, because tokens weigh a little otherwise in another sample.
//
// The table is recognised where one of the two binomial tails is at most Alarm, divided by their number, that of the levels and that of the tables. The first is for tables that come again as they are, or in part; the second knows
// a table that is a small part of a larger one.
func Recognise(n int, load func(i int) (*Prints, error), upload []*Rows, own *Prints) ([]Recognition, error) {
	var found []Recognition
	var group []*Prints
	var numbers []int
	size := 0
	flush := func() {
		if len(group) > 0 {
			found = append(found, recognise(group, numbers, n, upload, own)...)
		}
		group, numbers, size = nil, nil, 0
	}
	for i := range n {
		p, err := load(i)
		if err != nil {
			return nil, err
		}
		if p == nil || len(p.rows) == 0 {
			continue
		}
		group, numbers = append(group, p), append(numbers, i)
		for _, r := range p.rows {
			size += len(r.tokens)
		}
		if size >= maxIndexed {
			flush()
		}
	}
	flush()
	return found, nil
}

func recognise(group []*Prints, numbers []int, n int, upload []*Rows, own *Prints) (found []Recognition) {
	x := newIndex(group...)
	best := make([][]float32, len(upload)) // for each part of the upload, of each row of the samples
	for j, part := range upload {
		best[j] = make([]float32, len(x.rows))
		if part != nil {
			x.seek(part, nil, best[j])
		}
	}
	first := 0
	for k, p := range group {
		m := max(1, float64(own.rest+own.sampled)/max(1, float64(p.rest)))
		both := int64(min(p.sampled, own.sampled))
		r, ownRows := p.first(both, 0), own.first(both, 0)
		var most *tally
		for _, level := range levels {
			t := &tally{}
			for i := range p.rows {
				t.add(&p.rows[i], level, both, func(part int) bool {
					return part < len(best) && best[part][first+i] >= level*x.rows[first+i].total
				})
			}
			least := min(tail(t.hits, t.chance, m/(1+m)), tail(t.early, own.first(both, level-ownMargin), float64(r)/float64(max(1, r+ownRows))))
			if least <= Alarm/float64(2*len(levels)*n) && (most == nil || t.hits-t.chance > most.hits-most.chance) {
				most = t
			}
		}
		first += len(p.rows)
		if most != nil {
			found = append(found, Recognition{Earlier: numbers[k], Ways: most.ways()})
		}
	}
	return found
}

// first is how many of the first rows of the sample are kept, and agree at a level with one that is not sampled; at level 0 all of them.
func (p *Prints) first(places int64, level float32) (n int) {
	for i := range p.rows {
		if int64(p.rows[i].place) < places && p.rows[i].chance >= level {
			n++
		}
	}
	return n
}

// tally counts agreements at one level.
type tally struct {
	hits, chance int // rows of the sample
	early        int // hits among its first rows
	parts        [MaxParts]struct {
		rows, chance int
		in           [MaxParts]int
	}
}

func (t *tally) add(r *printed, level float32, first int64, hit func(part int) bool) {
	p := &t.parts[r.part]
	p.rows++
	if r.chance >= level {
		t.chance++
		p.chance++
	}
	any := false
	for j := range p.in {
		if hit(j) {
			p.in[j]++
			any = true
		}
	}
	if any {
		t.hits++
		if int64(r.place) < first {
			t.early++
		}
	}
}

// ways says which parts are in which.
func (t *tally) ways() (ways []Way) {
	for i := range t.parts {
		p := &t.parts[i]
		for j, hits := range p.in {
			excess := hits - p.chance
			if excess >= min(MinRows, (4*p.rows+4)/5) && excess > 0 && tail(hits, p.chance, 0.5) <= wayAlarm {
				ways = append(ways, Way{From: i, To: j, Share: float64(excess) / float64(p.rows-p.chance)})
			}
		}
	}
	return ways
}

// tail is P(Bin(hits+chance, p) >= hits).
func tail(hits, chance int, p float64) float64 {
	n := hits + chance
	all, _ := math.Lgamma(float64(n) + 1)
	sum := 0.0
	for k := hits; k <= n; k++ {
		a, _ := math.Lgamma(float64(k) + 1)
		b, _ := math.Lgamma(float64(n-k) + 1)
		sum += math.Exp(all - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return min(1, sum)
}
