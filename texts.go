// Package holdoutd keeps a holdout in a program, without a server: [Open] splits a Parquet file once, keeps a part of it apart, and [Holdout.Ask] answers questions about
// that part with intervals that stay true for every question asked. A budget on the disk counts them.
//
// The server is cmd/holdoutd; the parts that this package is made of are in the packages below.
package holdoutd

import "embed"

// Texts are README.md, CHANGELOG.md, the pages of docs with the figures they show, the page of the Python client, and its file that writes models, by their
// paths in the source.
//
//go:embed README.md CHANGELOG.md docs/*.md docs/*/*.md docs/figures/*.svg docs/figures/*.png python/README.md python/src/holdoutd/models.py
var Texts embed.FS
