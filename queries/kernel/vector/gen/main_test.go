package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated: the assembly and its declarations are what the descriptions say. It would notice an edit by hand, and a description that was changed without go generate.
func TestGenerated(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what gen writes: go generate ./queries/kernel/vector", name)
		}
	}
}
