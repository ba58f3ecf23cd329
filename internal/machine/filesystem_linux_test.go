package machine

import (
	"os"
	"testing"
)

// TestUnsafe: /dev/shm is in memory, and is said to be; what the kernel shows of itself is none of the kinds that are refused.
func TestUnsafe(t *testing.T) {
	for path, want := range map[string]unsafeFS{"/dev/shm": {"tmpfs", inMemory}, "/proc": {}} {
		if name, reason, err := Unsafe(path); name != want.name || reason != want.reason || err != nil {
			t.Errorf("%s: %q, %q, %v", path, name, reason, err)
		}
	}
	if _, _, err := Unsafe("/no such path"); !os.IsNotExist(err) {
		t.Errorf("what is not there: %v", err)
	}
	for magic, f := range unsafe {
		if f.name == "" || f.reason == "" {
			t.Errorf("%x has no name or no reason", magic)
		}
	}
}
