package queries

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestPackedNumbers: a list, the bytes of doubles, of singles and of bits are one question where they are the same numbers, nulls included; what does not fit is refused with its place.
func TestPackedNumbers(t *testing.T) {
	in := func(predictions string) string {
		return `{"type":"accuracy","label":"late","predictions":` + predictions + `}`
	}
	pack := func(name string, more string, b []byte) string {
		return `{"` + name + `":"` + base64.StdEncoding.EncodeToString(b) + `"` + more + `}`
	}
	var doubles, singles []byte
	for _, x := range []float64{0.5, math.NaN(), -2, math.Copysign(0, -1)} {
		doubles = binary.LittleEndian.AppendUint64(doubles, math.Float64bits(x))
		singles = binary.LittleEndian.AppendUint32(singles, math.Float32bits(float32(x)))
	}
	ids := map[string]string{}
	for spelled, what := range map[string]string{
		"[0.5,null,-2,0]": "numbers", pack("f64", "", doubles): "numbers", pack("f32", "", singles): "numbers",
		"[1,0,1,1,0,0,0,0,1]": "bits", pack("bits", `,"count":9`, []byte{0b1101, 1}): "bits",
		pack("bits", `,"count":16`, []byte{0b1101, 1}): "sixteen bits",
	} {
		q, err := Parse([]byte(in(spelled)))
		if err != nil {
			t.Errorf("%s: %v", spelled, err)
			continue
		}
		if ids[what] == "" {
			ids[what] = q.ID()
		}
		if q.ID() != ids[what] {
			t.Errorf("%s is not the same question as other %s", spelled, what)
		}
	}
	if len(ids) != 3 || ids["bits"] == ids["sixteen bits"] {
		t.Errorf("questions: %v", ids)
	}
	huge := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Inf(1)))
	for spelled, want := range map[string]string{
		`{"f32":"AAAA"}`: "/predictions/f32: has 3 bytes", `{"f32":"AAA"}`: "must be base64", `{"f64":7}`: "must be base64", `{}`: "must be a list", `{"f16":"AAAA"}`: "must be a list",
		`{"bits":"AAAA"}`: "must be a list", `{"f32":"AAAA","count":1}`: "must be a list", `{"f32":"AAAAAA==","f64":"AAAAAAAAAAA="}`: "must be a list",
		`{"bits":"AAAA","count":16}`: "/predictions/count", `{"bits":"AAAA","count":25}`: "/predictions/count", `{"bits":"AAAA","count":23.5}`: "/predictions/count",
		`{"bits":"AAAA","count":1e300}`: "/predictions/count",
		pack("f64", "", huge):           "number 0 must lie within",
	} {
		if _, err := Parse([]byte(in(spelled))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spelled, err, want)
		}
	}
}

// TestPredictionsOfClasses: numbers of each class are predictions of a model with classes: the first of the largest is predicted, and a row without a number predicts nothing. Spellings of the same numbers are one question;
// classes in another order are another; what does not fit is refused with its place.
func TestPredictionsOfClasses(t *testing.T) {
	in := func(predictions string) string {
		return `{"type":"accuracy","label":"origin","predictions":` + predictions + `}`
	}
	parse := func(predictions string) *Query {
		t.Helper()
		q, err := Parse([]byte(in(predictions)))
		if err != nil {
			t.Fatalf("%s: %v", predictions, err)
		}
		return q
	}
	lists := parse(`{"classes":["SFO","OAK"],"of":[[1,0,1],[0,1,1]]}`)
	bits := parse(`{"of":[{"bits":"BQ==","count":3},{"bits":"Bg==","count":3}],"classes":["SFO","OAK"]}`)
	if lists.ID() != bits.ID() {
		t.Error("bits and lists are two questions")
	}
	if other := parse(`{"classes":["OAK","SFO"],"of":[[1,0,1],[0,1,1]]}`); other.ID() == lists.ID() {
		t.Error("classes in another order are the same question")
	}
	if other := parse(`{"classes":["SFO","OAK"],"of":[[1,0,1],[0,1,0]]}`); other.ID() == lists.ID() {
		t.Error("other numbers of the second class are the same question")
	}
	again, err := Parse(lists.Canonical())
	if err != nil || again.ID() != lists.ID() {
		t.Errorf("the canonical form %s is read as another question: %v", lists.Canonical(), err)
	}
	schema := dataset.Schema{Fields: []dataset.Field{{Name: "origin", Kind: dataset.Text}}}
	if _, err := lists.Compile(t.Context(), schema, PublicRows(3, 0, "")); err != nil {
		t.Error(err)
	}
	if _, err := lists.Compile(t.Context(), schema, PublicRows(4, 0, "")); err == nil || !strings.Contains(err.Error(), "/predictions/of/0") {
		t.Errorf("three numbers for four rows: %v", err)
	}
	for spelled, want := range map[string]string{
		`{"classes":["a","b"]}`:                          "/predictions: of several classes must be",
		`{"of":[[1],[0]]}`:                               "/predictions: of several classes must be",
		`{"classes":["a"],"of":[[1]]}`:                   "/predictions/classes: must be a list of 2",
		`{"classes":["a","a"],"of":[[1],[0]]}`:           "/predictions/classes/1: occurs twice",
		`{"classes":["a",1],"of":[[1],[0]]}`:             "/predictions/classes/1: classes must be all texts",
		`{"classes":["a","b"],"of":[[1]]}`:               "/predictions/of: must be a list with the numbers of each of the 2",
		`{"classes":["a","b"],"of":[[1],["x"]]}`:         "/predictions/of/1/0: must be a number",
		`{"classes":["a","b"],"of":[[1],[0]],"count":1}`: "/predictions: of several classes must be",
		`{"classes":["a","b"],"of":{"f32":"AAAAAA=="}}`:  "/predictions/of: must be a list",
		`{"classes":"ab","of":[[1],[0]]}`:                "/predictions/classes: must be a list of 2",
	} {
		if _, err := Parse([]byte(in(spelled))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spelled, err, want)
		}
	}
}
