package holdout

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
)

// What whole numbers must do to look like a key, whatever their name is. Only columns that do are tried as groupings, and the design effects decide.
const (
	// keyColumns are tried, the first that are whole numbers: tables begin with their keys, and each is held against all columns.
	keyColumns = 64
	// keyRows is how many rows are looked at, from the first.
	keyRows = 1 << 17
	// keyPairs of rows with the same value are compared at most.
	keyPairs = 1 << 12
	// minKeyPairs is the least number of pairs that says anything.
	minKeyPairs = 50
	// keyShare of the values there are different ones, at least: grades, ages and weeks have fewer.
	keyShare = 0.02
	// keyAgrees is the share of pairs that have the same in another column, where the key decides it.
	keyAgrees = 0.95
	// keyChance is the largest share of pairs of different values that may have the same there.
	keyChance = 0.8
	// quickPairs are looked at first, and a column in which more than quickMisses of them differ is not decided: that of 64 that agree in keyAgrees more differ has a probability of 1e-8. So
	// a wide table takes a few steps for each pair of columns.
	quickPairs, quickMisses = 64, 16
	// keySmooth is how much nearer, or the more often equal, neighbouring values may be than any two. What is computed of an amount, such as a price in another
	// currency or its class, goes along with it, and what belongs to a number of a customer does not.
	keySmooth = 0.5
)

// looksLikeKey reports whether whole numbers name something: rows with the same value agree in alikeColumns other columns, in which rows with different ones do not, not even
// those with neighbouring values. It reads the first keyRows rows.
func looksLikeKey(columns []dataset.Column, k int) bool {
	key := headOf(&columns[k])
	rows := groupBy(key, false)
	if float64(rows.n) < keyShare*float64(key.Len()) {
		return false
	}
	var pairs [][2]int
	for row := 0; row < key.Len() && len(pairs) < keyPairs; row++ {
		if first := int(rows.first[rows.of[row]]); first != row {
			pairs = append(pairs, [2]int{first, row})
		}
	}
	if len(pairs) < minKeyPairs {
		return false
	}
	slices.SortFunc(pairs, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(key.Numbers[a[0]], key.Numbers[b[0]]), cmp.Compare(a[1], b[1]))
	})
	pairs = slices.CompactFunc(pairs, func(a, b [2]int) bool { return a[0] == b[0] }) // one of each value, or neighbours would be the same
	decided := 0
	for i := range columns {
		if i == k || !decidedBy(&columns[i], pairs) {
			continue
		}
		if decided++; decided == alikeColumns {
			return true
		}
	}
	return false
}

// headOf is the first rows of a column of numbers; other columns are whole.
func headOf(c *dataset.Column) dataset.Column {
	head := *c
	head.Numbers = head.Numbers[:min(len(head.Numbers), keyRows)]
	return head
}

// decidedBy reports whether pairs agree in a column, and neighbouring ones of them do not.
func decidedBy(c *dataset.Column, pairs [][2]int) bool {
	same := func(a, b int) float64 {
		if valueOf(c, a) == valueOf(c, b) {
			return 1
		}
		return 0
	}
	within, near, far, nearSquare, farSquare := 0.0, 0.0, 0.0, 0.0, 0.0
	n, half := len(pairs), len(pairs)/2
	quick := min(n, quickPairs)
	for i, misses := 0, 0; i < quick; i++ {
		p := pairs[i*n/quick]
		if valueOf(c, p[0]) != valueOf(c, p[1]) {
			if misses++; misses > quickMisses {
				return false
			}
		}
	}
	for i, p := range pairs {
		next, other := pairs[(i+1)%n][0], pairs[(i+half)%n][0]
		within += same(p[0], p[1])
		near += same(p[0], next)
		far += same(p[0], other)
		if c.Kind != dataset.Text {
			if d := valueOf(c, p[0]) - valueOf(c, next); !math.IsNaN(d) && !math.IsInf(d, 0) {
				nearSquare += d * d
			}
			if d := valueOf(c, p[0]) - valueOf(c, other); !math.IsNaN(d) && !math.IsInf(d, 0) {
				farSquare += d * d
			}
		}
	}
	size := float64(max(1, n))
	within, near, far = within/size, near/size, far/size
	return within >= keyAgrees && far <= keyChance && near-far <= keySmooth*(1-far) && nearSquare >= keySmooth*farSquare
}

// valueOf is a number that equals another row's where the values are the same; NaN of numbers and times without one.
func valueOf(c *dataset.Column, row int) float64 {
	switch c.Kind {
	case dataset.Text:
		return float64(c.Codes[row])
	case dataset.Bool:
		return float64(c.Bools[row])
	}
	return c.Numbers[row]
}
