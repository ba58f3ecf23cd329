// Package queries is the query language: JSON to a typed query, its canonical form and ID, and the bounded row
// functions that it compiles to.
//
// A query goes through five steps, each of which can be used by itself:
//
//	Parse     strict JSON to a Query; everything that is wrong and needs no schema to be seen is reported at once
//	ID        the digest of the canonical form: all spellings of one question have one ID, so that asking it again is free
//	Compile   against a schema: a Plan (package shape) of row functions, each bounded in [0,1] at every unit
//	Release   the plan's program, run by a mechanism: means one by one, as a vector, as a selection, or as a search
//	Combine   what was released, with its intervals, to the answer in the query's own units
//
// The engine sums row functions, the mechanism releases their means, and neither knows of query types. An answer's
// interval comes from those of its parts by interval arithmetic (package interval), so that it holds whenever they all do.
//
// # Types
//
// Each type is one file with its members, its rules and its compilation, and one line in the table kinds. Types do not know each
// other, but for tests, which are about the answers of others. What they share stands below them: forms of members (form.go, listforms.go,
// docs.go), what is read of a schema and of the training part (compiler.go, categories.go, quantiles.go, training.go, predictor.go), words
// (words.go), and the shapes of package shape. The parser,
// the canonical form, the documentation and [JSONSchemas] are made from the members. Expressions are the language of
// package expr; docs/EXPRESSIONS.md describes it.
//
// # What is not here
//
// No row is read here, nothing is random and nothing is remembered. Whether a mechanism can use the members guess and
// half_width is for the service to say.
package queries
