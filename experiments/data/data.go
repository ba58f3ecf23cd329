// Package data has the real data of the experiments and of the demo, as Parquet files. README.md says where they are from.
package data

import (
	_ "embed"
)

// Flights are 100,000 flights: date, delay in minutes, distance in miles, origin and destination.
//
//go:embed flights-100k.parquet
var Flights string

// Digits are 1,797 handwritten digits: 64 pixels from 0 to 16, and label.
//
//go:embed digits.parquet
var Digits string

// BreastCancer are 569 tumours: 30 measurements, and malignant.
//
//go:embed breast-cancer.parquet
var BreastCancer string
