package session

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Prospect is one way in which a question's answer can come out, with its price: known from public facts and the training part, before a row of the holdout is read.
type Prospect struct {
	Outcome thresholdout.Outcome
	Cost    Cost // Tokens is what an answer with this outcome spends; of [Mixed], at most
	// HalfWidth is the planned half-width: of the answer with this outcome if the holdout is about as the training part is. It is in the query's own units, of items the
	// widest; nil where there is none, as of a choice.
	HalfWidth *float64
	// Widest is the widest half-width: no answer with this outcome in this state has a wider one. Nil where nothing is known.
	Widest *float64
	// Report is [thresholdout.Guarantee.ReportWidth] after such an answer; nil of [Mixed], and where there is no report.
	Report *float64
}

// Mixed is the outcome of an answer of several numbers that came out differently.
const Mixed = mixed

// roundingUp is more than what interval arithmetic adds to a half-width beside the width of its parts.
const roundingUp = 1e-9

// Prospects are the ways in which an answer in this state can come out, the likeliest first. training is what the training part says to the plan, or none where the mechanism does not
// compare with it: then planned half-widths are about the middle, where intervals are widest. Errors are *[NarrowError] where the question's own half_width cannot pass.
//
// unknown is how many numbers of an answer would say nothing, since the reference has too few rows of them, or none: each is paid with its question, and needs no token.
func (s *Session) Prospects(state thresholdout.State, q *Question, training PartSums) (all []Prospect, unknown int64, err error) {
	likeliest, err := s.suppose(state, q, training, "")
	if err != nil {
		return nil, 0, err
	}
	if !training.None() && s.Guarantee.NeedsTokens() {
		unknown = likeliest.unknown()
	}
	for _, outcome := range likeliest.outcomes() {
		path := likeliest
		if outcome != likeliest.pure() {
			if path, err = s.suppose(state, q, training, outcome); err != nil {
				return nil, 0, err
			}
		}
		if path.pure() == outcome {
			all = append(all, s.prospect(path, outcome))
		}
	}
	if len(likeliest.seen) > 1 && len(likeliest.came) > 1 {
		all = append(all, s.mixed(likeliest, all))
	}
	return all, unknown, nil
}

// prospect is the answer of a path on which every number came out so.
func (s *Session) prospect(path *supposing, outcome thresholdout.Outcome) Prospect {
	p := Prospect{Outcome: outcome, Cost: path.cost(), HalfWidth: farthest(path.result)}
	if report, ok := s.Guarantee.ReportWidth(path.state); ok {
		p.Report = &report
	}
	if widest := reached(path.result); path.exact && widest != nil {
		p.Widest = widest
		return p
	}
	p.Widest = path.reach(func(i int) float64 { return path.widths[i] })
	return p
}

// mixed is the answer whose numbers came out in different ways.
func (s *Session) mixed(path *supposing, pure []Prospect) Prospect {
	p := Prospect{Outcome: Mixed, Cost: path.cost()}
	p.Cost.Tokens = s.Guarantee.Tokens - path.begun.Tokens
	if most := s.MostTokens(path.q.Plan) - path.unknown(); most < p.Cost.Tokens {
		p.Cost.Tokens = most
	}
	for _, one := range pure {
		if one.HalfWidth != nil && (p.HalfWidth == nil || *one.HalfWidth > *p.HalfWidth) {
			p.HalfWidth = one.HalfWidth
		}
	}
	p.Widest = path.reach(func(i int) float64 { return path.mixed[i] })
	return p
}

// reached is farthest, and of what has no value half of its interval, where that is more.
func reached(r queries.Result) *float64 {
	all := queries.Result{Value: centered(r.Value, r.Low, r.High), Low: r.Low, High: r.High}
	for _, i := range r.Items {
		i.Value = centered(i.Value, i.Low, i.High)
		all.Items = append(all.Items, i)
	}
	return farthest(all)
}

// centered is a value, or the middle of an interval where there is none.
func centered(value, low, high *float64) *float64 {
	if value != nil || low == nil || high == nil {
		return value
	}
	middle := *low + (*high-*low)/2
	return &middle
}

// farthest is how far an end of a result's interval is from its value, of items over all of them; nil where there is no interval.
func farthest(r queries.Result) *float64 {
	var widest *float64
	see := func(value, low, high *float64) {
		if value == nil || low == nil || high == nil {
			return
		}
		if half := max(*high-*value, *value-*low); widest == nil || half > *widest {
			widest = &half
		}
	}
	if len(r.Items) == 0 {
		see(r.Value, r.Low, r.High)
	}
	for _, i := range r.Items {
		see(i.Value, i.Low, i.High)
	}
	return widest
}

// supposing releases a question's numbers as if each came out in one way.
type supposing struct {
	previewing
	begun thresholdout.State
	plan  *queries.Plan
	want  thresholdout.Outcome // of every number; "": the likeliest

	pledge  *thresholdout.Pledge
	seen    []thresholdout.Outcome // that some number can have
	came    []thresholdout.Outcome // that each had on this path
	exact   bool                   // every answer on this path is this one
	numbers int
	widths  []float64 // of each number on this path, at most
	mixed   []float64 // of each number on any path, at most
	ahead   thresholdout.Ahead
	result  queries.Result
}

// suppose plays a question along a path.
func (s *Session) suppose(state thresholdout.State, q *Question, training PartSums, want thresholdout.Outcome) (*supposing, error) {
	f := &supposing{previewing: previewing{guarantee: s.Guarantee, state: state, q: q, training: training, price: s.Price(q.Plan).Questions},
		begun: state, plan: s.Played(state, q.Plan), want: want, exact: true}
	if s.Guarantee.ChecksPromises(state) {
		f.pledge = s.Pledge(state, q, training)
	}
	outcome, err := f.plan.Release(s.Guarantee.N, f)
	if err != nil {
		return nil, s.narrow(err, state, q, training)
	}
	f.result = f.plan.Combine(outcome)
	return f, nil
}

// unknown is how many numbers nothing will be known of: they need no token.
func (f *supposing) unknown() int64 { return int64(f.numbers - len(f.came)) }

// outcomes are those that some number can have; unknown is none of them unless nothing is known of any.
func (f *supposing) outcomes() []thresholdout.Outcome {
	if len(f.seen) == 0 && f.numbers > 0 {
		return []thresholdout.Outcome{thresholdout.Unknown}
	}
	return f.seen
}

// pure is the outcome of all numbers of which something is known, if it is one.
func (f *supposing) pure() thresholdout.Outcome {
	if len(f.came) == 0 {
		return thresholdout.Unknown
	}
	for _, came := range f.came {
		if came != f.came[0] {
			return Mixed
		}
	}
	return f.came[0]
}

// cost is what the answer spends on this path.
func (f *supposing) cost() Cost {
	c := Cost{Questions: f.price, Tokens: f.state.Tokens - f.begun.Tokens}
	if f.guarantee.Rounds > 0 && f.begun.InRound == 0 {
		c.Rounds = 1
	}
	if f.guarantee.HasTokens() {
		c.Tokens = min(c.Tokens, f.guarantee.Tokens-f.begun.Tokens)
	}
	return c
}

// reach is the widest half-width of the answer, of numbers with these widths; nil where nothing is known.
func (f *supposing) reach(width func(i int) float64) *float64 {
	if len(f.widths) == 0 { // a choice
		return nil
	}
	widest := min(f.plan.Reach(f.guarantee.N, width)*(1+roundingUp), f.plan.Reach(f.guarantee.N, func(int) float64 { return math.Inf(1) }))
	if math.IsInf(widest, 0) || math.IsNaN(widest) || !f.bounded() {
		return nil
	}
	return &widest
}

// bounded reports whether answers have intervals at all.
func (f *supposing) bounded() bool {
	return f.bound != "" || f.guarantee.TakesSubmissions()
}

// see notes what a number can be, and how it came out.
func (f *supposing) see(came thresholdout.Outcome, width, anyhow float64, exact bool) {
	if came != thresholdout.Unknown {
		if !slices.Contains(f.seen, came) {
			f.seen = append(f.seen, came)
		}
		f.came = append(f.came, came)
	}
	f.exact = f.exact && exact
	f.widths, f.mixed = append(f.widths, width), append(f.mixed, anyhow)
}

// Number implements queries.Releaser.
func (f *supposing) Number(function int) (queries.Part, error) {
	f.numbers++
	if f.training.Statistics != nil && (!f.guarantee.ChecksStatistics() || f.state.Reporting()) {
		part, err := f.foreseeLast(function)
		if err != nil {
			return part, err
		}
		f.see(thresholdout.Measured, f.guarantee.WidestLast(f.state, f.bound, f.price, len(f.training.Statistics)), math.Inf(1), false)
		return part, nil
	}
	in := thresholdout.ProspectInput{Value: f.mean(function), Pledge: f.pledge}
	switch {
	case f.training.Statistics != nil:
		in.Training, in.Guess = f.training.Statistics[function], f.q.guessOf(function, f.training)
	case f.guarantee.TakesGuesses():
		in.Training, in.Guess = f.training.Means[function], f.q.guessOf(function, f.training)
	}
	ways, err := f.guarantee.Prospects(f.state, in)
	if err != nil {
		return queries.Part{}, err
	}
	anyhow, ahead := math.Inf(1), f.ahead
	if f.want == "" && f.plan.Numbers() > 1 {
		if anyhow, ahead, err = f.guarantee.WidestAfter(f.begun, in, f.ahead); err != nil {
			return queries.Part{}, err
		}
	}
	f.ahead = ahead
	way := ways[0]
	for _, w := range ways {
		if f.want == "" && w.Outcome != thresholdout.Unknown && !slices.Contains(f.seen, w.Outcome) {
			f.seen = append(f.seen, w.Outcome)
		}
		if w.Outcome == f.want {
			way = w
		}
	}
	interval, widest := way.Planned()
	if f.training.None() && f.plan.Checked() && f.plan.Affine() == nil { // a sample of which nothing is known beforehand
		widest, way.Exact = math.Inf(1), false
	}
	f.see(way.Outcome, widest, anyhow, way.Exact)
	f.state = f.guarantee.Suppose(f.state, way)
	part := queries.Part{Value: way.Value}
	if i := interval; i != nil {
		f.bound = i.Bound
		part.Low, part.High, part.Bounded = i.Low, i.High, true
	}
	return part, nil
}

// Vector implements queries.Releaser.
func (f *supposing) Vector(first, count int, variance float64) ([]queries.Part, error) {
	if f.guarantee.AsNumbers(f.state, count, variance) {
		return queries.OneByOne(first, count, f.Number)
	}
	width, _, err := f.guarantee.PreviewVector(f.state, count, variance)
	if err != nil {
		return nil, err
	}
	for range count {
		f.see(thresholdout.Measured, width, width, false)
	}
	return f.previewing.Vector(first, count, variance)
}

// Select implements queries.Releaser.
func (f *supposing) Select(first, count int, questions int64) (queries.Choice, error) {
	f.seen, f.came, f.exact = append(f.seen, thresholdout.Selected), append(f.came, thresholdout.Selected), false
	return f.previewing.Select(first, count, questions)
}

// ReadProspect is what is known of an answer that was recorded: its outcome and its half-width, at no price. An error says that the bytes are no answer.
func ReadProspect(a *Answer) (Prospect, error) {
	if a.Version < AnswerVersion {
		return Prospect{}, fmt.Errorf("session: an answer of version %d", a.Version)
	}
	var r queries.Result
	r.Value = a.Value
	if a.Interval != nil {
		r.Low, r.High = a.Interval.Low, a.Interval.High
	}
	for _, i := range a.Items {
		r.Items = append(r.Items, queries.Item{Of: i.Of, Value: i.Value, Low: i.Low, High: i.High})
	}
	p := Prospect{Outcome: a.Outcome, HalfWidth: farthest(r)}
	p.Widest = p.HalfWidth
	return p, nil
}
