package session

import (
	"context"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// watched is a source that says which units were read.
type watched struct {
	Source
	read [][2]int64
}

func (w *watched) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	w.read = append(w.read, [2]int64{from, to})
	return w.Source.Sums(ctx, functions, from, to)
}

func (w *watched) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	w.read = append(w.read, [2]int64{from, to})
	return w.Source.Moments(ctx, batch, from, to)
}

// TestSlicesAreQuestions: under split a question that is more than a mean costs one slice, is read there by its own sample and nowhere else of the holdout, and says what these units have; one of items a slice for
// each. It would notice a slice that two questions read, a question that is read from another's units or from all, and one that still costs as many as the means that it is made of.
func TestSlicesAreQuestions(t *testing.T) {
	const rows, questions = 2400, 12
	schema, holdout := grouped(t, 8, rows, false, someLate)
	_, training := grouped(t, 9, 2*rows, false, someLate)
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Split, N: rows, Training: 2 * rows, Questions: questions})
	if err != nil {
		t.Fatal(err)
	}
	seen := &watched{Source: holdout}
	l := &Local{Session: Session{Guarantee: g, Noise: Seeded(1)}, Schema: schema, Holdout: seen, Training: training}
	slice, done := g.N/questions, int64(0)
	for _, c := range []struct {
		query string
		cost  int64
		bound string
	}{
		{`{"type":"mean","of":"x","range":[0,1],"where":"late"}`, 1, thresholdout.MethodSample},
		{`{"type":"fraction","of":"late"}`, 1, thresholdout.MethodCounts},
		{`{"type":"difference","of":"x","range":[0,1],"between":["late"]}`, 1, thresholdout.MethodSample},
		{`{"type":"median","of":"x","range":[0,1],"resolution":0.01}`, 1, thresholdout.BoundOrder},
		{`{"type":"auc","label":"late","prediction":"score","edges":[0,0.2,0.4,0.6,0.8,1]}`, 1, thresholdout.BoundSamplePairs},
		{`{"type":"variance","of":"x","range":[0,1]}`, 1, thresholdout.MethodSample},
		{`{"type":"kendall","x":"x","y":"score","edges_x":[0.2,0.5,0.7],"edges_y":[0.4,0.6]}`, 1, thresholdout.BoundSamplePairs},
		{`{"type":"groups","of":"x","range":[0,1],"by":"g","values":["a","b","c"]}`, 5, thresholdout.MethodSample},
	} {
		seen.read = nil
		q, err := queries.Parse([]byte(c.query))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := q.Compile(context.Background(), schema)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := l.Play(context.Background(), q, plan)
		if err != nil {
			t.Fatal(c.query, err)
		}
		if answer.Cost.Questions != c.cost || l.State.Questions != done+c.cost || answer.Interval.Bound != c.bound || answer.Source != thresholdout.FromHoldout {
			t.Errorf("%s: cost %+v, bound %s, source %s", c.query, answer.Cost, answer.Interval.Bound, answer.Source)
		}
		for i, units := range seen.read {
			if from := done * slice; units[0] < from || units[1] > from+c.cost*slice || c.cost > 1 && units != [2]int64{from + int64(i)*slice, from + int64(i+1)*slice} {
				t.Errorf("%s: units %v were read, its slices are from %d on", c.query, units, from)
			}
		}
		if c.cost == 1 && plan.Equation() != nil { // what the slice says of a root
			e := plan.Equation()
			sums, err := read(context.Background(), sliceOf{holdout, done * slice, (done + 1) * slice}, []*queries.Plan{plan.AsChecked()}, lastPart)
			if err != nil {
				t.Fatal(err)
			}
			if v, _ := sums[0].Statistics[0].Value(); answer.Value == nil || *answer.Value < e.Range.Low+v*(e.Range.High-e.Range.Low)-1e-8 || *answer.Value > e.Range.Low+v*(e.Range.High-e.Range.Low)+1e-8 {
				t.Errorf("%s: %v, the slice has %v", c.query, *answer.Value, v)
			}
		}
		done += c.cost
	}
}

// TestSlicesForeseen: explain's preview of a question of split is about a slice: about as wide as the answer, and its value is the training part's, however many units that has.
func TestSlicesForeseen(t *testing.T) {
	const rows, questions = 2400, 4
	schema, holdout := grouped(t, 18, rows, false, someLate)
	_, training := grouped(t, 19, 3*rows, false, someLate)
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Split, N: rows, Training: 3 * rows, Questions: questions})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"type":"mean","of":"x","range":[0,1]}`,
		`{"type":"mean","of":"x","range":[0,1],"where":"late"}`,
		`{"type":"difference","of":"x","range":[0,1],"between":["late"]}`,
		`{"type":"variance","of":"x","range":[0,1]}`,
		`{"type":"median","of":"x","range":[0,1],"resolution":0.01}`,
	} {
		l := &Local{Session: Session{Guarantee: g, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
		query, err := queries.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := query.Compile(context.Background(), schema)
		if err != nil {
			t.Fatal(err)
		}
		q, err := l.Question(query, plan)
		if err != nil {
			t.Fatal(err)
		}
		known, err := TrainingSums(context.Background(), l.Played(l.State, q.Plan), Reference{Training: training})
		if err != nil {
			t.Fatal(err)
		}
		foreseen, err := l.Preview(l.State, q, known)
		if err != nil {
			t.Fatal(err)
		}
		has, err := l.Session.Training(q.Plan, known)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := l.Play(context.Background(), query, plan)
		if err != nil {
			t.Fatal(err)
		}
		r := foreseen.Result
		width, got := *r.High-*r.Low, *answer.Interval.High-*answer.Interval.Low
		if away := *r.Value - *has.Value; away > 1e-6 || away < -1e-6 || got > 1.3*width || width > 1.3*got || foreseen.Bound != answer.Interval.Bound {
			t.Errorf("%s: foreseen %v in [%v, %v] by %s; the training part has %v, the answer [%v, %v] by %s", text, *r.Value, *r.Low, *r.High, foreseen.Bound, *has.Value,
				*answer.Interval.Low, *answer.Interval.High, answer.Interval.Bound)
		}
	}
}
