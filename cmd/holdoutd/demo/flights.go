// Package demo has the data set of the demo, for whoever else wants real rows. PROVENANCE.md says where it is from.
package demo

import _ "embed"

// Flights is a Parquet file of 100,000 flights: date, delay in minutes, distance in miles, origin and destination.
//
//go:embed flights-100k.parquet
var Flights string
