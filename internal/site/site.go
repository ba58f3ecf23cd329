// Package site makes web pages of the documentation, for a server that is asked at /docs. The pages are in the web application's frame: its
// header, fonts and colours are those of its own style sheet, which they load beside one for prose. They load nothing from elsewhere, have no
// script and no style within them, and link to each other where the files do.
//
// The Markdown is read by goldmark (docs/decisions/0005-markdown.md). The headings have the anchors that code hosts give them, so that one
// link works in both places.
package site

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Root is the address of the contents.
const Root = "/docs"

//go:embed frame.html
var frame string

var templates = template.Must(template.New("frame").Parse(frame))

// A Page is a reply.
type Page struct {
	Media string // its Content-Type
	Body  []byte
}

// Link is a line of the contents.
type Link struct {
	URL, Title, Says string
}

// Group is a part of the contents.
type Group struct {
	Title string
	Links []Link
	Open  bool // whether the page that shows the contents is in it
}

// A Guide is a page that is not made of a file, for the contents.
type Guide struct {
	Group  string
	Link   Link
	Body   template.HTML // what is in the frame; empty where something else serves the address
	Script string        // the address of a script that the page needs, or ""
}

// shown is what the templates show.
type shown struct {
	document
	URL    string
	Script string
	Docs   bool // whether it is part of the documentation
	Groups []Group
}

// groups are the parts of the contents, in order. A file or a folder that none names is in the last one.
var groups = []struct {
	title string
	files []string
}{
	{"Start", []string{"README.md", "docs/TUTORIAL.md", "python/README.md", "docs/CHOOSING.md", "docs/SELECTING-MODELS.md", "docs/AGENTS.md", "docs/GLOSSARY.md"}},
	{"Ask", []string{"docs/QUERIES.md", "docs/EXPRESSIONS.md", "docs/MODELS.md", "docs/examples"}},
	{"What is promised", []string{"docs/GUARANTEES.md", "docs/MECHANISMS.md", "docs/BOUNDS.md", "docs/EXPERIMENTS.md", "docs/CERTIFY.md", "docs/DP.md"}},
	{"Proofs", []string{"docs/proofs"}},
	{"Run a server", []string{"docs/OPERATIONS.md", "docs/COMMANDS.md", "docs/SECURITY.md", "docs/API.md", "docs/PERFORMANCE.md", "docs/SCALE.md"}},
	{"Inside", []string{"CHANGELOG.md", "docs/ARCHITECTURE.md", "docs/LIBRARY.md", "docs/TESTING.md", "docs/FAULTS.md", "docs/format", "docs/decisions"}},
}

// URL is the address of a file: lower case, without its ending where it is a page. docs/format/README.md is the page of its folder.
func URL(file string) string {
	name := strings.TrimPrefix(file, "docs/")
	if path.Ext(name) != ".md" {
		return Root + "/" + strings.TrimPrefix(name, "python/src/holdoutd/")
	}
	name = strings.ToLower(strings.TrimSuffix(name, ".md"))
	if folder, last := path.Split(name); last == "readme" && folder != "" {
		name = strings.TrimSuffix(folder, "/")
	}
	return Root + "/" + name
}

// URLs are the addresses of what Render makes, sorted.
func URLs(files fs.FS, guides []Guide) ([]string, error) {
	names, err := list(files)
	if err != nil {
		return nil, err
	}
	urls := []string{Root}
	for _, name := range names {
		urls = append(urls, URL(name))
	}
	for _, g := range guides {
		if g.Body != "" {
			urls = append(urls, g.Link.URL)
		}
	}
	slices.Sort(urls)
	return urls, nil
}

func list(files fs.FS) (names []string, err error) {
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// Render makes a page of each Markdown file and of each guide with a body, takes the other files as they are, and makes the contents.
// A link to a file that is not among them becomes its words.
func Render(files fs.FS, guides []Guide) (map[string]Page, error) {
	names, err := list(files)
	if err != nil {
		return nil, err
	}
	pages, contents := map[string]Page{}, map[string]Link{}
	var all []shown
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if path.Ext(name) != ".md" {
			pages[URL(name)] = Page{media(name), text}
			continue
		}
		d, err := render(name, text, names)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		contents[name] = Link{URL(name), d.Title, d.Says}
		all = append(all, shown{document: d, URL: URL(name)})
	}
	for _, g := range guides {
		if g.Body != "" {
			all = append(all, shown{document: document{Title: g.Link.Title, Body: g.Body}, URL: g.Link.URL, Script: g.Script})
		}
	}
	groups := grouped(contents, guides)
	for _, p := range all {
		p.Docs, p.Groups = true, opened(groups, p.URL)
		if pages[p.URL], err = fill("page", p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.URL, err)
		}
	}
	pages[Root], err = fill("contents", shown{document: document{Title: "Documentation"}, URL: Root, Docs: true, Groups: groups})
	return pages, err
}

// Framed is a page that is in the application's frame and not part of the documentation.
func Framed(title string, body template.HTML) (Page, error) {
	return fill("plain", shown{document: document{Title: title, Body: body}})
}

// opened are the groups as a page shows them: its own is open.
func opened(groups []Group, url string) []Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Open = slices.ContainsFunc(out[i].Links, func(l Link) bool { return l.URL == url })
	}
	return out
}

func fill(name string, data shown) (Page, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, data)
	return Page{"text/html; charset=utf-8", b.Bytes()}, err
}

func media(name string) string {
	switch path.Ext(name) {
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".py":
		return "text/x-python; charset=utf-8"
	}
	return "application/octet-stream"
}

// grouped puts the links in the order of groups, and within a folder by name.
func grouped(contents map[string]Link, guides []Guide) []Group {
	var out []Group
	placed := map[string]bool{}
	names := make([]string, 0, len(contents))
	for name := range contents {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, g := range groups {
		group := Group{Title: g.title}
		add := func(name string) {
			if !placed[name] {
				placed[name] = true
				group.Links = append(group.Links, contents[name])
			}
		}
		for _, file := range g.files {
			for _, name := range names {
				if name == file || strings.HasPrefix(name, file+"/") {
					add(name)
				}
			}
		}
		if i == len(groups)-1 {
			for _, name := range names {
				add(name)
			}
		}
		for _, guide := range guides {
			if guide.Group == g.title {
				group.Links = append(group.Links, guide.Link)
			}
		}
		out = append(out, group)
	}
	return out
}
