package analysts

import (
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
)

// TestOnesAndRanges: counts by words are those of single bits, for every range.
func TestOnesAndRanges(t *testing.T) {
	c := newCoins(3, 37, 5)
	q := c.column(11)
	q.Holdout(0, 37)
	for from := range int64(37) {
		for to := from + 1; to <= 37; to++ {
			want := int64(0)
			for _, b := range c.holdout.agree[from:to] {
				want += int64(b >> 3 & 1)
			}
			if got := q.Holdout(from, to); got.Sum != want*rowfn.One || got.N != to-from {
				t.Fatalf("units %d to %d: %+v, want a sum of %d", from, to, got, want)
			}
		}
	}
}

// TestScores: the table of eight votes gives the scores that adding one column after another gives, also when columns are
// returned to.
func TestScores(t *testing.T) {
	c := newCoins(5, 50, 50)
	want := make([]float64, 50)
	for _, column := range []int{0, 1, 7, 8, 30, 1, 8} {
		c.weigh(column, float64(column+1))
		for i, b := range c.holdout.agree[:50] {
			want[i] += float64(column+1) * float64(2*int(b>>(column%8)&1)-1)
		}
	}
	c.vote()
	if !reflect.DeepEqual(c.holdout.score, want) {
		t.Errorf("scores %v, want %v", c.holdout.score, want)
	}
}
