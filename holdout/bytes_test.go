package holdout

import (
	"bytes"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// still reads zeros: what is drawn with it is drawn alike, however often and by whom.
type still struct{}

func (still) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// One upload under one key is stored in the same bytes by every version: the table's digest, by which it is known again, the columns of each part, and where units begin. Stored holdouts
// were made so; a table that comes again must find its own, and show what was shown. The values were recorded by a version that sorted, hashed and wrote one row after the other.
func TestStoredBytes(t *testing.T) {
	table := visits(t, 3000, 77)
	whole := func() Upload { return SingleUpload(bytes.NewReader(parquet(t, table))) }
	given := func() Upload {
		return givenUpload(parquet(t, visits(t, 1000, 78)), parquet(t, visits(t, 2000, 79)))
	}
	for _, c := range []struct {
		name   string
		set    Settings
		upload func() Upload
		want   string
	}{
		{"rows", Settings{Unit: "row"}, whole, "a69f8266 e47fe230 none none none cd04a76a none"},
		{"numbers", Settings{Unit: "chart"}, whole, "a69f8266 6f2118c3 de786196 none none 75c515bd 168430b0"},
		{"numbers and nulls", Settings{Unit: "score"}, whole, "a69f8266 3e6847ee fb8cf259 none none 6bfc19fe 42b9fbe7"},
		{"texts", Settings{Unit: "clinic", Holdout: 2, Check: new(0.3)}, whole, "a69f8266 a5894d66 22e8e876 f9e04c5b 8a51ca9a fed27cc2 8d4e666e"},
		{"truths", Settings{Unit: "late", Holdout: 1.0, LargestUnit: 3000}, whole, "a69f8266 none none none none 76c9984d 047f2508"},
		{"days", Settings{Unit: "day(seen)"}, whole, "a69f8266 eafe3734 df1b3141 none none 00929450 d5d016f6"},
		{"strata", Settings{Unit: "row", Stratify: "clinic"}, whole, "a69f8266 f4904e5f none none none 730c502c none"},
		{"times", Settings{Unit: "chart", Split: "time:seen", Check: new(0.1)}, whole, "a69f8266 8c5b2b39 c5940dae 0d2217bd e6640f3f d4229ff7 168430b0"},
		{"given", Settings{Unit: "row", Split: splitGiven}, given, "30e8929d 7ac2c189 none none none 1ce0265e none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{serverKeyFile: strings.Repeat("0123456789abcdef", 4), firstStart: ""} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), secretMode); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, dir)
			c.set.Name, c.set.Mechanism = "bytes", "gaussian"
			random := cryptorand.Reader
			cryptorand.Reader = still{}
			card, _, err := s.Create(t.Context(), admin, c.set, c.upload(), "")
			cryptorand.Reader = random
			if err != nil {
				t.Fatal(err)
			}
			known, err := s.ledger.Holdout(t.Context(), card.ID)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{hex.EncodeToString(known.Digest[:4])}
			for _, file := range []string{"training/columns", "training.units/columns", "check/columns", "check.units/columns", "holdout/columns", "holdout.units/columns"} {
				b, err := os.ReadFile(s.path(holdoutsDir, card.ID, file))
				sum := sha256.Sum256(b)
				if got = append(got, hex.EncodeToString(sum[:4])); err != nil {
					got[len(got)-1] = "none"
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("it is stored as %s, want %s", text, c.want)
			}
		})
	}
}
