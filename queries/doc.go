// Package queries is the query language: JSON to a typed query, its canonical form and ID, and the bounded row
// functions that it compiles to.
package queries
