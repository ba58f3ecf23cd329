package faults

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Building a test's binary takes longer than most tests do. So the faults of one binary are planted together where that can be done: each as a second
// form of the function that it changes, which is called in place of the first while the environment names the fault. What changes more than the bodies of
// functions, and what was not noticed that way (a process can have an environment of its own), gets a binary of its own.

// SwitchVariable is the environment variable that names the planted fault, by Fault.Name.
const SwitchVariable = "HOLDOUTD_PLANTED"

// switchName is the variable of a switched package that has it. No code of ours has such a name.
const switchName = "plantedFault"

// Switch writes the file so that it has each of the faults beside the code as it is; rest are those that cannot be switched.
func Switch(text string, faults []Fault) (switched string, rest []Fault, err error) {
	original, err := parse(text)
	if err != nil {
		return "", nil, err
	}
	var edits []edit
	var forms strings.Builder
	named := map[*ast.FuncDecl]bool{} // its parameters have names to call others with
	for i, f := range faults {
		planted, err := f.Plant(text)
		if err != nil {
			return "", nil, err
		}
		changed, ok := changedFunctions(original, planted)
		if !ok {
			rest = append(rest, f)
			continue
		}
		for _, c := range changed {
			name := fmt.Sprintf("planted%d%s", i, c.was.Name.Name)
			if !named[c.was] {
				named[c.was] = true
				edits = append(edits, original.nameAll(c.was)...)
			}
			call := name + original.arguments(c.was)
			if c.was.Recv != nil {
				call = fieldNames(c.was.Recv, "r")[0] + "." + call
			}
			then := "return " + call
			if c.was.Type.Results == nil {
				then = call + "; return"
			}
			edits = append(edits, edit{original.at(c.was.Body.Lbrace) + 1, 0, fmt.Sprintf(" if %s == %q { %s };", switchName, f.Name, then)})
			fmt.Fprintf(&forms, "\n%s%s%s\n", c.text[:c.name], name, c.text[c.name+len(c.was.Name.Name):])
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(b.at, a.at) })
	for _, e := range edits {
		text = text[:e.at] + e.text + text[e.at+e.removes:]
	}
	return text + forms.String(), rest, nil
}

// SwitchFile is the file that a switched package needs beside its own.
func SwitchFile(text string) (string, error) {
	f, err := parse(text)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", f.Name.Name, switchName, SwitchVariable), nil
}

// source is a parsed file with its text.
type source struct {
	*ast.File
	text string
	file *token.File
}

func parse(text string) (*source, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{f, text, set.File(f.FileStart)}, nil
}

func (s *source) at(p token.Pos) int                { return s.file.Offset(p) }
func (s *source) between(from, to token.Pos) string { return s.text[s.at(from):s.at(to)] }

// edit replaces so many bytes of a text.
type edit struct {
	at, removes int
	text        string
}

// change is a function, and the text that it has with a fault.
type change struct {
	was  *ast.FuncDecl
	text string
	name int // where its name begins in text
}

// changedFunctions are those whose bodies the planted text changes; ok is false if it changes anything else, or a body that would not do the same as a second form.
func changedFunctions(original *source, planted string) (changed []change, ok bool) {
	other, err := parse(planted)
	if err != nil || len(other.Decls) != len(original.Decls) {
		return nil, false
	}
	for i, d := range original.Decls {
		o := other.Decls[i]
		text := other.between(o.Pos(), o.End())
		if text == original.between(d.Pos(), d.End()) {
			continue
		}
		was, isFunction := d.(*ast.FuncDecl)
		is, stays := o.(*ast.FuncDecl)
		if !isFunction || !stays || was.Body == nil || is.Body == nil || was.Name.Name == "_" ||
			original.between(was.Pos(), was.Body.Lbrace) != other.between(is.Pos(), is.Body.Lbrace) ||
			strings.Contains(text, "recover()") { // which stops a panic only in the function that was deferred
			return nil, false
		}
		changed = append(changed, change{was, text, other.at(is.Name.Pos()) - other.at(is.Pos())})
	}
	return changed, len(changed) > 0
}

// nameAll gives each parameter and receiver of a function a name by which it can be passed on.
func (s *source) nameAll(f *ast.FuncDecl) (edits []edit) {
	lists := map[string]*ast.FieldList{"p": f.Type.Params, "r": f.Recv}
	for prefix, list := range lists {
		if list == nil {
			continue
		}
		names := fieldNames(list, prefix)
		for _, field := range list.List {
			if len(field.Names) == 0 {
				edits = append(edits, edit{s.at(field.Type.Pos()), 0, names[0] + " "})
				names = names[1:]
			}
			for _, n := range field.Names {
				if n.Name == "_" {
					edits = append(edits, edit{s.at(n.Pos()), 1, names[0]})
				}
				names = names[1:]
			}
		}
	}
	return edits
}

// fieldNames are the names of parameters, with one for each that has none.
func fieldNames(list *ast.FieldList, prefix string) (names []string) {
	other := func() string { return fmt.Sprintf("%sPlanted%d", prefix, len(names)) }
	for _, field := range list.List {
		if len(field.Names) == 0 {
			names = append(names, other())
		}
		for _, n := range field.Names {
			name := n.Name
			if name == "_" {
				name = other()
			}
			names = append(names, name)
		}
	}
	return names
}

// arguments are what a function passes on to another form of itself, with its type parameters.
func (s *source) arguments(f *ast.FuncDecl) string {
	var types string
	if f.Type.TypeParams != nil {
		types = "[" + strings.Join(fieldNames(f.Type.TypeParams, "t"), ", ") + "]"
	}
	names := fieldNames(f.Type.Params, "p")
	list := strings.Join(names, ", ")
	if n := len(f.Type.Params.List); n > 0 {
		if _, variadic := f.Type.Params.List[n-1].Type.(*ast.Ellipsis); variadic {
			list += "..."
		}
	}
	return types + "(" + list + ")"
}
