// Package expr is the language of row expressions: CEL text, parsed and type-checked by cel-go against a
// table's schema, made total, and held as a small typed tree that kernels evaluate.
//
// A row expression sees one row, so it cannot aggregate and its sensitivity is known. It is total: at every row it has a
// value, whatever the row holds, and it cannot fail. Numbers are nullable finite doubles, conditions are two-valued; the
// rules are the comments of [rowfn.Op] and docs/EXPRESSIONS.md, and tests hold them against CEL's own interpreter.
//
// [Parse] reads the syntax and gives it one canonical form; every later step starts from that form, so that two
// expressions with the same form are the same program. [Syntax.Check] types it against a schema.
package expr
