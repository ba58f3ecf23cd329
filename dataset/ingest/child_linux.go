package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxOpenFiles is enough for the upload, the dataset and the runtime.
const maxOpenFiles = 64

// limitsSet is what a child says once its limits are set: memory that it lacks before is the machine's, memory that it lacks after is that of its limit.
const limitsSet = "ingest: the limits are set\n"

// firstToGo is the oom_score_adj of a process that the kernel ends before any other where memory is short.
const firstToGo = "1000"

// limitProcess limits this process. RLIMIT_DATA bounds its private writable memory; RLIMIT_AS would count the address
// space that the Go runtime reserves without using it, and kill every Go program. What the runtime and the stacks of threads have mapped by
// now, some 200 MiB of which 7 are used, is beside the limit: else a small one would be used up before anything is read.
//
// The kernel lets a piece that takes the place of a reservation, as all of the heap does, go beyond RLIMIT_DATA once, however large it is. So the
// limit is lower by the largest piece, largestPiece, that the decoder takes at once.
func limitProcess(lim Limits) error {
	// Where others take the memory that was meant for this process, it is to go, and not the server. Every process may raise its own
	// score; where /proc cannot be written the limits below hold all the same.
	os.WriteFile("/proc/self/oom_score_adj", []byte(firstToGo), 0)
	startThreads()
	data, err := mappedData()
	if err != nil {
		return err
	}
	data += uint64(lim.MemoryBytes - largestPiece(lim.MemoryBytes))
	// Where the machine itself would not give so much (ulimit -v, strict overcommit), that is not the file's doing.
	probe, err := unix.Mmap(-1, 0, int(lim.MemoryBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("%d MiB of memory: %w", lim.MemoryBytes>>20, err)
	}
	if err := unix.Munmap(probe); err != nil {
		return err
	}
	// Without this the signal would end the process before the write could return EFBIG.
	signal.Ignore(syscall.SIGXFSZ)
	seconds := uint64(max((lim.CPU+time.Second-1)/time.Second, 1))
	for _, r := range []struct {
		name     string
		resource int
		soft     uint64
		hard     uint64
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, maxOpenFiles, maxOpenFiles},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, uint64(lim.MaxOutputBytes), uint64(lim.MaxOutputBytes)},
		{"RLIMIT_DATA", unix.RLIMIT_DATA, data, data},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, seconds, seconds + 1},
	} {
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: r.soft, Max: r.hard}); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	_, err = os.Stderr.WriteString(limitsSet)
	return err
}

// threads are more than the decoder needs at a time, with those that wait for the disk.
const threads = 8

// startThreads starts threads, which stay for later use: their stacks, of 8 MiB each where the C library makes them, are mapped before they would count.
func startThreads() {
	var all sync.WaitGroup
	all.Add(threads)
	for range threads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait() // so that each has its own
		}()
	}
	all.Wait()
}

// mappedData is the private writable memory that this process has mapped, in bytes: what RLIMIT_DATA bounds.
func mappedData() (bytes uint64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, line, _ := strings.Cut(string(status), "\nVmData:")
	if _, err := fmt.Sscanf(line, "%d kB", &bytes); err != nil {
		return 0, fmt.Errorf("VmData in /proc/self/status: %w", err)
	}
	return bytes << 10, nil
}

// runChild starts the child and waits for it.
func runChild(ctx context.Context, argv []string, req request) (Result, error) {
	if len(argv) == 0 {
		return Result{}, &Error{Kind: Internal, Detail: "no command for the decoding process"}
	}
	input, err := json.Marshal(req)
	if err != nil {
		return Result{}, &Error{Kind: Internal, Detail: "the request cannot be written", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, req.Limits.Wall)
	defer cancel()
	// Pdeathsig is sent when the thread that started the child ends, so this goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	stdout, stderr := &capped{limit: maxReplyBytes}, &capped{limit: maxMessageBytes}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// Two threads decode, or one does and one collects its garbage: each has a stack, which counts as memory, and a machine can have a hundred processors.
	cmd.Env = []string{"GOTRACEBACK=single", "GOMAXPROCS=2"}
	if detector := os.Getenv("GORACE"); detector != "" { // of a build under the race detector, which else sleeps for a second at the end
		cmd.Env = append(cmd.Env, "GORACE="+detector)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // for pipes that a grandchild might hold open
	err = cmd.Run()
	switch {
	case ctx.Err() != nil && err != nil:
		return Result{}, &Error{Kind: Limit, Detail: "decoding the file took too long and was stopped", Err: ctx.Err()}
	case err != nil:
		return Result{}, died(err, string(stderr.bytes), req.Limits)
	case stdout.over:
		return Result{}, &Error{Kind: Internal, Detail: "the decoding process said too much"}
	}
	return readReply(stdout.bytes)
}

// died says why a child ended without a reply.
func died(err error, stderr string, lim Limits) error {
	stderr, set := strings.CutPrefix(stderr, limitsSet)
	first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	cause := err
	if first != "" {
		cause = fmt.Errorf("%w: %s", err, first)
	}
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		if machineFault(err) && !errors.Is(err, syscall.ENOENT) {
			return &Error{Kind: Unavailable, Detail: "the server cannot start a decoding process now; send the file again", Err: err}
		}
		return &Error{Kind: Internal, Detail: "the decoding process cannot be started", Err: err}
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case set && (strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory") ||
		strings.Contains(stderr, "errno: 12") || // of the race detector
		strings.HasPrefix(first, "SIGSEGV: ")): // within the runtime, which does not look at each allocation; in the decoder it is a panic
		return &Error{Kind: Limit, Err: cause, Detail: fmt.Sprintf("decoding the file needs more memory than the %d MiB that are allowed; write it with smaller row groups and pages, or give the server more memory", lim.MemoryBytes>>20)}
	case exit.UserTime()+exit.SystemTime() >= lim.CPU:
		return &Error{Kind: Limit, Detail: "decoding the file took more computing time than is allowed", Err: cause}
	case strings.HasPrefix(first, "panic: "), strings.Contains(stderr, "stack overflow"), strings.Contains(stderr, "[signal SIGSEGV"):
		return &Error{Kind: Damaged, Detail: "the file ended the decoding process", Err: cause}
	case status.Signaled():
		// Its own limits end the process otherwise, see above: this came from outside.
		return &Error{Kind: Unavailable, Err: cause, Detail: "the decoding process was killed from outside, probably because the machine, or the server's control group, is short of memory. " +
			"Send the file again; where that does not help, give the server more memory, or a smaller --memory"}
	}
	return &Error{Kind: Unavailable, Detail: "the server's disk or system ended the decoding process; send the file again. The server's log says how it ended", Err: cause}
}
