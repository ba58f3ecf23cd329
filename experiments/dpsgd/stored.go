package dpsgd

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/experiments/run"
)

//go:embed reference.json
var referenceText []byte

// stored is what reference.py found of one way of training, with most digits.
type stored struct {
	Quick    bool       `json:"quick"`
	Model    string     `json:"model"`
	Method   string     `json:"method"`
	Epsilon  float64    `json:"epsilon"`
	Runs     int        `json:"runs"`
	Training run.Stored `json:"training"`
	Test     run.Stored `json:"test"`
	Gap      run.Stored `json:"gap"`
}

func reference(quick bool, c *cell) (stored, error) {
	var all []stored
	if err := json.Unmarshal(referenceText, &all); err != nil {
		return stored{}, fmt.Errorf("experiments: reference.json: %w", err)
	}
	for _, s := range all {
		if s.Quick == quick && s.Model == c.model.name && s.Method == c.method && s.Epsilon == c.epsilon {
			s.Training.Repetitions, s.Test.Repetitions, s.Gap.Repetitions = s.Runs, s.Runs, s.Runs
			return s, nil
		}
	}
	return stored{}, fmt.Errorf("experiments: reference.json has no %s, %s", c.condition(), c.method)
}

// byHeart is a training accuracy from which on a model knows its digits by heart: it errs on one in a few runs, and has no spread to compare. The gap has its error on others.
const byHeart = 0.999

// storedChecks compare the cells with most digits with the independent program: accuracy on a model's own digits, on others, and the gap between the two.
func (d findings) storedChecks(checks *run.Checks, quick bool) error {
	for _, m := range models(quick) {
		var training, test, gaps []run.Pair
		for _, c := range d {
			if c.model.name != m.name || c.n != d.largest() {
				continue
			}
			s, err := reference(quick, c)
			if err != nil {
				return err
			}
			at := c.method
			if c.method == privateSGD {
				at = fmt.Sprintf("epsilon %v", c.epsilon)
			}
			if s.Training.Mean < byHeart {
				training = append(training, run.Pair{At: at, Values: c.values(func(r outcome) float64 { return r.Training }), Stored: s.Training})
			}
			test = append(test, run.Pair{At: at, Values: c.values(func(r outcome) float64 { return r.Test }), Stored: s.Test})
			gaps = append(gaps, run.Pair{At: at, Values: c.gaps(), Stored: s.Gap})
		}
		checks.Stored(m.name+": "+digitsTraining+" (NumPy)", training)
		checks.Stored(m.name+": "+digitsTest+" (NumPy)", test)
		checks.Stored(m.name+": "+gap+" (NumPy)", gaps)
	}
	return nil
}
