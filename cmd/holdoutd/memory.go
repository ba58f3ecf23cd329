package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/internal/machine"
)

// size is a flag of bytes, written as 4GiB, 500MB or a plain number.
type size int64

var _ pflag.Value = (*size)(nil)

// units from the longest name on, so that MiB is not read as a number of B.
var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if before, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(before), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return errors.New("write a whole number of bytes, or one with kB, MB, GB, KiB, MiB or GiB, such as 4GiB")
	}
	if n < 0 || n > math.MaxInt64/factor {
		return errors.New("this is no amount of memory")
	}
	*s = size(n * factor)
	return nil
}

// String implements pflag.Value.
func (s *size) String() string {
	switch b := int64(*s); {
	case b == 0:
		return ""
	case b%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", b>>30)
	case b%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", b>>20)
	default:
		return strconv.FormatInt(b, 10)
	}
}

// Type implements pflag.Value.
func (s *size) Type() string { return "size" }

// limitMemory tells the collector what the process is to stay within, and a tenth less, so that it works harder before the limit is
// reached. A GOMEMLIMIT or a GOGC in the environment is left as it is.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes - bytes/10)
	}
	if os.Getenv("GOGC") == "" {
		machine.CollectAfter(min(leastGarbage, bytes/garbageShare))
	}
}

const (
	// leastGarbage is how much is allocated between two collections at least. What is in use of a server's heap is some 20 MB; by the runtime's own rule the collector would take a tenth of the work on answers.
	leastGarbage = 64 << 20
	// garbageShare is the share of the memory that this may be.
	garbageShare = 16
)
