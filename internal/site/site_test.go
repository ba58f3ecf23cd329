package site

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestAnchors: one link works on a code host and here. The names are those that GitHub gives.
func TestAnchors(t *testing.T) {
	a := anchors{}
	for _, c := range [][2]string{
		{"In five minutes", "in-five-minutes"},
		{"2.1 `guess_and_check`, by two moments", "21-guess_and_check-by-two-moments"},
		{"What is a unit?", "what-is-a-unit"},
		{"p-values: when, and why", "p-values-when-and-why"},
		{"Größe", "größe"},
		{"What is a unit?", "what-is-a-unit-1"},
		{"a — b", "a--b"},
	} {
		if got := string(a.Generate([]byte(c[0]), 0)); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
}

// TestRender: links lead where the server has the file, words stay where it does not, and a page has nothing that a policy without
// styles and scripts forbids.
func TestRender(t *testing.T) {
	pages, err := Render(fstest.MapFS{
		"README.md":             {Data: []byte("# Program\n\nDoes it. And [more](docs/A.md#what-it-is).\n")},
		"docs/A.md":             {Data: []byte("# A & B\n\nSays `x < y` (3.5 of it). Then more.\n\n## What it is\n\n[f](format/README.md) [s](../x/y.go) [e](https://e.org) ![a figure](figures/f.svg)\n\n<script>alert(1)</script>\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n")},
		"docs/format/README.md": {Data: []byte("# F\n\n[back](../A.md) [folder](../proofs) [document](../../api/openapi.json)\n")},
		"docs/proofs/p.md":      {Data: []byte("# P\n")},
		"docs/figures/f.svg":    {Data: []byte("<svg/>")},
	}, []Guide{
		{Group: "Start", Link: Link{"/elsewhere", "A guide", "Says."}},
		{Group: "Run a server", Link: Link{"/docs/own", "Own", "Says."}, Body: "<p>its body</p>", Script: "/docs/own.js"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for url, wants := range map[string][]string{
		"/docs/own":           {"<p>its body</p>", `<script src="/docs/own.js" defer>`, `<li><a href="/docs/own" aria-current="page">Own</a></li>`},
		"/docs":               {`<a href="/docs/a">A &amp; B</a>`, `<dd class="small muted">Says x &lt; y (3.5 of it).</dd>`, `<a href="/elsewhere">A guide</a>`, `<a href="/docs/proofs/p">P</a>`},
		"/docs/readme":        {`<a href="/docs/a#what-it-is">more</a>`},
		"/docs/a":             {`href="/assets/style.css"`, `<a href="/docs" aria-current="page">Documentation</a>`, `<h2 id="what-it-is">`, `<a href="/docs/format">f</a> s <a href="https://e.org">e</a> <img src="/docs/figures/f.svg" alt="a figure">`, `<td align="right">2</td>`, "<code>x &lt; y</code>", `<table tabindex="0">`},
		"/docs/format":        {`<a href="/docs/a">back</a> <a href="/docs">folder</a> <a href="/openapi.json">document</a>`},
		"/docs/figures/f.svg": {"<svg/>"},
	} {
		for _, want := range wants {
			if !strings.Contains(string(pages[url].Body), want) {
				t.Errorf("%s lacks %s:\n%s", url, want, pages[url].Body)
			}
		}
	}
	for url, p := range pages {
		if body := string(p.Body); strings.Contains(body, "<script>") || strings.Contains(body, "style=") {
			t.Errorf("%s has what the policy forbids:\n%s", url, body)
		}
	}
}
