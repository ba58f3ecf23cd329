package statements

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestEveryTypeAtOnce: four analysts ask every type of query at once, each in another order, of rows enough for several goroutines a scan, and all are
// told the same. Under the race detector it notices a query whose evaluation writes what another's goroutine reads.
func TestEveryTypeAtOnce(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(12, 9))
	all := slices.DeleteFunc(statements(), func(s statement) bool { return s.body == kendallBody }) // which naive does not answer
	for _, unit := range []string{"", "ward"} {
		card := create(t, s, holdout.Settings{Name: "at once " + unit, Mechanism: "naive", Questions: 5000, Unit: unit}, sampled(t, r, population(r, unit != "", false), 12_000))
		const analysts = 4
		told := make([][][]byte, analysts)
		var group sync.WaitGroup
		for who := range analysts {
			told[who] = make([][]byte, len(all))
			order := rand.New(rand.NewPCG(uint64(who), 5)).Perm(len(all))
			p := holdout.Principal{KeyID: fmt.Sprint("key ", who), Scope: holdout.Analyst}
			group.Go(func() {
				for _, i := range order {
					answer, err := s.Ask(t.Context(), p, card.ID, []byte(all[i].body), "")
					if err != nil {
						t.Errorf("%s: %v", all[i].body, err)
						continue
					}
					told[who][i] = answer.Body
				}
			})
		}
		group.Wait()
		for i := range all {
			for who := 1; who < analysts; who++ {
				if !bytes.Equal(told[who][i], told[0][i]) {
					t.Errorf("%s: one analyst is told %s, another %s", all[i].body, told[0][i], told[who][i])
				}
			}
		}
	}
}
