package stattest

import (
	"flag"
	"hash/fnv"
	"strconv"
	"testing"
	"testing/cryptotest"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/seed"
)

// Properties draw from the seed (internal/seed) in every package that imports this one, which internal/imports demands of all that have some. The flag
// -rapid.seed and the variable RAPID_SEED, which rapid names when a property fails, stay above it.
func init() {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		f.Value.Set(strconv.FormatUint(seed.Value(), 10))
	}
}

// Secrets lets what is drawn from crypto/rand begin from the seed and the test's name, until the test ends: the keys of holdouts, and with them their
// splits and noise, are then the same in each run. Called again in one test it changes nothing. It is the whole process's, so the test
// must not be parallel.
func Secrets(t testing.TB) {
	test, ok := t.(*testing.T)
	if !ok || secrets[test] {
		return // a benchmark measures, and says nothing of values
	}
	name := fnv.New64a()
	name.Write([]byte(t.Name()))
	cryptotest.SetGlobalRandom(test, name.Sum64()+seed.Value())
	secrets[test] = true
	t.Cleanup(func() { delete(secrets, test) })
}

// secrets are the tests that have called Secrets. Tests that are not parallel call it one after another.
var secrets = map[*testing.T]bool{}

// Further is a property that draws its cases from further on in the random numbers, for a check that is made in several turns: a rapid.Check that is
// repeated as it is draws the same cases again.
func Further(turn int, property func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		for range turn {
			rapid.Uint64().Draw(t, "left out")
		}
		property(t)
	}
}
