package session

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

// TestLongestNumber: no number is longer in JSON than the one that answers are sized with. It would notice an answer of many numbers that
// outgrows what was said to be its most, and so a refusal that depends on digits.
func TestLongestNumber(t *testing.T) {
	length := func(x float64) int {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	most := length(longest)
	r := rand.New(rand.NewPCG(1, 2))
	for exponent := -330; exponent <= 308; exponent++ {
		for range 200 {
			if x := -(1 + 9*r.Float64()) * math.Pow(10, float64(exponent)); !math.IsInf(x, 0) && length(x) > most {
				t.Fatalf("%v has %d bytes, the longest %d", x, length(x), most)
			}
		}
	}
}
