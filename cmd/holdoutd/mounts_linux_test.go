package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// secondWay mounts a folder at another one by bindfs, a file system of FUSE: locks do not reach through it, and each side has its own memory of the log's index. Where there is no
// bindfs, or nobody may mount, there is no second way, and the test is skipped.
func secondWay(t *testing.T) (dir, byMount string) {
	t.Helper()
	base := t.TempDir()
	folder, mount := filepath.Join(base, "folder"), filepath.Join(base, "mount")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(mount, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bindfs", folder, mount).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted by bindfs here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("fusermount", "-u", mount).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v %s", err, out)
		}
	})
	return filepath.Join(folder, "data"), filepath.Join(mount, "data")
}

// TestOneServerByTwoWays: a server behind a mount keeps its ledger from another one by the folder itself, by name. When it stands still it loses the ledger; when it goes on again, and when it
// ends, it changes nothing of what the other has, whose index of the log it has in its memory, too. It would notice two servers that tell two answers with one place.
func TestOneServerByTwoWays(t *testing.T) {
	folder, mount := secondWay(t)
	first := startServer(t, mount)
	at := connect(t, first, mount)
	card, err := at.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	told, asked := map[int]string{}, 0
	answer := func(c *client.Client, n int) (string, error) {
		reply, err := c.Ask(t.Context(), card.ID, above(n))
		body, _ := json.Marshal(reply.Answer)
		return string(body), err
	}
	ask := func(c *client.Client, n int) {
		t.Helper()
		for range n {
			body, err := answer(c, asked)
			if err != nil {
				t.Fatalf("question %d: %v\n%s", asked, err, first.stderr)
			}
			told[asked] = body
			asked++
		}
	}
	ask(at, 100)
	_, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", folder)
	if says := fmt.Sprintf("process %d on ", first.cmd.Process.Pid); code != 1 || !strings.Contains(errs, says) || !strings.Contains(errs, mount) {
		t.Fatalf("a second server by the folder itself: %d %s", code, errs)
	}
	ask(at, 10)

	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, folder)
	now := connect(t, second, folder)
	ask(now, 100)
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		var why *client.Problem
		if _, err := answer(at, 1000+n); !errors.As(err, &why) || why.Status != 503 {
			t.Errorf("the first server, which has lost its ledger: %v", err)
		}
		ask(now, 5)
	}
	if code := first.stop(t); code != 0 && code != 1 {
		t.Errorf("the first server ends with %d\n%s", code, first.stderr)
	}
	ask(now, 100)
	for n, body := range told {
		if again, err := answer(now, n); err != nil || again != body {
			t.Errorf("question %d: %s %v, told %s", n, again, err, body)
		}
	}
	if code := second.stop(t); code != 0 {
		t.Errorf("the second server ends with %d\n%s", code, second.stderr)
	}
	if out, errs, code := holdoutd(t, "verify", folder); code != 0 {
		t.Errorf("verify: %d %s%s", code, out, errs)
	}
}
