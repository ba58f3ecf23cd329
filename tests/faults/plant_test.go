//go:build faults

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	atOnce      = 2                // faults that are planted at the same time
	buildWithin = 10 * time.Minute // compiling from a cold cache on a busy machine takes a few of them
	testWithin  = 7 * time.Minute  // the named test: those of the tables take seconds, or patience where the fault is a hang
	patience    = "30s"            // what is waited for takes milliseconds, and two faults at a time make it seconds
)

// TestPlanted plants every fault, one at a time, in an overlay over the code: the package of the named test must still compile, and the
// test must run and fail. That it passes without the fault is what the ordinary run says.
//
// HOLDOUTD_CHANGED=COMMIT plants what concerns the files that differ from that commit's, and the entries that are new since then.
// HOLDOUTD_FAULTS=k/n plants every n-th of them only, from the k-th: a share for a machine that has little time. Default: all.
// It ends with a table: the areas, how many faults of each were planted and noticed, and how long that took.
func TestPlanted(t *testing.T) {
	all, err := Read(".")
	if err != nil {
		t.Fatal(err)
	}
	top := topOf(t)
	known := len(all)
	if commit := os.Getenv("HOLDOUTD_CHANGED"); commit != "" {
		before, changed := at(t, top, commit)
		all = since(all, before, changed)
	}
	if all, err = share(all, os.Getenv("HOLDOUTD_FAULTS")); err != nil {
		t.Fatal(err)
	}
	t.Logf("planting %d of %d faults", len(all), known)
	if os.Getenv("HOLDOUTD_PYTHON") == "" && slices.ContainsFunc(all, func(f Fault) bool { return f.Tags == "python" }) {
		t.Fatal("HOLDOUTD_PYTHON is not set, without which tests with the tag python notice nothing: run `make test-faults`, or set it to the output of scripts/python.sh")
	}
	said := &report{areas: map[string]*area{}}
	if os.Getenv(enginesVariable) == noEngines {
		all, said.without = withoutEngines(all)
	}
	places := make(chan struct{}, atOnce)
	t.Cleanup(func() { t.Log(said) })
	binaries := map[string]*binary{}
	key := func(f Fault) string { return f.Package + " " + f.Tags }
	for _, f := range all {
		b := binaries[key(f)]
		if b == nil {
			b = &binary{dir: t.TempDir()}
			binaries[key(f)] = b
		}
		b.faults = append(b.faults, f)
		b.left.Add(1)
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return strings.Compare(key(a), key(b)) }) // few binaries at a time
	for _, f := range all {
		t.Run(f.Area+"/"+f.Name, func(t *testing.T) {
			t.Parallel()
			shared := binaries[key(f)]
			defer shared.done()
			if f.Tags == enginesTag && os.Getenv(enginesVariable) == "" {
				t.Fatalf("%s is not set, without which tests with the tag %s notice nothing: set it to the output of scripts/engines.sh clickhouse18, or to %s to leave these faults out", enginesVariable, enginesTag, noEngines)
			}
			places <- struct{}{}
			defer func() { <-places }()
			begin := time.Now()
			built := begin
			defer func() { said.add(f, !t.Failed(), built.Sub(begin), time.Since(built)) }()
			f.mustBeNoticed(t, top, shared, func() { built = time.Now() })
		})
	}
}

// topOf is the repository's root.
func topOf(t *testing.T) string {
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// at reads the tables as they are in a commit, and names the files that differ from it.
func at(t *testing.T, top, commit string) (before []Fault, changed []string) {
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Stderr = top, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	changed = strings.Fields(git("diff", "--name-only", commit))
	for _, file := range strings.Fields(git("ls-tree", "--name-only", commit, "tests/faults/")) {
		if filepath.Ext(file) == ".txt" {
			faults, err := Parse(filepath.Base(file), git("show", commit+":"+file))
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, faults...)
		}
	}
	return before, changed
}

// report is what became of the faults of each area.
type report struct {
	sync.Mutex
	areas   map[string]*area
	missed  []string
	without []string // names of faults that were left out, as there are no engines
}

type area struct {
	planted, noticed int
	built, tested    time.Duration
}

func (r *report) add(f Fault, noticed bool, built, tested time.Duration) {
	r.Lock()
	defer r.Unlock()
	a := r.areas[f.Area]
	if a == nil {
		a = &area{}
		r.areas[f.Area] = a
	}
	a.planted++
	a.built += built
	a.tested += tested
	if noticed {
		a.noticed++
	} else {
		r.missed = append(r.missed, f.Area+"/"+f.Name)
	}
}

func (r *report) String() string {
	var b strings.Builder
	line := func(name string, a area) {
		fmt.Fprintf(&b, "%-14s %7d %7d %9.0f %9.0f\n", name, a.planted, a.noticed, a.built.Seconds(), a.tested.Seconds())
	}
	fmt.Fprintf(&b, "\n%-14s %7s %7s %9s %9s\n", "area", "planted", "noticed", "s to build", "s to test")
	var all area
	for _, name := range slices.Sorted(maps.Keys(r.areas)) {
		a := *r.areas[name]
		line(name, a)
		all = area{all.planted + a.planted, all.noticed + a.noticed, all.built + a.built, all.tested + a.tested}
	}
	line("all", all)
	for _, name := range r.missed {
		fmt.Fprintf(&b, "not noticed: go test -tags faults ./tests/faults -run 'TestPlanted/%s$'\n", name)
	}
	if len(r.without) > 0 {
		fmt.Fprintf(&b, "not planted, as %s is %s; make test-all plants them: %s\n", enginesVariable, noEngines, strings.Join(r.without, " "))
	}
	return b.String()
}

// mustBeNoticed plants the fault and runs its test. It calls built in between.
func (f Fault) mustBeNoticed(t *testing.T, top string, shared *binary, built func()) {
	if shared.has(t, f) {
		built()
		if err := f.run(t, top, shared.path, shared.overlay, SwitchVariable+"="+f.Name); err == nil {
			return
		}
		// Its test may have started a program with an environment of its own.
	}
	dir := t.TempDir()
	planted, err := f.Plant(read(t, filepath.Join(top, f.File)))
	if err != nil {
		t.Fatal(err)
	}
	overlay := overlay(t, dir, map[string]string{filepath.Join(top, f.File): planted})
	path := filepath.Join(dir, "tests")
	if out, err := f.build(t, top, overlay, path); err != nil {
		t.Fatalf("with this fault %s does not compile, so that no test is asked: change the entry (%v)\n%s", f.Package, err, out)
	}
	built()
	if err := f.run(t, top, path, overlay); err != nil {
		t.Fatal(err)
	}
}

// binary is that of a package's tests, with all faults that can be switched.
type binary struct {
	faults        []Fault
	dir           string
	path, overlay string
	names         map[string]bool // of the faults that it has
	once          sync.Once
	left          atomic.Int64 // faults that are still to be planted
}

// has builds the binary, and reports whether the fault is in it.
func (b *binary) has(t *testing.T, f Fault) bool {
	b.once.Do(func() {
		if err := b.make(t); err != nil {
			t.Logf("the faults of %s are planted one by one: %v", f.Package, err)
			b.names = nil
		}
	})
	return b.names[f.Name]
}

func (b *binary) make(t *testing.T) error {
	top := topOf(t)
	b.names = map[string]bool{}
	byFile := map[string][]Fault{}
	for _, f := range b.faults {
		if filepath.Ext(f.File) == ".go" && !strings.HasSuffix(f.File, "_test.go") {
			byFile[f.File] = append(byFile[f.File], f)
		}
	}
	replaced := map[string]string{}
	for file, faults := range byFile {
		text := read(t, filepath.Join(top, file))
		switched, rest, err := Switch(text, faults)
		if err != nil {
			return err
		}
		if len(rest) == len(faults) {
			continue
		}
		beside, err := SwitchFile(text)
		if err != nil {
			return err
		}
		replaced[filepath.Join(top, file)] = switched
		replaced[filepath.Join(top, filepath.Dir(file), "planted_fault.go")] = beside
		for _, f := range faults {
			b.names[f.Name] = !slices.Contains(rest, f)
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	b.path, b.overlay = filepath.Join(b.dir, "tests"), overlay(t, b.dir, replaced)
	if out, err := b.faults[0].build(t, top, b.overlay, b.path); err != nil {
		return fmt.Errorf("%v\n%s", err, out)
	}
	return nil
}

// done removes the binary after its last fault.
func (b *binary) done() {
	if b.left.Add(-1) == 0 {
		os.RemoveAll(b.dir)
	}
}

func read(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// overlay writes what stands in place of files, and the list that go build takes.
func overlay(t *testing.T, dir string, replaced map[string]string) string {
	list := map[string]string{}
	for file, text := range replaced {
		list[file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(list)))
		if err := os.WriteFile(list[file], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": list})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// build compiles the tests of the fault's package.
func (f Fault) build(t *testing.T, top, overlay, path string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), buildWithin)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-ldflags=-s -w", "-overlay", overlay, "-tags", f.Tags+",nomsgpack", "-o", path, f.Package)
	build.Dir = top
	return build.CombinedOutput()
}

// run runs the fault's test, which must fail: the error says that it does not.
func (f Fault) run(t *testing.T, top, path, overlay string, env ...string) error {
	ctx, cancel := context.WithTimeout(t.Context(), testWithin+time.Minute)
	defer cancel()
	args := []string{"-test.v", "-test.count=1", "-test.timeout=" + testWithin.String(), "-test.run=" + anchored(f.Test)}
	if strings.Contains(read(t, path), "rapid.nofailfile") {
		args = append(args, "-rapid.nofailfile") // what a planted fault breaks is no example to keep
	}
	run := exec.CommandContext(ctx, path, args...)
	run.Dir = filepath.Join(top, f.Package)
	run.Env = append(os.Environ(), "HOLDOUTD_PATIENCE="+patience, "GOFLAGS=-overlay="+overlay) // for tests that build the program themselves
	run.Env = append(run.Env, env...)
	out, err := run.CombinedOutput()
	switch {
	case !bytes.Contains(out, []byte("=== RUN   "+f.Test+"\n")):
		return fmt.Errorf("%s did not run: %v\n%s", f.Test, err, tail(out))
	case bytes.Contains(out, []byte("panic: test timed out")) || ctx.Err() != nil:
		return fmt.Errorf("%s did not end within %v: a fault is noticed by an assertion\n%s", f.Test, testWithin, tail(out))
	case err == nil:
		return fmt.Errorf("%s passes although %s\n%s", f.Test, f.What, tail(out))
	}
	return nil
}

// anchored writes a test's name as the pattern that admits it alone.
func anchored(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// tail is the end of an output: the last lines say what happened.
func tail(out []byte) []byte {
	const most = 4000
	return out[max(0, len(out)-most):]
}
