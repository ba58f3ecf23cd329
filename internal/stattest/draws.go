package stattest

import (
	"flag"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
	"testing/cryptotest"

	"pgregory.net/rapid"
)

// SeedVariable is the environment variable that has another seed than DefaultSeed for every draw that tests make.
const SeedVariable = "HOLDOUTD_SEED"

// DefaultSeed is the seed of a day like any other: the same commit has the same verdict.
const DefaultSeed = 1

// Properties draw from the seed in every package that imports this one, which internal/imports demands of all that have some. The flag
// -rapid.seed and the variable RAPID_SEED, which rapid names when a property fails, stay above it.
func init() {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		f.Value.Set(strconv.FormatUint(Seed(), 10))
	}
}

// Seed is the number that all draws of tests begin from: HOLDOUTD_SEED, which must be a positive whole number; default: DefaultSeed.
func Seed() uint64 {
	text, ok := os.LookupEnv(SeedVariable)
	if !ok || text == "" {
		return DefaultSeed
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seed == 0 {
		panic("stattest: " + SeedVariable + " is " + strconv.Quote(text) + ", want a whole number from 1 to 18446744073709551615")
	}
	return seed
}

// Secrets lets what is drawn from crypto/rand begin from Seed and the test's name, until the test ends: the keys of holdouts, and with them their
// splits and noise, are then the same in each run. Called again in one test it changes nothing. It is the whole process's, so the test
// must not be parallel.
func Secrets(t testing.TB) {
	test, ok := t.(*testing.T)
	if !ok || secrets[test] {
		return // a benchmark measures, and says nothing of values
	}
	name := fnv.New64a()
	name.Write([]byte(t.Name()))
	cryptotest.SetGlobalRandom(test, name.Sum64()+Seed())
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
