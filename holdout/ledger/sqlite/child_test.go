//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// The test binary starts itself again as a child that can be killed or starved. The variables say what it does.
const (
	childRole = "HOLDOUTD_LEDGER_TEST_CHILD"
	childPath = "HOLDOUTD_LEDGER_TEST_PATH"
	childArg  = "HOLDOUTD_LEDGER_TEST_ARG"
)

// runChild does the child's work and ends the process; in the parent it returns at once.
func runChild() {
	role := os.Getenv(childRole)
	if role == "" {
		return
	}
	err := map[string]func(string) error{"write": childWrites, "serve": childServes, "starve": childStarves}[role](os.Getenv(childPath))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child starts the test binary in a role. Its stdout is returned; it is killed at the test's end if it still runs.
func child(t *testing.T, role, path, arg string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path, childArg+"="+arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, out
}

// childQuestions is more than a child can ask.
const childQuestions = 1 << 40

// childWrites asks new questions from several goroutines, until it is killed, and prints each receipt as soon as it
// has it: what a client would have seen.
func childWrites(path string) error {
	l, err := Open(context.Background(), path, ledger.Options{Key: testKey})
	if err != nil {
		return err
	}
	if err := l.CreateHoldout(context.Background(), testHoldout("ho_1", childQuestions, 0), nil); err != nil && !errors.Is(err, ledger.ErrExists) {
		return err
	}
	fmt.Println("open")
	var printing sync.Mutex
	var writers sync.WaitGroup
	for c := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				var r ledger.Receipt
				d := testDebit(fmt.Sprintf("%s/%d/%d", os.Getenv(childArg), c, i))
				err := l.Update(context.Background(), "ho_1", func(tx *ledger.Tx) error {
					spent := tx.Spent()["questions"]
					tx.SetState([]byte(strconv.FormatInt(spent+1, 10)))
					var err error
					r, err = tx.Append(d)
					return err
				})
				printing.Lock()
				if err != nil {
					fmt.Println("error:", err)
				} else {
					fmt.Printf("%s\t%s\n", d.Query, r.Body)
				}
				printing.Unlock()
			}
		})
	}
	writers.Wait()
	return nil
}

// childServes holds the ledger until it is killed, or a minute later.
func childServes(path string) error {
	l, err := Open(context.Background(), path, ledger.Options{Key: testKey})
	if err != nil {
		return err
	}
	fmt.Println("open")
	time.Sleep(time.Minute)
	return l.Close()
}

// childStarves lets the files not grow any more, as on a full disk, and then lets them.
func childStarves(path string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ) // writes fail with EFBIG instead
	l, err := Open(ctx, path, ledger.Options{Key: testKey})
	if err != nil {
		return err
	}
	if err := l.CreateHoldout(ctx, testHoldout("ho_1", childQuestions, 0), nil); err != nil {
		return err
	}
	if _, err := ask(l, ctx, "ho_1", testDebit("before")); err != nil {
		return err
	}
	var room syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	full := room
	full.Cur = 256 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return err
	}
	asked, failed := 0, 0
	for failed < 3 {
		if asked++; asked > 10000 {
			return errors.New("the disk never filled up")
		}
		_, err := ask(l, ctx, "ho_1", testDebit(strconv.Itoa(asked)))
		if errors.Is(err, ledger.ErrUnavailable) {
			failed++
		} else if err != nil {
			return err
		}
	}
	if err := l.Ready(ctx); !errors.Is(err, ledger.ErrUnavailable) {
		return fmt.Errorf("ready on a full disk: %w", err)
	}
	if body, ok, err := l.Answer(ctx, "ho_1", testDebit("before").Query); err != nil || !ok {
		return fmt.Errorf("replay on a full disk: %s %v %w", body, ok, err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	for l.Ready(ctx) != nil {
	}
	for i := 1; i <= asked; i++ {
		if _, err := ask(l, ctx, "ho_1", testDebit(strconv.Itoa(i))); err != nil && !errors.Is(err, ledger.ErrAnswered) {
			return err
		}
	}
	if q, err := spent(l, ctx, "ho_1"); q != int64(asked+1) || err != nil {
		return fmt.Errorf("spent %d for %d questions: %w", q, asked+1, err)
	}
	fmt.Println("starved after", asked-failed)
	return l.Close()
}

// lines reads what a child prints; the last line counts only if it is whole.
func lines(out io.Reader) <-chan string {
	ch := make(chan string)
	go func() {
		defer close(ch)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			ch <- strings.TrimSuffix(line, "\n")
		}
	}()
	return ch
}
