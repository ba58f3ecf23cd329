package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const switchable = `package main

import "fmt"

const scale = 1

type point[T any] struct{ x T }

func (p point[T]) shift(by int, _ string) (T, int) { return p.x, by + 1 }

func (*point[T]) name() string { return "a point" }

func first[T any](list ...T) T { return list[0] }

func tell(_, b string) { fmt.Println("told", b) }

func guarded() (text string) {
	defer func() { recover() }()
	panic("x")
}

func main() {
	x, n := point[int]{3}.shift(4, "")
	fmt.Println(x, n, (&point[int]{}).name(), first(5, 6), scale, guarded())
	tell("a", "b")
}
`

// TestSwitch: a program with faults that can be switched does what it did, and with each of them what the fault says. It would notice a fault that is planted in no form of
// the function, and a change of more than a body that is taken for one.
func TestSwitch(t *testing.T) {
	faults := []Fault{
		{Name: "shifts-back", Old: "by + 1", New: "by - 1"},
		{Name: "shifts-nothing", Old: "p.x, by", New: "p.x, 0*by"},
		{Name: "another-name", Old: `"a point"`, New: `"none"`},
		{Name: "last", Old: "list[0]", New: "list[len(list)-1]"},
		{Name: "tells-nobody", Old: `fmt.Println("told", b)`, New: `_ = b`},
		{Name: "scaled", Old: "scale = 1", New: "scale = 2"},
		{Name: "unguarded", Old: "recover() }", New: "_ = recover() }"},
		{Name: "with-more", Old: "func tell(", New: "var more int\n\nfunc tell("},
	}
	switched, rest, err := Switch(switchable, faults)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range rest {
		names = append(names, f.Name)
	}
	if want := []string{"scaled", "unguarded", "with-more"}; !slices.Equal(names, want) {
		t.Errorf("cannot be switched: %v, want %v", names, want)
	}
	beside, err := SwitchFile(switchable)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	for name, text := range map[string]string{"go.mod": "module program\n\ngo 1.26\n", "main.go": switched, "beside.go": beside} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", program)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, switched)
	}
	for name, want := range map[string]string{
		"":               "3 5 a point 5 1 \ntold b\n",
		"shifts-back":    "3 3 a point 5 1 \ntold b\n",
		"shifts-nothing": "3 1 a point 5 1 \ntold b\n",
		"another-name":   "3 5 none 5 1 \ntold b\n",
		"last":           "3 5 a point 6 1 \ntold b\n",
		"tells-nobody":   "3 5 a point 5 1 \n",
	} {
		run := exec.Command(program)
		run.Env = []string{SwitchVariable + "=" + name}
		if out, err := run.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("with %q: %v %q, want %q", name, err, out, want)
		}
	}
	if _, _, err := Switch("package", nil); err == nil {
		t.Error("a file that is no Go is switched")
	}
	if _, err := SwitchFile("package"); err == nil {
		t.Error("a file that is no Go has a package")
	}
}
