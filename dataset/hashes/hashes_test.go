package hashes

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Hashes and tags are those of the standard library, of messages of all lengths together, with registers of 512 bits and without; empty messages and those that end next to a block's end among them.
// It would notice a wrong padding, a wrong length, lanes that are mixed up, and what an earlier message leaves in a hasher.
func TestLikeTheStandardLibrary(t *testing.T) {
	hasWide := wide
	defer func() { wide = hasWide }()
	var h Hasher
	rapid.Check(t, func(t *rapid.T) {
		wide = hasWide && rapid.IntRange(0, 3).Draw(t, "wide") > 0
		length := rapid.SampledFrom([]int{0, 1, 5, 54, 55, 56, 63, 64, 65, 118, 119, 120, 128, 1000})
		few := rapid.SliceOfN(length, 1, 3).Draw(t, "lengths")
		messages := make([][]byte, rapid.IntRange(0, 70).Draw(t, "messages"))
		for i := range messages {
			n := rapid.SampledFrom(few).Draw(t, "length")
			messages[i] = make([]byte, n)
			for k := range messages[i] {
				messages[i][k] = byte(i*31 + k*7 + n)
			}
		}
		sums := make([][sha256.Size]byte, len(messages))
		h.Sums(sums, messages)
		key := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "key")
		first, second := make([]uint64, len(messages)), make([]uint64, len(messages))
		h.Tags(NewMAC(key), first, second, messages)
		alone := make([]uint64, len(messages))
		h.Tags(NewMAC(key), alone, nil, messages)
		for i, m := range messages {
			if sums[i] != sha256.Sum256(m) {
				t.Fatalf("message %d of %d bytes has another hash", i, len(m))
			}
			mac := hmac.New(sha256.New, key)
			mac.Write(m)
			want := mac.Sum(nil)
			if first[i] != binary.BigEndian.Uint64(want) || second[i] != binary.BigEndian.Uint64(want[8:]) || alone[i] != first[i] {
				t.Fatalf("message %d of %d bytes has another tag", i, len(m))
			}
		}
	})
}

// BenchmarkHashes is nanoseconds a message of some lengths, together and one by one.
func BenchmarkHashes(b *testing.B) {
	hasWide := wide
	defer func() { wide = hasWide }()
	for _, way := range []string{"together", "alone"} {
		wide = hasWide && way == "together"
		for _, n := range []int{5, 50, 200} {
			messages := make([][]byte, 128)
			for i := range messages {
				messages[i] = make([]byte, n)
			}
			var h Hasher
			sums, tags, mac := make([][sha256.Size]byte, len(messages)), make([]uint64, len(messages)), NewMAC([]byte("key"))
			each := func(b *testing.B) {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(messages)), "ns/message")
			}
			b.Run(fmt.Sprintf("sums%d/%s", n, way), func(b *testing.B) {
				for b.Loop() {
					h.Sums(sums, messages)
				}
				each(b)
			})
			b.Run(fmt.Sprintf("tags%d/%s", n, way), func(b *testing.B) {
				for b.Loop() {
					h.Tags(mac, tags, nil, messages)
				}
				each(b)
			})
		}
	}
}
