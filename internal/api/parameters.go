package api

import (
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Parameter is a parameter of an upload as the document has it, for the command line, which offers each as a flag.
type Parameter struct {
	Name    string
	Kind    string // string, integer, number or boolean
	Says    string // what it means, and what holds without it
	Example string
	Zero    bool // a number can be 0, which then is not the same as none
}

// UploadParameters are the parameters of an upload, in the document's order.
func UploadParameters() []Parameter {
	var all []Parameter
	for _, p := range uploadParameters() {
		whole := samples[p.Name].complete(p)
		says := whole.Description
		if value := whole.Schema.Default; value != nil && !strings.Contains(strings.ToLower(says), "default") {
			says += fmt.Sprintf("; default: %v", value)
		}
		all = append(all, Parameter{Name: p.Name, Kind: p.Schema.Type, Says: says, Example: fmt.Sprint(samples[p.Name].example), Zero: p.Schema.Minimum != nil && *p.Schema.Minimum == 0})
	}
	return all
}

// uploadParameters are the settings, and whether it is a dry run.
func uploadParameters() []*huma.Param {
	var all []*huma.Param
	for _, p := range settings {
		all = append(all, &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: p.schema()})
	}
	return append(all, &huma.Param{
		Name: dryRun, In: "query", Schema: &huma.Schema{Type: "boolean", Default: false},
		Description: "true: nothing is made. The reply is the card that the holdout would have before the first look: guarantee, sizes, what is skipped, warnings; what would be refused is refused",
	})
}
