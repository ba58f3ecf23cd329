package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemory: the least of the machine's memory and the limits of the control groups of both versions, at every level. It would notice
// a limit that is not looked at, for which a container is killed.
func TestMemory(t *testing.T) {
	const kib = "MemTotal:        8000000 kB\nMemFree: 1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":    {nil, Unknown},
		"no control group":    {map[string]string{"proc/meminfo": kib}, 8000000 << 10},
		"version 2":           {map[string]string{"proc/meminfo": kib, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000000\n"}, 1000000},
		"a group above":       {map[string]string{"proc/meminfo": kib, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2000000\n"}, 2000000},
		"at the root":         {map[string]string{"proc/meminfo": kib, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "3000000\n"}, 3000000},
		"version 1":           {map[string]string{"proc/meminfo": kib, "proc/self/cgroup": "5:cpu:/x\n4:memory:/y\n", "sys/fs/cgroup/memory/y/memory.limit_in_bytes": "4000000\n"}, 4000000},
		"above the machine":   {map[string]string{"proc/meminfo": kib, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9223372036854771712\n"}, 8000000 << 10},
		"files without sense": {map[string]string{"proc/meminfo": "MemTotal: x kB\n", "proc/self/cgroup": "what\n"}, Unknown},
	} {
		root := t.TempDir()
		for path, contents := range c.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memory(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if m := Memory(); m < 64<<20 {
		t.Errorf("this machine has %d bytes", m)
	}
}
