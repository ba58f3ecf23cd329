package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFindings: each script of findings/ has the form that docs/TESTING.md states, as far as its text shows it.
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("../findings/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	install := regexp.MustCompile(`(?m)pip" install (.*)$`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		head, _, _ := strings.Cut(text, "set -euo pipefail\nfolder=$(mktemp -d)\ntrap 'rm -rf \"$folder\"' EXIT\n")
		version := regexp.MustCompile(`^#!/usr/bin/env bash\n# \S+ (\d[\d.]*): `).FindStringSubmatch(head)
		switch installed := install.FindStringSubmatch(text); {
		case len(head) == len(text):
			t.Errorf("%s: no temporary folder that is removed at the end", file)
		case version == nil || !strings.Contains(head, "# Seen: ") || !strings.Contains(head, " Expected: "):
			t.Errorf("%s: the head does not say the library with its version, what is seen and what was expected", file)
		case installed == nil:
			t.Errorf("%s: installs nothing", file)
		case !strings.Contains(installed[1], "=="+version[1]):
			t.Errorf("%s: does not install the version %s of its head", file, version[1])
		default:
			for _, word := range strings.Fields(installed[1]) {
				if !strings.HasPrefix(word, "--") && !strings.Contains(word, "==") {
					t.Errorf("%s: %s has no version", file, word)
				}
			}
		}
		if !strings.Contains(text, "__version__") || !strings.Contains(text, `else "this has changed"`) {
			t.Errorf("%s: does not print the version, or does not fail where the behaviour has changed", file)
		}
		if strings.Contains(text, "holdoutd") {
			t.Errorf("%s: uses this product", file)
		}
		if info, err := os.Stat(file); err != nil || info.Mode()&0o100 == 0 || filepath.Ext(file) != ".sh" {
			t.Errorf("%s: no shell script that can be started: %v", file, err)
		}
	}
}
