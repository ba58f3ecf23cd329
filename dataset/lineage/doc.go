// Package lineage recognises rows that come again: renamed, reordered, written in other types, with a cell changed, a column dropped or
// added, a part of them, or among others. It is not for rows that were changed in most of their cells, and not for tables whose rows are not told
// apart by what they hold. docs/decisions/0011-lineage.md says how it decides, and what it cannot recognise.
//
// A [Sketch] is a sample of a table's rows, under a key. Each row has some tokens: hashes of one, two or three of its cells, of whatever columns, and of
// all of them. Which cells, weighted hashes decide, so that two rows that share most of what they hold share most of their tokens. The cells' own hashes
// choose the sample, too: the tokens that are smallest. So two sketches sample the same rows, whatever their places are.
//
// Of flags, grades and pixels all rows have the same values, and only which column has which tells them apart. So a sketch keeps some rows with the names of
// their columns, too, and a new table is searched for them by the columns that both have.
//
// [Compare] counts the tokens that two sketches share, of rows whose cells agree. How many would be shared by chance, the tables themselves
// tell: two tables of independent rows of one law share tokens no more often than the rows of each do among themselves. [Level] is the probability that more are
// taken for rows that came again.
package lineage
