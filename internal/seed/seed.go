// Package seed has the one number that all draws of tests begin from, and makes the secrets of a server that tests start begin from it. No code of
// the product imports it: tests/program builds the program that tests start with one more file, which does.
package seed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Variable is the environment variable that has another seed than Default for every draw that tests make.
const Variable = "HOLDOUTD_SEED"

// Default is the seed of a day like any other: the same commit has the same verdict.
const Default = 1

// Value is the number that all draws of tests begin from: HOLDOUTD_SEED, which must be a positive whole number; else Default.
func Value() uint64 {
	text, ok := os.LookupEnv(Variable)
	if !ok || text == "" {
		return Default
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seed == 0 {
		panic("seed: " + Variable + " is " + strconv.Quote(text) + ", want a whole number from 1 to 18446744073709551615")
	}
	return seed
}

const module = "github.com/holdoutd/holdoutd/"

// drawers are the functions whose secrets decide what a server answers: which rows are held out, in which order they lie, and the noise. The others' are
// names and passwords, which must differ from one start to the next.
var drawers = []string{module + "holdout.loadServerSecret", module + "holdout.newPlacing", module + "holdout.(*creation).commit"}

// Secrets lets each of these functions draw from a sequence of its own, which begins from Value: the first server key of a process, and its n-th
// holdout's order and noise, are then the same in each run, whatever else draws meanwhile. It is for the whole process, and for tests alone.
func Secrets() {
	rand.Reader = &reader{real: rand.Reader, sequences: map[string]*mathrand.ChaCha8{}}
}

type reader struct {
	real      io.Reader
	mu        sync.Mutex
	sequences map[string]*mathrand.ChaCha8
}

func (r *reader) Read(p []byte) (int, error) {
	drawer := caller()
	if !slices.Contains(drawers, drawer) {
		return r.real.Read(p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sequences[drawer] == nil {
		r.sequences[drawer] = mathrand.NewChaCha8(sha256.Sum256(binary.BigEndian.AppendUint64([]byte(drawer), Value())))
	}
	return r.sequences[drawer].Read(p)
}

// caller is the function of this module, but for this package, that asked for random bytes; "" if none did.
func caller() string {
	var counters [16]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, module) {
			return frame.Function
		}
		if !more {
			return ""
		}
	}
}
