package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/holdoutd/holdoutd/dataset"
)

// request is what the parent writes to the child's standard input.
type request struct {
	Path   string                  `json:"path,omitempty"`
	Root   string                  `json:"root,omitempty"`  // a directory, and
	Files  []PartFile              `json:"files,omitempty"` // files of one table in it, in the place of Path
	Dir    string                  `json:"dir"`
	Limits Limits                  `json:"limits"`
	As     map[string]dataset.Kind `json:"as,omitempty"`
}

// reply is what the child writes to its standard output: one of the two.
type reply struct {
	Result *Result `json:"result,omitempty"`
	Error  *failed `json:"error,omitempty"`
}

// failed is an [Error] on its way from the child.
type failed struct {
	Kind   Kind   `json:"kind"`
	Column string `json:"column,omitempty"`
	Detail string `json:"detail"`
	Cause  string `json:"cause,omitempty"`
}

const (
	// maxReplyBytes bounds what the parent reads: 16,384 names and reasons in the reply take about 2 MB.
	maxReplyBytes = 64 << 20
	// maxMessageBytes bounds what the parent keeps of a dying child's standard error.
	maxMessageBytes = 64 << 10
	// memoryReserve is what the child's soft memory limit leaves below its hard one, for stacks and the runtime.
	memoryReserve = 64 << 20
)

// ChildMain is the main function of the child process that [Run] starts. It reads a request from standard input,
// limits its own resources, decodes, and writes the reply to standard output. It returns the exit code, which is 0
// whenever a reply was written.
func ChildMain() int {
	var req request
	if err := json.NewDecoder(io.LimitReader(os.Stdin, maxReplyBytes)).Decode(&req); err != nil {
		fmt.Fprintln(os.Stderr, "ingest: no request on standard input; this command is for the server's own use:", err)
		return 2
	}
	lim := req.Limits.withDefaults()
	// The collector works harder from here on, so that garbage alone never reaches the hard limit.
	debug.SetMemoryLimit(max(lim.MemoryBytes-largestPiece(lim.MemoryBytes)-memoryReserve, lim.MemoryBytes/2))
	if err := limitProcess(lim); err != nil {
		kind := Internal
		if machineFault(err) {
			kind = Unavailable
		}
		return answer(Result{}, &Error{Kind: kind, Detail: "the limits of the decoding process cannot be set; the server is short of memory, or runs with limits of its own", Err: err})
	}
	// A service manager signals the whole group when it stops the server, which ends its children itself.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if len(req.Files) > 0 {
		return answer(filesOf(req.Root, req.Files, req.Dir, lim))
	}
	return answer(DecodeAs(context.Background(), req.Path, req.Dir, lim, req.As))
}

func answer(res Result, err error) int {
	rep := reply{Result: &res}
	if err != nil {
		rep = reply{Error: &failed{Kind: Internal, Detail: "the file could not be decoded", Cause: err.Error()}}
		if e := (*Error)(nil); errors.As(err, &e) {
			rep.Error = &failed{Kind: e.Kind, Column: e.Column, Detail: e.Detail}
			if e.Err != nil {
				rep.Error.Cause = e.Err.Error()
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(rep); err != nil {
		return 1
	}
	return 0
}

// Run decodes the Parquet file at path into dir, which must not exist, as [Decode] does, but in a child process with
// the limits of lim. argv is the command of the child, whose main function must call [ChildMain]; it gets the
// request on standard input and nothing of this process's environment. When ctx ends or lim.Wall has passed the
// child and what it started are killed. On success the dataset in dir was opened and verified by this process; after
// an error, which is an [*Error], dir does not exist.
func Run(ctx context.Context, argv []string, path, dir string, lim Limits) (Result, error) {
	res, t, err := RunAs(ctx, argv, path, dir, lim, nil)
	if err != nil {
		return Result{}, err
	}
	if err := t.Close(); err != nil {
		return Result{}, errorsJoin(&Error{Kind: Internal, Detail: "the decoded dataset cannot be closed", Err: err}, os.RemoveAll(dir))
	}
	return res, nil
}

// filesOf is [Join], or [Decode] of one file, of files in a directory.
func filesOf(directory string, files []PartFile, dir string, lim Limits) (res Result, err error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return Result{}, &Error{Kind: Unavailable, Detail: "the directory of the files cannot be read", Err: err}
	}
	defer root.Close()
	if len(files) == 1 && len(files[0].Keys) == 0 {
		res, err = files[0].decode(context.Background(), root, dir, lim, nil)
		return res, files[0].blamed(err)
	}
	return joinIn(context.Background(), root, files, dir, lim, func(int) {})
}

// RunFiles is Run by [Join]: the rows of all files, one behind another, whose paths are within a directory. Nothing outside of it is read, whatever links become of the paths meanwhile, and no file that was changed since
// its Size and Modified were looked at. It returns the dataset as [RunAs] does.
func RunFiles(ctx context.Context, argv []string, root string, files []PartFile, dir string, lim Limits) (Result, *dataset.Table, error) {
	return runRequest(ctx, argv, request{Root: root, Files: files, Dir: dir, Limits: lim.withDefaults()})
}

// RunAs is Run by [DecodeAs]. It returns the dataset as it was opened to be verified, which takes a look at every value; the caller closes it.
func RunAs(ctx context.Context, argv []string, path, dir string, lim Limits, as map[string]dataset.Kind) (Result, *dataset.Table, error) {
	return runRequest(ctx, argv, request{Path: path, Dir: dir, Limits: lim.withDefaults(), As: as})
}

func runRequest(ctx context.Context, argv []string, req request) (Result, *dataset.Table, error) {
	dir := req.Dir
	if _, err := os.Lstat(dir); err == nil {
		return Result{}, nil, &Error{Kind: Internal, Detail: "the dataset cannot be written", Err: fmt.Errorf("%s exists", dir)}
	}
	run := runChild
	if slices.Equal(argv, InProcess()) {
		run = runHere
	}
	res, err := run(ctx, argv, req)
	var t *dataset.Table
	if err == nil {
		t, err = verified(dir, res)
	}
	if err != nil {
		return Result{}, nil, errorsJoin(err, errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+partsSuffix)))
	}
	return res, t, nil
}

// InProcess stands for the command of a child where this process is to decode, which no limit of memory or time then ends: for files of your own.
func InProcess() []string { return []string{"(this process)"} }

// runHere decodes in this process.
func runHere(ctx context.Context, _ []string, req request) (Result, error) {
	if len(req.Files) > 0 {
		return filesOf(req.Root, req.Files, req.Dir, req.Limits)
	}
	return DecodeAs(ctx, req.Path, req.Dir, req.Limits, req.As)
}

// verified opens what the child wrote and compares it with what the child said.
func verified(dir string, res Result) (*dataset.Table, error) {
	t, err := dataset.Open(dir)
	if err != nil {
		return nil, &Error{Kind: Internal, Detail: "the decoded dataset cannot be opened", Err: err}
	}
	if int64(t.Rows()) != res.Rows || !slices.Equal(t.Schema().Fields, res.Schema.Fields) {
		return nil, errorsJoin(&Error{Kind: Internal, Detail: "the decoded dataset is not the one that the decoding process described"}, t.Close())
	}
	return t, nil
}

// readReply makes a result or an error of the child's output.
func readReply(stdout []byte) (Result, error) {
	var rep reply
	if err := json.Unmarshal(stdout, &rep); err != nil || (rep.Result == nil) == (rep.Error == nil) {
		return Result{}, &Error{Kind: Internal, Detail: "the decoding process gave no reply", Err: err}
	}
	if f := rep.Error; f != nil {
		e := &Error{Kind: f.Kind, Column: f.Column, Detail: f.Detail}
		if f.Cause != "" {
			e.Err = errors.New(f.Cause)
		}
		return Result{}, e
	}
	return *rep.Result, nil
}

// capped keeps the first bytes that are written to it and takes the rest in silence, so that the child never
// blocks on a full pipe.
type capped struct {
	bytes []byte
	limit int
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.limit-len(c.bytes))
	c.bytes = append(c.bytes, p[:n]...)
	c.over = c.over || n < len(p)
	return len(p), nil
}
