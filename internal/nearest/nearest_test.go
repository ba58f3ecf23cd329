package nearest

import (
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

func TestName(t *testing.T) {
	columns := []string{"delay", "distance", "origin", "dest", "air time", "x", "y"}
	for name, want := range map[string]string{
		"dealy": "delay", "Delay": "delay", "delays": "delay", "dlay": "delay", "distnace": "distance", "airtime": "air time", "orgin": "origin",
		"dest": "dest", "zebra": "", "": "", "delayed": "delay", "dddd": "", "z": "x",
		"orig": "origin", "distan": "distance", "di": "", "air": "air time", "origin_airport": "origin", "de": "",
	} {
		if got := Name(name, columns); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := Name("dely", []string{"dela", "delb"}); got != Name("dely", []string{"delb", "dela"}) || got != "dela" {
		t.Errorf("the answer depends on the order of candidates: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"é", "e", 1}} {
		if got := distance([]rune(c.a), []rune(c.b), 9); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestBand: the band and the early end change nothing within the bound.
func TestBand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 10, -1)
		a, b := []rune(word.Draw(t, "a")), []rune(word.Draw(t, "b"))
		full := distance(a, b, 20)
		for bound := 1; bound <= maxDistance; bound++ {
			if got := distance(a, b, bound); got != min(full, bound+1) {
				t.Fatalf("%s to %s within %d: %d, want %d", string(a), string(b), bound, got, min(full, bound+1))
			}
		}
	})
}
