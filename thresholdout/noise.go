package thresholdout

import (
	"encoding/binary"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Noise is where a Step draws from. A service keys it by the question, so that asking again draws the same; a simulation
// passes Seeded.
type Noise interface {
	// Answer is the noise of one answer's step ("compare", "release") at this scale; one stream is never used at two scales.
	Answer(step string, epoch int64, sigma float64) *noise.Stream
	// Threshold is the noise of the threshold of an epoch: of the epoch alone, for redrawing it for every question would
	// break the proof.
	Threshold(epoch int64) *noise.Stream
}

// Keyed is the noise of one row function of one question, derived from the holdout's secret key.
type Keyed struct {
	Key   noise.Key
	Data  [32]byte // digest of the table
	Query string   // identity of the question
	Index int      // of the row function within the question
}

var _ Noise = Keyed{}

// Answer implements [Noise].
func (k Keyed) Answer(step string, epoch int64, sigma float64) *noise.Stream {
	return k.Key.Stream("answer/"+step, k.Data[:], []byte(k.Query), word(uint64(k.Index)), word(uint64(epoch)), word(math.Float64bits(sigma)))
}

// Threshold implements [Noise].
func (k Keyed) Threshold(epoch int64) *noise.Stream {
	return k.Key.Stream("threshold", k.Data[:], word(uint64(epoch)))
}

func word(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// Seeded is noise for simulations: question Question of run Seed.
type Seeded struct {
	Seed     uint64
	Question int64
}

var _ Noise = Seeded{}

// Answer implements [Noise].
func (s Seeded) Answer(step string, epoch int64, sigma float64) *noise.Stream {
	return s.keyed().Answer(step, epoch, sigma)
}

// Threshold implements [Noise].
func (s Seeded) Threshold(epoch int64) *noise.Stream { return s.keyed().Threshold(epoch) }

func (s Seeded) keyed() Keyed {
	var k Keyed
	binary.BigEndian.PutUint64(k.Key[:], s.Seed)
	k.Query = string(word(uint64(s.Question)))
	return k
}
