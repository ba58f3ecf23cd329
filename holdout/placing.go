package holdout

import (
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
)

// placing is the secret order in which one holdout is stored. It is drawn when the holdout is made, is no function of the
// server's key, of the rows or of another holdout, and is not kept: what was drawn stands in the files alone.
//
// The mechanism split answers each question from the next stretch of the stored order, so whoever knew a row's place would
// know which question reads it. The order of tags (splitter) is one for the whole server, and that of the upload is its
// owner's: neither may be the stored order (docs/proofs/split.md).
type placing struct{ random *rand.Rand }

// newPlacing draws 256 random bits. ChaCha8 makes them into a shuffle that nobody without them can tell from a uniform one.
func newPlacing() (placing, error) {
	var seed [32]byte
	if _, err := cryptorand.Read(seed[:]); err != nil {
		return placing{}, fmt.Errorf("holdout: order of the rows: %w", err)
	}
	return placing{rand.New(rand.NewChaCha8(seed))}, nil
}

// shuffle puts units, or rows of one unit, in a uniformly random order.
func (p placing) shuffle(list []uint32) {
	p.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
