//go:build python

package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/tests/program"
)

// TestScriptsAreSeeded: a tree without a random_state draws from NumPy's own generator, and is another one each time: then a script that fits it
// has another verdict, now and then. So each script that fits estimators seeds that generator, or its conftest.py does.
func TestScriptsAreSeeded(t *testing.T) {
	for _, pattern := range []string{"*.py", "../python/tests/*.py"} {
		scripts, err := filepath.Glob(pattern)
		if err != nil || len(scripts) == 0 {
			t.Fatal(scripts, err)
		}
		for _, script := range scripts {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			fits := bytes.Contains(text, []byte("sklearn")) && !strings.HasSuffix(script, "/test_models.py") || strings.HasSuffix(script, "/conftest.py")
			if fits && !bytes.Contains(text, []byte("np.random.seed(")) {
				t.Errorf("%s fits estimators and does not seed NumPy's generator: np.random.seed(1)", script)
			}
		}
	}
}

// TestModelEdges: for models as people have them, of scikit-learn, XGBoost and LightGBM, the exported model predicts what the library does, row by row, where they could
// part: nulls, unseen texts, numbers at thresholds and beside them, numbers that single precision rounds. Where a model's tolerance is 0 it is to the last bit.
func TestModelEdges(t *testing.T) {
	t.Parallel()
	python := program.Python(t)
	exporter, err := filepath.Abs("../python/src")
	if err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Glob(exporter + "/holdoutd/*.py")
	if err != nil || len(client) == 0 {
		t.Fatal(client, err)
	}
	for _, read := range append(client, "model_edges.py") { // go test then knows what the result is of
		if _, err := os.ReadFile(read); err != nil {
			t.Fatal(err)
		}
	}
	script := exec.Command(python, "model_edges.py")
	script.Env = append(os.Environ(), "PYTHONPATH="+exporter, "OMP_NUM_THREADS=1") // threads of such small fits wait for each other on a busy machine
	var failure bytes.Buffer
	script.Stderr = &failure
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failure.Bytes())
	}
	models := 0
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for ; lines.Scan(); models++ {
		var said struct {
			Name      string
			Model     json.RawMessage
			Rows      []map[string]any
			Predicted [][]*float64 // nil where it is no finite number
			Tolerance float64
			Scores    bool         // predicted are the scores, not the predictions
			Evaluated [][]*float64 // the scores by the Python client's evaluator
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			t.Fatal(err)
		}
		m, err := model.Parse(said.Model)
		if err != nil {
			t.Errorf("%s: %v", said.Name, err)
			continue
		}
		wrong := 0
		// The client's evaluator is the server's, bit by bit, but for exponentials.
		same := func(a, b float64) bool {
			return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
		}
		if bytes.Contains(said.Model, []byte(`"mixture"`)) || bytes.Contains(said.Model, []byte(`"tanh"`)) || bytes.Contains(said.Model, []byte(`"logistic"`)) || bytes.Contains(said.Model, []byte(`"kernel"`)) && !bytes.Contains(said.Model, []byte(`"poly"`)) {
			same = func(a, b float64) bool { return math.Abs(a-b) <= 1e-13*max(1, math.Abs(b)) }
		}
		for i, row := range said.Rows {
			for k, score := range predict(m, row, true) {
				own := math.NaN()
				if said.Evaluated[i][k] != nil {
					own = *said.Evaluated[i][k]
				}
				if !same(own, score) {
					t.Fatalf("%s: row %d %v, output %d: the client evaluates %v, the server %v", said.Name, i, row, k, own, score)
				}
			}
			got := predict(m, row, said.Scores)
			for k, expected := range said.Predicted[i] {
				if expected == nil {
					if !math.IsNaN(got[k]) {
						t.Errorf("%s: row %d %v, output %d: %v, and the library has no number", said.Name, i, row, k, got[k])
					}
					continue
				}
				want := *expected
				if math.Abs(got[k]-want) > said.Tolerance*max(1, math.Abs(want)) || math.IsNaN(got[k]) {
					if wrong++; wrong <= 3 {
						t.Errorf("%s: row %d %v, output %d: %v, the library says %v", said.Name, i, row, k, got[k], want)
					}
				}
			}
		}
		if wrong > 3 {
			t.Errorf("%s: %d more", said.Name, wrong-3)
		}
	}
	if models < 20 {
		t.Errorf("%d models were compared", models)
	}
}

// predict is the model at a row of a table.
func predict(m *model.Model, row map[string]any, scores bool) []float64 {
	var in []float64
	for _, f := range m.Features() {
		x := math.NaN()
		switch cell := row[f.Column].(type) {
		case nil:
			if f.Texts != nil {
				x = f.Null
			}
		case string:
			x = f.Texts[cell]
		case float64:
			x = cell
		}
		in = append(in, x)
	}
	if !scores {
		return m.Predict(in)
	}
	features, out := make([][]float64, len(in)), make([][]float64, m.Scorer().Outputs())
	for i := range in {
		features[i] = in[i : i+1]
	}
	for k := range out {
		out[k] = make([]float64, 1)
	}
	m.Scorer().Block(out, features)
	flat := make([]float64, len(out))
	for k := range out {
		flat[k] = out[k][0]
	}
	return flat
}
