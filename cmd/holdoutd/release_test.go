package main

import (
	"encoding/json"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// TestReleaseCommand makes releases of a running server's holdout, lists them, and is refused what is not left. It would notice a release that is paid twice, and columns that are read as others.
func TestReleaseCommand(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 30, Mechanism: "guess_and_check"})
	const request = "release --epsilon 1 --release-epsilon 1.5 --column delay=-60..180 --column delay=0,15 --column origin=SFO,OAK"
	s.says(t, []said{
		{"release", 2, nil, []string{"say --epsilon"}},
		{"release --list --epsilon 1", 2, nil, []string{"say --epsilon"}},
		{"release --epsilon 1 --column delay=1..x", 2, nil, []string{"bounds are two numbers"}},
		{"release --epsilon 1 --column delay=1,x", 2, nil, []string{"edges are numbers"}},
		{"release --epsilon 1 --column dely", 2, nil, []string{"no column", "dely"}},
		{"release --epsilon 21", 2, nil, []string{"epsilon must be"}},
		{"release --epsilon 1 --rows-per-unit 2", 2, nil, []string{"the units are rows"}},
		{request, 0, []string{"sha256:", "1-differentially private", "rows below 0", "rows from 0 to below 15", "rows from 15", "quantile 0.5", "rows SFO", "rows of another text"}, nil},
		{request, 0, []string{"sha256:"}, nil},
		{"release --epsilon 0.6", 5, nil, []string{"0.5 of 1.5 is left"}},
		{"release --epsilon 0.5 --release-epsilon 2", 2, nil, []string{"never changes"}},
		{"release --list", 0, []string{"quantile 0.5", "1 of 1.5 is spent, and 0.5 left"}, nil},
	})
	first, _, _ := s.call(t, nil, shellWords(request+" --json")...)
	second, _, _ := s.call(t, nil, shellWords(request+" --json")...)
	var said client.PrivateRelease
	if err := json.Unmarshal([]byte(first), &said); err != nil || first != second || said.Ledger.Seq != 1 || len(said.Columns) != 2 {
		t.Errorf("%v: %s\n%s", err, first, second)
	}
}
