package featuresel_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/featuresel"
	"github.com/holdoutd/holdoutd/session"
)

// Columns and labels of pure noise: a classifier that is selected with the holdout's own numbers looks good on that holdout. Asked
// through Thresholdout, the holdout keeps quiet about its noise.
func Example() {
	const rows, columns = 2000, 500
	r := rand.New(rand.NewPCG(1, 2))
	noise := func() featuresel.Table {
		t := featuresel.Table{X: make([][]float64, columns), Y: make([]float64, rows)}
		for i := range t.Y {
			t.Y[i] = float64(2*r.IntN(2) - 1)
		}
		for j := range t.X {
			t.X[j] = make([]float64, rows)
			for i := range t.X[j] {
				t.X[j][i] = r.NormFloat64()
			}
		}
		return t
	}
	training, holdout := noise(), noise()
	params, err := featuresel.Science2015(rows, rows, 2*columns)
	if err != nil {
		panic(err)
	}
	correlations := featuresel.Correlations(training)
	for name, oracle := range map[string]featuresel.Oracle{
		"exact":        featuresel.Exact{Data: holdout},
		"thresholdout": &featuresel.Holdout{Simulated: session.Simulated{Guarantee: params, Seed: 3}, Training: training, Holdout: holdout},
	} {
		chosen, _, err := featuresel.Published(context.Background(), oracle, correlations, 0.0224, []int{20})
		if err != nil {
			panic(err)
		}
		accuracy, err := featuresel.Exact{Data: holdout}.Accuracy(context.Background(), chosen.First(20))
		if err != nil {
			panic(err)
		}
		fmt.Println(name, "flatters itself:", accuracy > 0.55)
	}
	// Unordered output:
	// exact flatters itself: true
	// thresholdout flatters itself: false
}
