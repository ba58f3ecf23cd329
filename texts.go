// Package holdoutd holds the texts that the program carries with it: its documentation, and the exporter of models. The program
// is cmd/holdoutd; what programs can use is in the packages below.
package holdoutd

import "embed"

// Texts are README.md, CHANGELOG.md, the pages of docs with the figures they show, the page of the Python client, and its file that writes models, by their
// paths in the source.
//
//go:embed README.md CHANGELOG.md docs/*.md docs/*/*.md docs/figures/*.svg docs/figures/*.png python/README.md python/src/holdoutd/models.py
var Texts embed.FS
