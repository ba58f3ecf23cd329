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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxOpenFiles is enough for the upload, the dataset and the runtime.
const maxOpenFiles = 64

// limitProcess limits this process. RLIMIT_DATA bounds its private writable memory; RLIMIT_AS would count the address
// space that the Go runtime reserves without using it, and kill every Go program.
func limitProcess(lim Limits) error {
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
		{"RLIMIT_DATA", unix.RLIMIT_DATA, uint64(lim.MemoryBytes), uint64(lim.MemoryBytes)},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, seconds, seconds + 1},
	} {
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: r.soft, Max: r.hard}); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// childFile is the path under which the child finds the file that it was given open.
const childFile = "/proc/self/fd/3"

// runChild starts the child and waits for it.
func runChild(ctx context.Context, argv []string, req request) (reply, error) {
	if len(argv) == 0 {
		return reply{}, &Error{Kind: Internal, Detail: "no command for the decoding process"}
	}
	input, err := json.Marshal(req)
	if err != nil {
		return reply{}, &Error{Kind: Internal, Detail: "the request cannot be written", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, req.Limits.Wall)
	defer cancel()
	// Pdeathsig is sent when the thread that started the child ends, so this goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	stdout, stderr := &capped{limit: maxReplyBytes}, &capped{limit: maxMessageBytes}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"GOTRACEBACK=single"}
	if detector := os.Getenv("GORACE"); detector != "" { // of a build under the race detector, which else sleeps for a second at the end
		cmd.Env = append(cmd.Env, "GORACE="+detector)
	}
	if req.file != nil {
		cmd.ExtraFiles = []*os.File{req.file}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // for pipes that a grandchild might hold open
	err = cmd.Run()
	switch {
	case ctx.Err() != nil && err != nil:
		return reply{}, &Error{Kind: Limit, Detail: "decoding the file took too long and was stopped", Err: ctx.Err()}
	case err != nil:
		return reply{}, died(err, string(stderr.bytes), req.Limits)
	case stdout.over:
		return reply{}, &Error{Kind: Internal, Detail: "the decoding process said too much"}
	}
	return readReply(stdout.bytes)
}

// died says why a child ended without a reply.
func died(err error, stderr string, lim Limits) error {
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
	case strings.Contains(stderr, "out of memory"), strings.Contains(stderr, "cannot allocate memory"),
		strings.Contains(stderr, "errno=12"), strings.Contains(stderr, "errno: 12"):
		return &Error{Kind: Limit, Detail: "decoding the file needs more memory than is allowed; write it with smaller row groups and pages", Err: cause}
	case exit.UserTime()+exit.SystemTime() >= lim.CPU:
		return &Error{Kind: Limit, Detail: "decoding the file took more computing time than is allowed", Err: cause}
	case status.Signaled() && status.Signal() != syscall.SIGSEGV && status.Signal() != syscall.SIGBUS && status.Signal() != syscall.SIGABRT:
		// Its own limits end the process otherwise, see above: this came from outside.
		return &Error{Kind: Unavailable, Detail: "the decoding process was killed from outside, probably because the machine is short of memory; send the file again", Err: cause}
	case strings.HasPrefix(first, "ingest: no request"):
		return &Error{Kind: Internal, Detail: "the decoding process got no request", Err: cause}
	}
	return &Error{Kind: Damaged, Detail: "the file ended the decoding process", Err: cause}
}
