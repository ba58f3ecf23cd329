package queries_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
)

var flights = dataset.Schema{Fields: []dataset.Field{
	{Name: "delay", Kind: dataset.Number},
	{Name: "origin", Kind: dataset.Text},
}}

// A conditional mean is made of two row functions: the place of the value in its range, and what it lacks to 1, in the rows that are
// asked about. So it costs two questions.
func Example() {
	q, err := queries.Parse([]byte(`{"type":"mean","of":"delay","range":[-60,180],"where":"origin == 'SFO'"}`))
	if err != nil {
		panic(err)
	}
	p, err := q.Compile(context.Background(), flights)
	if err != nil {
		panic(err)
	}
	d := p.Describe()
	fmt.Println(d.Target)
	fmt.Println("costs", p.Numbers())

	// What the mechanism released: the two means with intervals that hold together.
	r := p.Combine(queries.Outcome{N: 100_000, Parts: []queries.Part{
		{Value: 0.0145, Low: 0.014, High: 0.015, Bounded: true},
		{Value: 0.0355, Low: 0.035, High: 0.036, Bounded: true},
	}})
	fmt.Printf("%.2f in [%.2f, %.2f]\n", *r.Value, *r.Low, *r.High)
	// Output:
	// the mean of delay clamped to [-60, 180] over the rows in which origin == "SFO", in the population that the rows were drawn from
	// costs 2
	// 9.60 in [7.20, 12.00]
}

// All spellings of a question have one ID.
func ExampleQuery_ID() {
	for _, body := range []string{
		`{"type":"fraction","of":"delay > 15 && origin == 'SFO'"}`,
		`{"of": "(\"SFO\" == origin) && 1.5e1 < delay", "note": "again", "type": "fraction"}`,
	} {
		q, err := queries.Parse([]byte(body))
		if err != nil {
			panic(err)
		}
		fmt.Println(q.ID()[:20], string(q.Canonical()))
	}
	// Output:
	// sha256:d59de6527d24c {"of":"(delay > 15) && (origin == \"SFO\")","type":"fraction"}
	// sha256:d59de6527d24c {"of":"(delay > 15) && (origin == \"SFO\")","type":"fraction"}
}

// Errors point to the place and hold everything that is wrong.
func ExampleError() {
	_, err := queries.Parse([]byte(`{"type":"mean","of":"delay","range":[180,-60],"were":"origin == 'SFO'"}`))
	var e *queries.Error
	if errors.As(err, &e) {
		for _, v := range e.Violations {
			fmt.Printf("%s: %.40s (%s)\n", v.Pointer, v.Detail, v.Suggestion)
		}
	}
	// Output:
	// /range: the first number must be less than the s ()
	// /were: unknown member; a mean has type, of, ran (where)
}
