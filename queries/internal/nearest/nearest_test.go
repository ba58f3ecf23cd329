package nearest

import "testing"

func TestName(t *testing.T) {
	columns := []string{"delay", "distance", "origin", "dest", "air time", "x", "y"}
	for name, want := range map[string]string{
		"dealy": "delay", "Delay": "delay", "delays": "delay", "dlay": "delay", "distnace": "distance", "airtime": "air time", "orgin": "origin",
		"dest": "dest", "zebra": "", "": "", "delayed": "delay", "dddd": "", "z": "x",
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
