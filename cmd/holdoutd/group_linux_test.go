package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/internal/await"
)

// A group is a control group of limited memory, of either version.
type group struct {
	dir    string
	events string // the file that counts what the kernel has killed in it
}

// newGroup makes a group of so many MiB. Where the machine lets nobody make one, there is nothing to test in, and the test is skipped.
func newGroup(t *testing.T, mib int) group {
	t.Helper()
	name, bytes := fmt.Sprintf("holdoutd-test-%d-%d", os.Getpid(), mib), strconv.Itoa(mib<<20)
	g, limits := group{"/sys/fs/cgroup/memory/" + name, "memory.oom_control"}, map[string]string{"memory.limit_in_bytes": bytes}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		g, limits = group{"/sys/fs/cgroup/" + name, "memory.events"}, map[string]string{"memory.max": bytes, "memory.swap.max": "0"}
		os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory"), 0) // where it fails, so does what follows
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Skipf("no control group can be made here: %v", err)
	}
	t.Cleanup(func() {
		await.Until(t, "the group is empty and removed", func() bool { return os.Remove(g.dir) == nil })
	})
	for file, limit := range limits {
		if err := os.WriteFile(filepath.Join(g.dir, file), []byte(limit), 0); err != nil {
			t.Skipf("a control group cannot be limited here: %v", err)
		}
	}
	return g
}

// kills is how many processes of the group the kernel has killed for want of memory.
func (g group) kills(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, g.events))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut("\n"+string(text), "\noom_kill ")
	if _, err := fmt.Sscan(after, &n); !found || err != nil {
		t.Fatalf("%s: %q %v", g.events, text, err)
	}
	return n
}

// TestSmallGroups: with default flags the server and the process that decodes uploads fit together into the memory of a control group, whatever is sent. Large batches of
// four keys go on beside files of a few thousand bytes that need hundreds of MiB, several at once: the kernel ends nobody, and each upload has a reply that says why.
func TestSmallGroups(t *testing.T) {
	var files [][]byte
	for _, name := range []string{"many-long-texts.parquet", "one-long-text.parquet"} {
		file, err := os.ReadFile("../../dataset/ingest/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for _, mib := range []int{256, 512, 1024, 2048} {
		t.Run(fmt.Sprint(mib), func(t *testing.T) {
			g := newGroup(t, mib)
			dir, err := os.MkdirTemp("/var/tmp", "holdoutd-test-") // a disk, where /tmp may be memory, which files would take from the group
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			enter := fmt.Sprintf(`echo $$ > %s/cgroup.procs && exec "$0" serve --any-filesystem --addr 127.0.0.1:0 --data "$1" --log json`, g.dir)
			p := startProcess(t, exec.Command("sh", "-c", enter, binary, dir))
			admin := connect(t, p, dir)
			card, err := admin.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 1_000_000})
			if err != nil {
				t.Fatal(err)
			}
			var uploads, batches sync.WaitGroup
			uploaded := make(chan struct{})
			for k := range 4 {
				key, err := admin.CreateKey(t.Context(), fmt.Sprint("analyst ", k), "analyst")
				if err != nil {
					t.Fatal(err)
				}
				c, err := client.New(p.url, key.Secret, client.WithRetries(0))
				if err != nil {
					t.Fatal(err)
				}
				batches.Go(func() { askBatches(t, c, card.ID, k, mib, uploaded) })
			}
			for k := range 2 { // as many as are received at a time
				uploads.Go(func() {
					_, err := admin.CreateHoldout(t.Context(), bytes.NewReader(files[k]), client.Settings{Name: fmt.Sprint("hostile ", k), Holdout: 0.5, Mechanism: "gaussian", Questions: 10})
					var why *client.Problem
					if err != nil && (!errors.As(err, &why) || why.Status != 409 && why.Status != 413 && why.Status != 422 && why.Status != 503) {
						t.Errorf("upload %d: %v", k, err)
					}
					t.Logf("upload %d: %v", k, err)
				})
			}
			uploads.Wait()
			close(uploaded)
			batches.Wait()
			if _, err := admin.Ask(t.Context(), card.ID, above(1)); err != nil {
				t.Errorf("after the uploads: %v\n%s", err, p.stderr)
			}
			if n := g.kills(t); n != 0 {
				t.Errorf("the kernel has killed %d processes of the group\n%s", n, p.stderr)
			}
			p.kill()
		})
	}
}

// askBatches asks large batches, one after the other, until the uploads are over.
func askBatches(t *testing.T, c *client.Client, id string, k, mib int, until chan struct{}) {
	for n := 0; ; n++ {
		queries := make([]any, mib/8)
		for i := range queries {
			queries[i] = map[string]any{"type": "mean", "of": fmt.Sprintf("log(abs(delay * distance) + %d.%d) * exp(delay / %d)", k, n, i+100), "range": []int{-3, 3}}
		}
		_, err := c.AskBatch(t.Context(), id, queries, false)
		if why := (*client.Problem)(nil); err != nil && !errors.As(err, &why) {
			t.Errorf("a batch beside the uploads: %v", err)
			return
		}
		select {
		case <-until:
			return
		default:
		}
	}
}
