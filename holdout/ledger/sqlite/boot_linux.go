package sqlite

import (
	"os"
	"strings"
)

// boot names this run of the kernel, or is empty.
func boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
