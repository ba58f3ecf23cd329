package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dp/certify"
)

const (
	flights = "../../experiments/data/flights-100k.parquet"
	digits  = "../../experiments/data/digits.parquet"
)

// program runs the real program.
func program(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// certifyJSON is what the command says as JSON.
func certifyJSON(t *testing.T, args ...string) (r certifyResult) {
	t.Helper()
	return certifyJSONOf(t, flights, args...)
}

func certifyJSONOf(t *testing.T, file string, args ...string) (r certifyResult) {
	t.Helper()
	stdout, stderr, code := program(t, append([]string{"certify", file, "--format", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: %s", args, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func modelFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func decoded(t *testing.T, file string) *dataset.Table {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	if _, err := ingest.Decode(context.Background(), file, dir, ingest.Limits{}); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func numbers(t *testing.T, table *dataset.Table, name string) []float64 {
	t.Helper()
	column, ok := table.Lookup(name)
	if !ok {
		t.Fatalf("no column %s", name)
	}
	return column.Numbers
}

// radiiAgree compares certified radii with the true distances of the rows to where the prediction changes. All are certified together at
// probability 1e-6; a distance that is not far beyond the noise is certified to most of it.
func radiiAgree(t *testing.T, r certifyResult, distance func(row int) float64, label func(row int) string) {
	t.Helper()
	var parts []float64
	for _, row := range r.Rows {
		d := distance(row.Row)
		switch {
		case row.Abstained != (row.Prediction == nil) || row.Abstained != (row.Radius == 0):
			t.Errorf("row %d: %+v", row.Row, row)
		case row.Abstained && d > r.Scale:
			t.Errorf("row %d abstains at a distance of %v", row.Row, d)
		case !row.Abstained && (*row.Prediction != label(row.Row) || row.Radius > d):
			t.Errorf("row %d is %s, certified within %v; it is %s up to %v", row.Row, *row.Prediction, row.Radius, label(row.Row), d)
		case d > 0.5*r.Scale && d < 2*r.Scale:
			parts = append(parts, row.Radius/d)
		}
	}
	if len(parts) < 10 {
		t.Fatalf("%d rows within reach of the noise", len(parts))
	}
	slices.Sort(parts)
	if median := parts[len(parts)/2]; median < 0.85 {
		t.Errorf("half of the rows are certified to less than %v of their distance", median)
	}
}

// TestCertifyLinear: for a linear model of numbers the smoothed model is the model, and a row's distance is known.
func TestCertifyLinear(t *testing.T) {
	table := decoded(t, flights)
	delay, distance := numbers(t, table, "delay"), numbers(t, table, "distance")
	sd, sd2 := stat.StdDev(delay, nil), stat.StdDev(distance, nil)
	score := func(row int) float64 { return -0.2 + 0.03*delay[row] - 0.0005*distance[row] }
	label := func(row int) string {
		if score(row) > 0 {
			return "1"
		}
		return "0"
	}
	path := modelFile(t, `{"linear":{"intercept":-0.2,"weights":{"delay":0.03,"distance":-0.0005},"link":"logit"}}`)
	args := []string{"--model", path, "--rows", "300", "--alpha", "1e-6", "--together", "--scale", "0.5", "--seed", "7", "--samples", "20000"}
	r := certifyJSON(t, args...)
	if r.Certificate != "smoothing" || r.Norm != "L2" || len(r.Rows) != 300 || r.Seed != 7 || r.Widths[0] != sd {
		t.Errorf("%+v", r.Widths)
	}
	norm := math.Hypot(0.03*sd, 0.0005*sd2)
	radiiAgree(t, r, func(row int) float64 { return math.Abs(score(row)) / norm }, label)

	raw := certifyJSON(t, append(args, "--units", "raw", "--scale", "20", "--fixed", "distance")...)
	if len(raw.Moved) != 1 || raw.Moved[0] != "delay" || raw.Widths != nil {
		t.Errorf("moved %v, widths %v", raw.Moved, raw.Widths)
	}
	radiiAgree(t, raw, func(row int) float64 { return math.Abs(score(row)) / 0.03 }, label)

	again := certifyJSON(t, args...)
	first, _ := json.Marshal(r)
	if second, _ := json.Marshal(again); !bytes.Equal(first, second) {
		t.Error("the same seed gives other certificates")
	}
}

// TestCertifyNetwork: a network whose two hidden units add up to a linear model has the distances of that. What a certificate is made of is said: the draws for the label, those for the
// other one, and what the network itself predicts.
func TestCertifyNetwork(t *testing.T) {
	table := decoded(t, flights)
	delay, distance := numbers(t, table, "delay"), numbers(t, table, "distance")
	score := func(row int) float64 { return -0.2 + 0.03*delay[row] - 0.0005*distance[row] }
	label := func(row int) string { return map[bool]string{true: "1", false: "0"}[score(row) > 0] }
	path := modelFile(t, `{"network":{"activation":"relu","weights":{"delay":[0.03,-0.03],"distance":[-0.0005,0.0005]},"intercepts":[-0.2,0.2],`+
		`"layers":[{"weights":[[1],[-1]],"intercepts":[0]}],"link":"logit"}}`)
	const samples = 4000
	r := certifyJSON(t, "--model", path, "--rows", "100", "--alpha", "1e-6", "--together", "--scale", "0.5", "--samples", strconv.Itoa(samples), "--seed", "7")
	norm := math.Hypot(0.03*stat.StdDev(delay, nil), 0.0005*stat.StdDev(distance, nil))
	radiiAgree(t, r, func(row int) float64 { return math.Abs(score(row)) / norm }, label)
	for _, row := range r.Rows {
		low, _, err := certify.ClopperPearson.Ends(row.Sum, row.Sum, samples, r.Alpha)
		radius := max(0, certify.SmoothingGaussian(low, 1-low, r.Scale))
		if err != nil || row.Sum+row.Next != samples || math.Abs(row.Radius-radius) > 1e-12 || row.Unsmoothed != label(row.Row) {
			t.Errorf("%+v: the radius of the counts is %v, %v", row, radius, err)
		}
	}
	shown, stderr, code := program(t, "certify", flights, "--model", path, "--rows", "100", "--scale", "0.5", "--samples", "500", "--seed", "7")
	if code != 0 || !strings.Contains(shown, "The model without noise predicts the same as ") || !strings.Contains(shown, " the largest radius that so many draws can show, 1.") {
		t.Errorf("exit %d: %s%s", code, shown, stderr)
	}
}

// TestCertifyOverHTTP: a predictor that answers over HTTP is certified as the model of the same predictions is, from the same draws, in batches of whole rows: what stays of a row is sent, too.
func TestCertifyOverHTTP(t *testing.T) {
	table := decoded(t, flights)
	origin, _ := table.Lookup("origin")
	first, most := origin.Dictionary.Text(int(origin.Codes[0])-1), 0
	var mu sync.Mutex
	answer := func(w http.ResponseWriter, r *http.Request) {
		var batch struct {
			Columns []string `json:"columns"`
			Rows    [][]any  `json:"rows"`
		}
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || !slices.Equal(batch.Columns, []string{"origin", "delay"}) {
			http.Error(w, fmt.Sprint(batch.Columns, err), http.StatusBadRequest)
			return
		}
		labels := make([]any, len(batch.Rows))
		for i, row := range batch.Rows {
			score := row[1].(float64) - 5
			if row[0] == first {
				score += 10
			}
			labels[i] = 0 // numbers and texts are alike
			if score > 0 {
				labels[i] = "1.0"
			}
		}
		mu.Lock()
		most = max(most, len(labels))
		mu.Unlock()
		json.NewEncoder(w).Encode(map[string]any{"labels": labels})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/predict", answer)
	mux.HandleFunc("/short", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"labels":["0"]}`) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"labels":["maybe"`+strings.Repeat(`,"maybe"`, certify.DefaultSelect-1)+"]}")
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	args := []string{"--rows", "20", "--samples", "1500", "--seed", "3", "--scale", "0.5"}
	there := append([]string{"--url", server.URL + "/predict", "--classes", "0,1", "--columns", "origin,delay"}, args...)
	path := modelFile(t, `{"linear":{"intercept":-5,"weights":{"delay":1,"origin":{"`+first+`":10}},"link":"logit"}}`)
	got, want := certifyJSON(t, there...), certifyJSON(t, append([]string{"--model", path}, args...)...)
	a, _ := json.Marshal(got.Rows)
	if b, _ := json.Marshal(want.Rows); !bytes.Equal(a, b) || len(got.Rows) != 20 || got.Model != server.URL+"/predict" {
		t.Errorf("over HTTP: %s\nthe model: %s", a, b)
	}
	if most != certify.BatchRows {
		t.Errorf("at most %d rows at once, want %d", most, certify.BatchRows)
	}
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"--url " + server.URL + "/short --classes 0,1", "was sent 100 rows and answers", 1},
		{"--url " + server.URL + "/other --classes 0,1", "the label maybe, which --classes does not name; it has 0, 1", 1},
		{"--url " + server.URL + "/predict --classes 0,1 --columns delay", "answers 400 Bad Request: [delay]", 1},
		{"--url " + server.URL + "/nothing --classes 0,1", "answers 404 Not Found", 1},
		{"--url " + server.URL + "/predict", "--classes no,yes", 2},
		{"--url " + server.URL + "/predict --classes 1,1.0", "--classes names 1.0 twice", 2},
		{"--url " + server.URL + "/predict --classes 0,1 --of scores", "--of labels", 2},
		{"--url " + server.URL + "/predict --classes 0,1 --columns dealy", "did you mean delay?", 2},
		{"--url ftp://x/y --classes 0,1", "--url is the address of a predictor", 2},
		{"--url " + server.URL + " --model " + path, "name one", 2},
		{"--model " + path + " --classes 0,1", "a model has its own", 2},
	} {
		stdout, stderr, code := program(t, append([]string{"certify", flights, "--rows", "3", "--samples", "50"}, strings.Fields(c.args)...)...)
		if code != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.args, code, c.status, c.want, stdout, stderr)
		}
	}
}

// TestCertifyTrees: a tree that cuts one number, for some origins, in the L1 norm; the other origins have one class whatever the number.
func TestCertifyTrees(t *testing.T) {
	table := decoded(t, flights)
	delay := numbers(t, table, "delay")
	origin, _ := table.Lookup("origin")
	from := func(row int) string { return origin.Dictionary.Text(int(origin.Codes[row]) - 1) }
	some := origin.Dictionary.Sorted()[:origin.Dictionary.Len()/2]
	names, err := json.Marshal(some)
	if err != nil {
		t.Fatal(err)
	}
	path := modelFile(t, `{"trees":{"classes":["late","early","far"],"trees":[[["origin",`+string(names)+`],["delay",5],[0,1,0],[1,0,0],[0,0,1]]]}}`)
	r := certifyJSON(t, "--model", path, "--rows", "200", "--alpha", "1e-6", "--together", "--noise", "laplace", "--scale", "0.5", "--certificate", "smoothing")
	sd := stat.StdDev(delay, nil)
	radiiAgree(t, r, func(row int) float64 {
		if !slices.Contains(some, from(row)) {
			return math.Inf(1)
		}
		return math.Abs(delay[row]-5) / sd
	}, func(row int) string {
		switch {
		case !slices.Contains(some, from(row)):
			return "far"
		case delay[row] > 5:
			return "late"
		}
		return "early"
	})
	if r.Norm != "L1" {
		t.Errorf("norm %s", r.Norm)
	}
}

func TestCertifyFormats(t *testing.T) {
	path := modelFile(t, `{"softmax":{"classes":["SFO","other"],"intercepts":[-1,0],"weights":{"distance":[0.001,0],"delay":[0,0.01]}}}`)
	args := []string{"certify", flights, "--model", path, "--rows", "20", "--seed", "3", "--of", "scores"}
	table, stderr, code := program(t, args...)
	if code != 0 || !strings.HasPrefix(table, "ROW  PREDICTION  RADIUS") || !strings.Contains(table, "\n20 rows, ") || !strings.Contains(table, "seed 3") {
		t.Errorf("table, exit %d: %s%s", code, table, stderr)
	}
	if !strings.Contains(stderr, "certify, rows: 20 of 20") {
		t.Errorf("progress: %s", stderr)
	}
	lines, stderr, code := program(t, append(args, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(lines)).ReadAll()
	if code != 0 || err != nil || len(rows) != 21 || strings.Join(rows[0], ",") != "row,prediction,radius,abstained" {
		t.Fatalf("csv, exit %d, %v: %s%s", code, err, lines, stderr)
	}
	r := certifyJSON(t, args[2:]...)
	for i, row := range r.Rows {
		if radius, err := strconv.ParseFloat(rows[i+1][2], 64); err != nil || radius != row.Radius || rows[i+1][1] != row.shown("") {
			t.Errorf("row %d: csv %v, json %+v", i, rows[i+1], row)
		}
	}

	path = modelFile(t, `{"linear":{"intercept":-10,"weights":{"distance":0.01},"link":"logit"}}`)
	if _, stderr, code := program(t, "certify", flights, "--model", path, "--rows", "10", "--label", "delay"); code != 1 ||
		!strings.Contains(stderr, `no class of the model; its classes are 0, 1`) {
		t.Errorf("labels that are no classes, exit %d: %s", code, stderr)
	}
}

// TestCertifyAccuracy: nearest class means, a softmax model of 64 pixels, predict digits; labels are read, and certified accuracy falls with
// the attack's size.
func TestCertifyAccuracy(t *testing.T) {
	table := decoded(t, digits)
	labels := numbers(t, table, "label")
	weights, intercepts := map[string][]float64{}, make([]float64, 10)
	counts := make([]float64, 10)
	for _, k := range labels {
		counts[int(k)]++
	}
	for i := range table.Columns() {
		column := table.Column(i)
		if column.Name == "label" {
			continue
		}
		mean := make([]float64, 10)
		for row, v := range column.Numbers {
			mean[int(labels[row])] += v / counts[int(labels[row])]
		}
		for k, m := range mean {
			intercepts[k] -= m * m / 2
		}
		weights[column.Name] = mean
	}
	text, err := json.Marshal(map[string]any{"softmax": map[string]any{"classes": []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "intercepts": intercepts, "weights": weights}})
	if err != nil {
		t.Fatal(err)
	}
	path := modelFile(t, string(text))
	r := certifyJSONOf(t, digits, "--model", path, "--rows", "60", "--label", "label", "--units", "raw", "--scale", "4", "--sizes", "0,3,40", "--samples", "1000")
	right := 0
	for _, row := range r.Rows {
		if !row.Abstained && *row.Prediction == *row.Label {
			right++
		}
	}
	if got := r.Accuracy; right < 45 || got[0].Accuracy != float64(right)/60 || !(got[1].Accuracy > 0.3 && got[1].Accuracy < got[0].Accuracy) || got[2].Accuracy != 0 {
		t.Errorf("%d of 60 right: %+v", right, got)
	}
	if r.Certificate != "two-sided" {
		t.Errorf("certificate %s", r.Certificate)
	}
	_, stderr, code := program(t, "certify", digits, "--model", path)
	if code != 1 || !strings.Contains(stderr, "--fixed pixel_0_0,pixel_4_0,pixel_4_7,") {
		t.Errorf("pixels that are always white, exit %d: %s", code, stderr)
	}
	table2, stderr, code := program(t, "certify", digits, "--model", path, "--rows", "5", "--label", "label", "--units", "raw", "--scale", "4")
	if code != 0 || !strings.Contains(table2, "LABEL") || !strings.Contains(table2, "ATTACK SIZE  CERTIFIED ACCURACY") {
		t.Errorf("exit %d: %s%s", code, table2, stderr)
	}
}

// TestCertifyAtItsOwnThreshold: a model that says where it decides is certified there, and a named threshold goes before it.
func TestCertifyAtItsOwnThreshold(t *testing.T) {
	const weights = `"linear":{"weights":{"delay":1},"link":"sqrt"}`
	plain, own := modelFile(t, "{"+weights+"}"), modelFile(t, "{"+weights+`,"threshold":225}`)
	at := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := program(t, append([]string{"certify", flights, "--rows", "30", "--samples", "200", "--seed", "5", "--format", "csv"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
		return stdout
	}
	named, other := at("--model", plain, "--threshold", "225"), at("--model", plain, "--threshold", "4")
	if got := at("--model", own); got != named || named == other {
		t.Errorf("at its own threshold: %s\nnamed: %s\nat another: %s", got, named, other)
	}
	if got := at("--model", own, "--threshold", "4"); got != other {
		t.Errorf("a named threshold: %s\nwant %s", got, other)
	}
}

func TestCertifyMistakes(t *testing.T) {
	linear := modelFile(t, `{"linear":{"weights":{"delay":1},"link":"logit"}}`)
	tuned := modelFile(t, `{"linear":{"weights":{"delay":1},"link":"logit"},"threshold":0.2}`)
	number := modelFile(t, `{"linear":{"weights":{"delay":1}}}`)
	computed := modelFile(t, `{"linear":{"weights":{"x":1}},"features":{"x":"delay * 2.0"}}`)
	texts := modelFile(t, `{"linear":{"weights":{"origin":{"SFO":1}},"link":"logit"}}`)
	unknown := modelFile(t, `{"linear":{"weights":{"dealy":1},"link":"logit"}}`)
	wrongKind := modelFile(t, `{"linear":{"weights":{"origin":1},"link":"logit"}}`)
	broken := modelFile(t, `{"linear":{"weights":{"delay":"x"},"lnik":"logit"}}`)
	votes := modelFile(t, `{"trees":{"classes":["a","b"],"trees":[[["delay",0],[3,0],[0,3]]]}}`)
	for _, c := range []struct {
		args, want string
		status     int // 2 where the command line is wrong, 1 where a file is
	}{
		{"", "name the model: --model model.json", 2},
		{"--model nothing.json", "cannot read the model nothing.json: no such file", 1},
		{"--model " + flights, "is not a model (docs/MODELS.md)", 1},
		{"--model " + broken, `/linear/weights/delay must be a number`, 1},
		{"--model " + broken, `/linear/lnik unknown member`, 1},
		{"--model " + unknown, `the model reads the column "dealy", which the file does not have; did you mean delay? it has date, delay, distance, origin, destination`, 1},
		{"--model " + wrongKind, `the column "origin" holds texts, the model reads it as a number`, 1},
		{"--model " + texts, "the model reads no numbers that can change", 1},
		{"--model " + computed, "computes features of the columns", 1},
		{"--model " + number, "the model predicts a number, not a class", 1},
		{"--model " + number + " --threshold 5 --of scores", "needs probabilities", 2},
		{"--model " + tuned + " --of scores", "the model says yes above 0.2", 1},
		{"--model " + votes + " --of scores", "--of labels needs no probabilities", 1},
		{"--model " + votes + " --threshold 1", "this has 2 classes", 2},
		{"--model " + linear + " --noise cauchy", `--noise is gaussian or laplace, not "cauchy"`, 2},
		{"--model " + linear + " --units cm", "--units is sd or raw", 2},
		{"--model " + linear + " --certificate best", "--certificate is smoothing, two-sided, pixeldp or renyi", 2},
		{"--model " + linear + " --bound tight", "--bound is clopper-pearson", 2},
		{"--model " + linear + " --of votes", "--of is labels or scores", 2},
		{"--model " + linear + " --format xml", "--format is table, csv or json", 2},
		{"--model " + linear + " --of scores --bound clopper-pearson", "counts labels", 2},
		{"--model " + linear + " --noise laplace --certificate renyi", "is for --noise gaussian", 2},
		{"--model " + linear + " --scale 0", "--scale is a positive number", 2},
		{"--model " + linear + " --alpha 0.7", "--alpha is a probability", 2},
		{"--model " + linear + " --samples 1", "--samples is a number from 2", 2},
		{"--model " + linear + " --rows -1", "--rows is a positive number", 2},
		{"--model " + linear + " --sizes=-1", "--sizes are numbers from 0 up", 2},
		{"--model " + linear + " --fixed delays", `--fixed names the column "delays"`, 2},
		{"--model " + linear + " --label lable", `--label names the column "lable"`, 2},
	} {
		stdout, stderr, code := program(t, append([]string{"certify", flights, "--rows", "3"}, strings.Fields(c.args)...)...)
		if code != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s%s; want %s", c.args, code, stdout, stderr, c.want)
		}
	}
	for file, want := range map[string]string{"nothing.parquet": "cannot read nothing.parquet: no such file", linear: "the file is not Parquet"} {
		if _, stderr, code := program(t, "certify", file, "--model", linear); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s", file, code, stderr)
		}
	}
}
