// Package prints recognises rows: it keeps keyed prints of a sample of a table's rows, and says of other tables how many of these rows they have, also where columns were
// renamed, moved, dropped or added, values were stored as another type, or some cells were changed.
//
// A row is the set of its tokens. A cell has a token that is a keyed hash of its value and of nothing else: not of its column's name or place, nor of how the value is stored (cell.go). Beside these the
// row's cells fall into eight groups by their hashes, and each group has a token of all that is in it: they tell rows apart whose single values are common, and a changed cell
// changes one of them. A token weighs as much as it is rare in the sample, log2(rows/rows that have it). Two rows agree by the weight of the tokens that they share over the weight of
// the row in the sample.
//
// Rows agree by chance, too. How much is measured where nothing was uploaded twice: each row of the sample is compared with the rows of its own table that are not sampled. Another sample
// of the same population agrees with it in the same way. So a table is recognised when more rows of the sample agree with it than agreed at home, by more than chance allows ([Alarm]).
package prints
