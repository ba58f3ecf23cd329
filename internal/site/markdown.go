package site

import (
	"bytes"
	"html/template"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// document is a page without its frame.
type document struct {
	Title    string
	Says     string // the first paragraph's first sentence
	File     string // where it is in the source
	Sections []Link // the headings of the second level
	Body     template.HTML
}

// markdown leaves out HTML within Markdown, and says alignments of cells without a style, which the pages' policy forbids.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// reachable lets the keyboard scroll what may be wider than its page. In texts these marks are escaped.
var reachable = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<table tabindex="0">`)

func render(file string, source []byte, files []string) (document, error) {
	d := document{File: file}
	tree := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	var missing []*ast.Link
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			if to, ok := target(file, string(n.Destination), files); ok {
				n.Destination = []byte(to)
			} else {
				missing = append(missing, n)
			}
		case *ast.Image:
			if to, ok := target(file, string(n.Destination), files); ok {
				n.Destination = []byte(to)
			}
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			anchor, _ := id.([]byte)
			switch words := plain(n, source); {
			case n.Level == 1 && d.Title == "":
				d.Title = words
			case n.Level == 2:
				d.Sections = append(d.Sections, Link{URL: "#" + string(anchor), Title: words})
			}
		case *ast.Paragraph:
			if d.Says == "" && d.Title != "" {
				d.Says = sentence(plain(n, source))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return d, err
	}
	for _, n := range missing {
		unlink(n)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, tree); err != nil {
		return d, err
	}
	d.Body = template.HTML(reachable.Replace(b.String())) // goldmark escapes what it writes; HTML in the source is left out
	return d, nil
}

// target is where a link of a file leads on the server; false if the server does not have it. Addresses elsewhere stay as they are.
func target(from, to string, files []string) (string, bool) {
	if strings.HasPrefix(to, "#") || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to, true
	}
	file, anchor, _ := strings.Cut(to, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	file = path.Join(path.Dir(from), file)
	switch {
	case file == "api/openapi.json":
		return "/openapi.json", true
	case slices.Contains(files, file):
		return URL(file) + anchor, true
	case slices.Contains(files, file+"/README.md"):
		return URL(file+"/README.md") + anchor, true
	case slices.ContainsFunc(files, func(name string) bool { return strings.HasPrefix(name, file+"/") }):
		return Root, true // a folder: the contents
	}
	return "", false
}

// unlink leaves the words of a link.
func unlink(n *ast.Link) {
	parent := n.Parent()
	for child := n.FirstChild(); child != nil; {
		next := child.NextSibling()
		parent.InsertBefore(parent, n, child)
		child = next
	}
	parent.RemoveChild(parent, n)
}

// plain is the text of a node, without its marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// sentence is the first sentence of a text.
func sentence(s string) string {
	for at := range s {
		if s[at] == '.' && (at+1 == len(s) || s[at+1] == ' ' && (at+2 == len(s) || unicode.IsUpper(rune(s[at+2])))) {
			return s[:at+1]
		}
	}
	return s
}

// anchors gives headings the names that GitHub gives them: letters, digits, "-" and "_" in lower case, "-" for each space, and a
// number behind what is there already. The key counts how often.
type anchors map[string]int

func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, string(heading))
	n := a[name]
	a[name]++
	if n > 0 {
		name += "-" + strconv.Itoa(n)
	}
	return []byte(name)
}

// Put is for names that a document gives itself; ours have none.
func (a anchors) Put([]byte) {}
