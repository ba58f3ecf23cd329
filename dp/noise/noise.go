// Package noise draws noise whose law is exact: integers that are distributed as the rounding of a real normal variable, or as a discrete Laplace, discrete
// Gaussian, two-sided geometric or staircase variable, up to the quality of the random bits alone. Nothing is computed in floating point on the way, so
// nothing about a secret can hide in the low bits of a released value (Mironov, CCS 2012).
//
// Random bits come from a [Stream]: ChaCha8, seeded by HMAC-SHA256 of a secret [Key] and of what the noise is for. The same
// key and purpose give the same noise for ever, which is what lets a service answer a repeated question identically and
// recover from a crash without drawing twice. Simulations use [Seeded].
package noise

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Key is the secret that noise is derived from.
type Key [32]byte

// Stream is a deterministic sequence of random bits. It is not safe for concurrent use.
type Stream struct {
	source *rand.ChaCha8
	word   uint64 // bits not yet used by flip
	left   int
}

// Stream returns the stream for one purpose. Different labels or parts, also differently split parts, give independent streams.
func (k Key) Stream(label string, parts ...[]byte) *Stream {
	mac := hmac.New(sha256.New, k[:])
	write := func(part []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write(part)
	}
	write([]byte(label))
	for _, part := range parts {
		write(part)
	}
	return &Stream{source: rand.NewChaCha8([32]byte(mac.Sum(nil)))}
}

// Seeded returns a stream for simulations and tests: whoever knows the seed knows the noise.
func Seeded(seed uint64) *Stream {
	var key Key
	binary.BigEndian.PutUint64(key[:], seed)
	return key.Stream("seeded")
}

// Uint64 returns 64 uniform bits.
func (s *Stream) Uint64() uint64 { return s.source.Uint64() }

// Below returns a uniform integer in [0, n); n > 0. It is exact: rejection, no modulo bias (Lemire 2019).
func (s *Stream) Below(n uint64) uint64 {
	high, low := bits.Mul64(s.Uint64(), n)
	if low < n {
		for threshold := -n % n; low < threshold; {
			high, low = bits.Mul64(s.Uint64(), n)
		}
	}
	return high
}

// flip returns a fair bit.
func (s *Stream) flip() bool {
	if s.left == 0 {
		s.word, s.left = s.Uint64(), 64
	}
	bit := s.word&1 == 1
	s.word >>= 1
	s.left--
	return bit
}
