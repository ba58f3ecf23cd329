package holdout

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
)

// saidPrice takes what is said of a type's price apart: "2, with where 3", "3, where units have several rows 4", "at most 4", "1 a share".
var saidPrice = regexp.MustCompile(`^(at most )?(\d+)( an? [a-z]+)?(?:, with where (\d+))?(?:, where units have several rows (\d+))?$`)

// TestPricesAreAsSaid: what docs/QUERIES.md, the interface and agents are told that a query costs is what explain says of each type's examples, under each mechanism, for rows and for units of several rows. It
// notices a price that is said of another mechanism, and one that has changed.
func TestPricesAreAsSaid(t *testing.T) {
	compared := 0
	for _, mechanism := range []string{"gaussian", "guess_and_check", "thresholdout", "split"} {
		for _, unit := range []string{"", "plane"} {
			s := open(t, t.TempDir())
			id := create(t, s, Settings{Mechanism: mechanism, Questions: 200, Holdout: .5, Unit: unit}, flights(t, 2000, 1)).ID
			for _, name := range queries.Types() {
				d, _ := queries.Describe(name)
				for _, example := range d.Examples {
					var q map[string]json.RawMessage
					must(t, json.Unmarshal(example, &q))
					_, paid := q["questions"] // of argmax: what it is to cost
					_, weighted := q["weights"]
					if _, weighs := q["weight"]; paid || weighs {
						continue
					}
					said := d.Price.Checked
					if mechanism == "gaussian" {
						said = d.Price.Gaussian
					}
					if slices.ContainsFunc(d.Members, func(m queries.MemberDescription) bool { return m.Name == "measure" }) && mechanism == "guess_and_check" && name != "test" {
						q["measure"] = json.RawMessage("false") // a measured answer has a price of its own
					}
					body, err := json.Marshal(q)
					must(t, err)
					e, err := s.Explain(t.Context(), analyst, id, body)
					if refused := strings.HasSuffix(said, "where a unit is one row, else refused") && (unit != "" || mechanism == "gaussian"); refused != (err != nil) {
						t.Errorf("%s, unit %q: %s: %v, want it to be refused: %v", mechanism, unit, body, err, refused)
						continue
					} else if refused {
						continue
					}
					said = strings.TrimSuffix(said, " where a unit is one row, else refused")
					p := saidPrice.FindStringSubmatch(said)
					if p == nil {
						continue
					}
					compared++
					price := func(i int) int64 { n, _ := strconv.ParseInt(p[i], 10, 64); return n }
					want := price(2)
					if _, where := q["where"]; where && p[4] != "" {
						want = price(4)
					}
					if unit != "" && p[5] != "" {
						want = price(5)
					}
					if weighted && mechanism == "gaussian" {
						want++
					}
					if p[3] != "" {
						want *= int64(len(e.Items))
					}
					if got := e.Cost.Questions; got != want && (p[1] == "" || got > want) {
						t.Errorf("%s, unit %q: %s costs %d, and is said to cost %s", mechanism, unit, body, got, said)
					}
				}
			}
		}
	}
	if compared < 300 {
		t.Errorf("%d prices were compared", compared)
	}
}
