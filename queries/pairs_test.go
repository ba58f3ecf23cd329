package queries

import (
	"context"
	"strings"
	"testing"
)

// TestPairQueries: what a compare of two aucs and a kendall accept and refuse, and what they cost by means.
func TestPairQueries(t *testing.T) {
	areaOf := func(more string) string {
		return `{"type":"auc","label":"late","prediction":"distance","edges":[1,2,3]` + more + `}`
	}
	tau := func(more string) string { return `{"type":"kendall","x":"delay","y":"distance"` + more + `}` }
	edges := `,"edges_x":[1,2],"edges_y":[3]`
	for body, want := range map[string]string{ // what is wrong; "" where nothing is
		`{"type":"compare","a":` + areaOf("") + `,"b":` + areaOf("") + `,"where":"delay > 1","by":0.1}`:                  "",
		`{"type":"compare","a":` + areaOf("") + `,"b":` + areaOf(`,"where":"delay > 1"`) + `}`:                           "/b/where: is for both: say it of the compare",
		`{"type":"compare","a":` + areaOf("") + `,"b":` + areaOf("") + `,"where":"delay"}`:                               "/where: ",
		`{"type":"compare","a":` + areaOf("") + `,"b":` + strings.Replace(areaOf(""), `"late"`, `"delay > 15"`, 1) + `}`: "/b/label: must be that of a",
		`{"type":"compare","a":` + areaOf("") + `,"b":{"type":"fraction","of":"late"}}`:                                  "/a: must be the mean of one row function",
		`{"type":"passes","of":` + tau(edges) + `,"above":0.1}`:                                                          "",
		`{"type":"test","test":"value","query":` + tau(edges) + `,"equals":0}`:                                           "",
		`{"type":"compare","a":` + tau(edges) + `,"b":` + tau(edges) + `}`:                                               "/a: must be the mean of one row function",
		tau(edges):                            "",
		tau(""):                               "/edges_x: is needed: this holdout has no training part",
		tau(`,"edges_x":[1,2]`):               "/edges_y: is needed",
		tau(edges + `,"bins":5`):              "/bins: goes without edges of both",
		tau(`,"bins":1`):                      "/bins: must be a whole number",
		tau(`,"bins":65`):                     "/bins: must be a whole number",
		tau(`,"edges_x":[2,1],"edges_y":[3]`): "/edges_x/1: must be a finite number above",
		tau(`,"edges_y":[3],"edges_x":[` + risingNumbers(MaxTauBins) + `]`):   "/edges_x: must be a list of 1 to 63",
		tau(`,"edges_y":[3],"edges_x":[` + risingNumbers(MaxTauBins-1) + `]`): "",
	} {
		q, err := Parse([]byte(body))
		if err == nil {
			_, err = q.Compile(context.Background(), flights)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
	p := compiled(t, `{"type":"compare","a":`+areaOf("")+`,"b":`+strings.Replace(areaOf(""), "[1,2,3]", "[5]", 1)+`}`, flights)
	if p.Numbers() != 7+3 || len(p.Releases()) != 2 {
		t.Errorf("a compare of two aucs is %d numbers in %d releases", p.Numbers(), len(p.Releases()))
	}
	big := func(n int) string { return strings.Replace(areaOf(""), "[1,2,3]", "["+risingNumbers(n)+"]", 1) }
	q := mustParse(t, `{"type":"compare","a":`+big(63)+`,"b":`+big(64)+`}`)
	if _, err := q.Compile(context.Background(), flights); err == nil || !strings.Contains(err.Error(), "multiplied they must not be above 4096") {
		t.Error(err)
	}
	q = mustParse(t, `{"type":"compare","a":`+areaOf("")+`,"b":`+areaOf("")+`,"weight":"row"}`)
	if _, err := q.Compile(context.Background(), flights, Grouped(true)); err == nil || !strings.Contains(err.Error(), "/weight: goes without auc") {
		t.Error(err)
	}
}

func risingNumbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, strings.Repeat("1", i/10+1)+string(rune('0'+i%10)))
	}
	return strings.Join(all, ",")
}
