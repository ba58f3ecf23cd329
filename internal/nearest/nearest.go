// Package nearest finds the name that was probably meant.
package nearest

import "strings"

// maxName bounds the work on one long misspelt name; names that long are not looked for.
const maxName = 64

// maxDistance bounds how far a name can be from what was meant. It also bounds the work: a table can have thousands of
// columns, and only a band of this half-width of each table of distances is filled.
const maxDistance = 3

// leastStart is how many characters of a beginning are enough to stand for the whole name.
const leastStart = 3

// Name is the candidate with the smallest edit distance to a misspelt name, if that is small for its length; else the shortest one that
// begins with it, as customer_id does with customer, or that it begins with; "" if there is none. Ties go to the smaller name in byte
// order, so that the answer does not depend on the order of candidates.
func Name(name string, candidates []string) string {
	target := []rune(strings.ToLower(name))
	best, bound := "", min(max(1, len(target)/3), maxDistance)
	for _, candidate := range candidates {
		if candidate == "" || name == "" || len(candidate) > 4*maxName || len(target) > maxName {
			continue
		}
		d := distance(target, []rune(strings.ToLower(candidate)), bound)
		if d < bound || d == bound && (best == "" || candidate < best) {
			best, bound = candidate, d
		}
	}
	if best == "" && len(target) >= leastStart && len(target) <= maxName {
		best = beginning(strings.ToLower(name), candidates)
	}
	return best
}

// beginning is the shortest candidate that begins with a name, or else the longest that the name begins with.
func beginning(name string, candidates []string) string {
	longer, shorter := "", ""
	for _, candidate := range candidates {
		switch lower := strings.ToLower(candidate); {
		case strings.HasPrefix(lower, name):
			if longer == "" || len(candidate) < len(longer) || len(candidate) == len(longer) && candidate < longer {
				longer = candidate
			}
		case len(lower) >= leastStart && strings.HasPrefix(name, lower):
			if len(candidate) > len(shorter) || len(candidate) == len(shorter) && candidate < shorter {
				shorter = candidate
			}
		}
	}
	if longer != "" {
		return longer
	}
	return shorter
}

// distance is the optimal-string-alignment distance (insert, delete, replace, swap neighbours), or bound+1 if it is larger.
func distance(a, b []rune, bound int) int {
	if len(a)-len(b) > bound || len(b)-len(a) > bound {
		return bound + 1
	}
	over := bound + 1
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j], row[j] = min(j, over), over
	}
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-bound), min(len(b), i+bound)
		row[from-1], row[min(to+1, len(b))] = over, over
		if from == 1 {
			row[0] = min(i, over)
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost, over)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > bound {
			return over
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
