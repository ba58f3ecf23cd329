package manysha

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// messages are n random ones of lengths around the ends of blocks, and some of many blocks beside short ones.
func messages(r *rand.Rand, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		length := r.IntN(140)
		if r.IntN(8) == 0 {
			length = r.IntN(1000)
		}
		all[i] = make([]byte, length)
		for k := range all[i] {
			all[i][k] = byte(r.Uint32())
		}
	}
	return all
}

// TestSums holds sums and HMACs against the standard library's, of every length up to three blocks and of random ones together. It notices a message whose
// state goes on with the blocks of longer ones beside it.
func TestSums(t *testing.T) {
	t.Logf("AVX-512: %v", wide)
	r := rand.New(rand.NewPCG(1, 2))
	var of [][][]byte
	for length := range 3*sha256.BlockSize + 1 {
		of = append(of, [][]byte{make([]byte, length)})
	}
	for n := range 70 {
		of = append(of, messages(r, n))
	}
	var hasher Hasher
	for _, all := range of {
		sums, heads := make([][sha256.Size]byte, len(all)), make([]uint64, len(all))
		key := messages(r, 1)[0]
		hasher.Sums(sums, all)
		NewMAC(key).Heads(heads, all)
		for i, m := range all {
			if want := sha256.Sum256(m); sums[i] != want {
				t.Fatalf("message %d of %d, of %d bytes: %x, not %x", i, len(all), len(m), sums[i], want)
			}
			mac := hmac.New(sha256.New, key)
			mac.Write(m)
			if want := binary.BigEndian.Uint64(mac.Sum(nil)); heads[i] != want {
				t.Fatalf("HMAC of message %d of %d, of %d bytes, under a key of %d: %x, not %x", i, len(all), len(m), len(key), heads[i], want)
			}
		}
	}
}

// TestNoMemory: nothing is allocated for a sum.
func TestNoMemory(t *testing.T) {
	all := messages(rand.New(rand.NewPCG(3, 4)), 4*Lanes)
	sums, heads := make([][sha256.Size]byte, len(all)), make([]uint64, len(all))
	var hasher Hasher
	mac := NewMAC([]byte("a key"))
	if n := testing.AllocsPerRun(10, func() { hasher.Sums(sums, all); mac.Heads(heads, all) }); wide && n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSums(b *testing.B) {
	for _, length := range []int{5, 50, 100} {
		all := make([][]byte, 8*Lanes)
		for i := range all {
			all[i] = make([]byte, length)
		}
		sums := make([][sha256.Size]byte, len(all))
		var hasher Hasher
		heads, mac := make([]uint64, len(all)), NewMAC([]byte("a key"))
		b.Run(fmt.Sprintf("sums/%d", length), func(b *testing.B) {
			for range b.N {
				hasher.Sums(sums, all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/message")
		})
		b.Run(fmt.Sprintf("one by one/%d", length), func(b *testing.B) {
			for range b.N {
				for i := range all {
					sums[i] = sha256.Sum256(all[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/message")
		})
		b.Run(fmt.Sprintf("HMAC/%d", length), func(b *testing.B) {
			for range b.N {
				mac.Heads(heads, all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/message")
		})
	}
}
