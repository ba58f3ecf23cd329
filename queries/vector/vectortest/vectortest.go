// Package vectortest runs a package's tests on the processor that it pretends not to have.
package vectortest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries/vector"
)

// Without runs all other tests of the package again without vectors, in a process of its own.
func Without(t *testing.T) {
	t.Helper()
	if len(vector.All()) == 0 {
		return // they ran without
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.skip", "^"+t.Name()+"$", "-test.timeout", "5m")
	again.Env = append(os.Environ(), "GODEBUG="+strings.TrimPrefix(os.Getenv("GODEBUG")+",cpu.avx2=off", ","), unwanted+"=yes")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("without vectors: %v\n%s", err, out)
	}
}

const unwanted = "HOLDOUTD_TEST_WITHOUT_VECTORS"

func init() {
	if os.Getenv(unwanted) != "" && len(vector.All()) > 0 {
		panic("vectortest: the processor's vectors were not turned off")
	}
}
