package expr_test

import (
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
)

var schema = dataset.Schema{Fields: []dataset.Field{
	{Name: "delay", Kind: dataset.Number},
	{Name: "air time", Kind: dataset.Number},
	{Name: "origin", Kind: dataset.Text},
}}

func Example() {
	s, err := expr.Parse(`15.0 < delay && origin in ['SFO', 'OAK'] && col("air time") != null`)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Canonical())
	n, err := s.CheckCondition(schema)
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Type, "of", len(n.Args), "parts")
	// Output:
	// (col("air time") != null) && (delay > 15) && (origin in ["OAK", "SFO"])
	// a condition of 3 parts
}

func ExampleError() {
	s, err := expr.Parse("delay > 0 && dealy < 60")
	if err != nil {
		panic(err)
	}
	_, err = s.Check(schema)
	var e *expr.Error
	if errors.As(err, &e) {
		fmt.Println(e.Caret())
	}
	// Output:
	// delay > 0 && dealy < 60
	//              ^ unknown column "dealy"; did you mean delay?
}
