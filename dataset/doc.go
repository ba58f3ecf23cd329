// Package dataset holds a table as checksummed, memory-mapped column files.
package dataset
