package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Parameter is a parameter of an upload as the document has it, for the command line, which offers each as a flag.
type Parameter struct {
	Name    string
	Kind    string // string, integer, number, boolean, or array of texts
	Says    string // what it means, and what holds without it
	Example string
	Zero    bool // a number can be 0, which then is not the same as none
}

// UploadParameters are the parameters of an upload, in the document's order, but for those that tables of sources have alone.
func UploadParameters() []Parameter {
	return described(keySetting, sourceParameter, tableParameter)
}

// RegisterParameters are the settings of a table of a source, in the document's order.
func RegisterParameters() []Parameter {
	return described(dryRun, sourceParameter, tableParameter)
}

// described are the parameters of the operation that makes a holdout, but for some.
func described(but ...string) []Parameter {
	var all []Parameter
	for _, p := range uploadParameters() {
		if slices.Contains(but, p.Name) {
			continue
		}
		whole := samples[p.Name].complete(p)
		says := whole.Description
		if value := whole.Schema.Default; value != nil && !strings.Contains(strings.ToLower(says), "default") {
			says += fmt.Sprintf("; default: %v", value)
		}
		example := samples[p.Name].example
		if several, ok := example.([]string); ok {
			example = several[0]
		}
		all = append(all, Parameter{Name: p.Name, Kind: p.Schema.Type, Says: says, Example: fmt.Sprint(example), Zero: p.Schema.Minimum != nil && *p.Schema.Minimum == 0})
	}
	return all
}

// uploadParameters are the settings, whether it is a dry run, and of which source the table is that is not uploaded.
func uploadParameters() []*huma.Param {
	var all []*huma.Param
	for _, p := range settings {
		all = append(all, &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: p.schema()})
	}
	one := 1
	return append(all, &huma.Param{
		Name: sourceParameter, In: "query", Schema: &huma.Schema{Type: "string", MinLength: &one},
		Description: "the name of a source: the table is one of its tables and stays there, nothing is uploaded, and the reply is a registration (202). Needs table",
	}, &huma.Param{
		Name: tableParameter, In: "query", Schema: &huma.Schema{Type: "string", MinLength: &one},
		Description: "with source: the table, as it is named there",
	}, &huma.Param{
		Name: dryRun, In: "query", Schema: &huma.Schema{Type: "boolean", Default: false},
		Description: "true: nothing is made. The reply is the card that the holdout would have before the first look: guarantee, sizes, what is skipped, warnings; what would be refused is refused",
	})
}
