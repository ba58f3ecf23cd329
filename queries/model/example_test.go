package model_test

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/model"
)

// A model is read once, says which columns it reads, and predicts a row from these numbers in that order.
func Example() {
	m, err := model.Parse([]byte(`{"linear":{"intercept":-1,"weights":{"distance":0.001,"origin":{"SFO":0.5}},"link":"logit"}}`))
	if err != nil {
		panic(err)
	}
	for _, f := range m.Features() {
		fmt.Println(f.Column, f.Texts)
	}
	fmt.Printf("%.3f\n", m.Predict([]float64{800, 0.5})[0]) // 800 miles from SFO
	// Output:
	// distance map[]
	// origin map[SFO:0.5]
	// 0.574
}
