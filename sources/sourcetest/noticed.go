package sourcetest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// T is a test with tests in it: one that counts, or one of which it is only noted whether it fails ([Noticed]).
type T interface {
	testing.TB
	Run(name string, f func(T)) bool
}

// tests are those of package testing.
type tests struct{ *testing.T }

func (t tests) Run(name string, f func(T)) bool {
	return t.T.Run(name, func(t *testing.T) { f(tests{t}) })
}

// Noticed runs the suite on a source that is at fault and returns what first failed in each test that did, by the test's name: what the suite is worth. It runs the tests of some names, or all. t does not fail of it.
func Noticed(t testing.TB, o Options, only ...string) map[string]string {
	notes := &notes{failed: map[string]string{}}
	run(&noted{TB: t, notes: notes}, o, only...)
	return notes.failed
}

type notes struct {
	lock   sync.Mutex
	failed map[string]string
}

// noted is a test of which it is noted that it failed.
type noted struct {
	testing.TB
	notes    *notes
	name     string
	lock     sync.Mutex
	failed   bool
	cleanups []func()
}

func (n *noted) note(text string) {
	n.lock.Lock()
	n.failed = true
	n.lock.Unlock()
	n.notes.lock.Lock()
	defer n.notes.lock.Unlock()
	if n.notes.failed[n.name] == "" {
		n.notes.failed[n.name] = text
	}
}

func (n *noted) Error(args ...any)                 { n.note(fmt.Sprint(args...)) }
func (n *noted) Errorf(format string, args ...any) { n.note(fmt.Sprintf(format, args...)) }
func (n *noted) Fail()                             { n.note("failed") }
func (n *noted) FailNow()                          { n.note("failed"); runtime.Goexit() }
func (n *noted) Fatal(args ...any)                 { n.note(fmt.Sprint(args...)); runtime.Goexit() }
func (n *noted) Fatalf(format string, args ...any) {
	n.note(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (n *noted) Failed() bool {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.failed
}

func (n *noted) Cleanup(f func()) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.cleanups = append(n.cleanups, f)
}

// Run runs a test in a goroutine of its own, which FailNow ends.
func (n *noted) Run(name string, f func(T)) bool {
	within := &noted{TB: n.TB, notes: n.notes, name: name}
	if n.name != "" {
		within.name = n.name + "/" + name
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			for _, cleanup := range slices.Backward(within.cleanups) {
				cleanup()
			}
		}()
		f(within)
	}()
	<-ended
	if within.Failed() && n.name != "" {
		n.note(within.name + " failed")
	}
	return !within.Failed()
}
