// Package machine says how much memory and how many files this process may use, and whether an error says that it has no more of them.
package machine

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Unknown is what Memory returns where nothing says how much there is: little enough for any machine that runs a server today.
const Unknown = 2 << 30

// Memory is the memory of the machine in bytes, or of the control group that this process is in, whichever is less.
func Memory() int64 { return memory("/") }

// memory is Memory with the files of proc and sys below a root.
func memory(root string) int64 {
	least := int64(math.MaxInt64)
	for _, line := range lines(filepath.Join(root, "proc/meminfo")) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil && kib > 0 {
				least = min(least, kib<<10)
			}
		}
	}
	for _, line := range lines(filepath.Join(root, "proc/self/cgroup")) {
		// hierarchy:controllers:path; version 2 has no controllers. A group is within the groups above it.
		part := strings.SplitN(line, ":", 3)
		if len(part) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if part[1] == "memory" {
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if part[1] != "" {
			continue
		}
		for dir := filepath.Clean("/" + part[2]); ; dir = filepath.Dir(dir) {
			if limit, ok := number(filepath.Join(root, base, dir, file)); ok {
				least = min(least, limit)
			}
			if dir == "/" {
				break
			}
		}
	}
	if least == math.MaxInt64 {
		return Unknown
	}
	return least
}

func lines(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// number reads a limit; "max" is none.
func number(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n > 0
}
