// Package await is how tests wait: for the event itself, with a limit that only a hang reaches. No test waits for a time in which something
// has usually happened.
package await

import (
	"context"
	"os"
	"testing"
	"time"
)

// Patience is how long a test waits before it fails instead of hanging. What is waited for takes milliseconds; a machine that does twenty
// other things takes seconds. It is below the limit of a package's tests, so that the test says what did not happen.
//
// HOLDOUTD_PATIENCE is another duration: where a fault is planted, the hang may be what is to be noticed, and minutes of it say no more.
var Patience = patience()

func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("HOLDOUTD_PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Minute
}

// Until returns once happened does, which it asks every few milliseconds. After Patience, or when happened has failed the test, the test
// ends: what says what did not happen, after the word until.
func Until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !happened(); time.Sleep(2 * time.Millisecond) {
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", Patience, what)
		}
	}
}

// Context ends with the test, or after Patience: for calls that hang if what is tested is broken.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}
