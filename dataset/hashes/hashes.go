// Package hashes is SHA-256 and HMAC-SHA256 of many short messages: sixteen at a time in registers of 512 bits where the processor has them, else one by one by crypto/sha256. What it returns is what
// crypto/sha256 and crypto/hmac return.
//
// It takes the same steps for all messages of one length. Keys and messages are in ordinary memory, as they are in those packages.
package hashes

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
)

const (
	lanes = 16 // messages at a time
	block = sha256.BlockSize
	// padding is the least of what stands behind a message: a bit, and the length.
	padding = 1 + 8
	// fewest is how many messages of one length are worth a turn: it takes as long as hashing so many one by one.
	fewest = 4
)

type (
	state [8][lanes]uint32  // a word of each message, by place
	words [16][lanes]uint32 // of a block of each
)

// initial is the state before the first block (FIPS 180-4, 5.3.3).
var initial = alike([8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19})

// alike is one state for all messages.
func alike(all [8]uint32) (s state) {
	for i := range s {
		for lane := range s[i] {
			s[i][lane] = all[i]
		}
	}
	return s
}

// behindHash are the words of HMAC's second block: behind the first hash, which takes the first eight, a bit and the length of what is hashed.
var behindHash = func() (w words) {
	for lane := range lanes {
		w[8][lane], w[15][lane] = 1<<31, 8*(block+sha256.Size)
	}
	return w
}()

// Hasher computes hashes. It is not for concurrent use.
type Hasher struct {
	state   state
	words   words
	blocks  [lanes][block]byte
	order   []int
	lengths []int
}

// Sums writes the SHA-256 of each message to dst, which is as long.
func (h *Hasher) Sums(dst [][sha256.Size]byte, messages [][]byte) {
	if !wide {
		for i, m := range messages {
			dst[i] = sha256.Sum256(m)
		}
		return
	}
	h.ordered(messages)
	for rest := h.order; len(rest) > 0; {
		blocks := blocksOf(len(messages[rest[0]]))
		n := 1
		for n < min(lanes, len(rest)) && blocksOf(len(messages[rest[n]])) == blocks {
			n++
		}
		if n < fewest {
			for _, i := range rest[:n] {
				dst[i] = sha256.Sum256(messages[i])
			}
		} else {
			h.state = initial
			h.run(messages, rest[:n], blocks, 0)
			for lane, i := range rest[:n] {
				for k := range h.state {
					binary.BigEndian.PutUint32(dst[i][4*k:], h.state[k][lane])
				}
			}
		}
		rest = rest[n:]
	}
}

func blocksOf(length int) int { return (length + padding + block - 1) / block }

// ordered lists the messages by their numbers of blocks: those of one number come one after the other.
func (h *Hasher) ordered(messages [][]byte) {
	h.order, h.lengths = h.order[:0], h.lengths[:0]
	for _, m := range messages {
		n := blocksOf(len(m))
		for len(h.lengths) <= n {
			h.lengths = append(h.lengths, 0)
		}
		h.lengths[n]++
	}
	start := 0
	for n, count := range h.lengths {
		h.lengths[n] = start
		start += count
	}
	for range messages {
		h.order = append(h.order, 0)
	}
	for i, m := range messages {
		n := blocksOf(len(m))
		h.order[h.lengths[n]] = i
		h.lengths[n]++
	}
}

// run compresses all blocks of at most sixteen messages, behind so many bytes that the state has seen.
func (h *Hasher) run(messages [][]byte, chosen []int, blocks, before int) {
	for b := range blocks {
		for lane, i := range chosen {
			fill(&h.blocks[lane], messages[i], b*block, b == blocks-1, before)
		}
		words512(&h.words, &h.blocks)
		compress512(&h.state, &h.words)
	}
}

// fill writes the block of a message from a place on, with what stands behind the message.
func fill(dst *[block]byte, message []byte, from int, last bool, before int) {
	n := 0
	*dst = [block]byte{}
	if from < len(message) {
		n = copy(dst[:], message[from:])
	}
	if n < block && from <= len(message) {
		dst[n] = 0x80
	}
	if last {
		binary.BigEndian.PutUint64(dst[block-8:], 8*uint64(before+len(message)))
	}
}

// MAC is HMAC-SHA256 under a key. It is safe for concurrent use.
type MAC struct {
	key          []byte
	inner, outer state // behind the key's blocks
}

// NewMAC returns the MAC of a key.
func NewMAC(key []byte) *MAC {
	m := &MAC{key: key}
	short := key
	if len(key) > block {
		sum := sha256.Sum256(key)
		short = sum[:]
	}
	m.inner, m.outer = alike(behind(short, 0x36)), alike(behind(short, 0x5c))
	return m
}

// behind is the state of SHA-256 behind the block of a key and a byte of HMAC.
func behind(key []byte, pad byte) (s [8]uint32) {
	var b [block]byte
	copy(b[:], key)
	for i := range b {
		b[i] ^= pad
	}
	h := sha256.New()
	h.Write(b[:])
	text, err := h.(encoding.BinaryMarshaler).MarshalBinary() // four letters, then the words of the state
	if err != nil {
		panic("hashes: " + err.Error()) // it has none
	}
	for i := range s {
		s[i] = binary.BigEndian.Uint32(text[4+4*i:])
	}
	return s
}

// Tags writes the first 64 bits of each message's HMAC-SHA256 under m to first and, where it is not nil, the next to second; both are as long as messages.
func (h *Hasher) Tags(m *MAC, first, second []uint64, messages [][]byte) {
	if !wide {
		mac := hmac.New(sha256.New, m.key)
		var sum []byte
		for i, message := range messages {
			mac.Reset()
			mac.Write(message)
			sum = mac.Sum(sum[:0])
			first[i] = binary.BigEndian.Uint64(sum)
			if second != nil {
				second[i] = binary.BigEndian.Uint64(sum[8:])
			}
		}
		return
	}
	h.ordered(messages)
	for rest := h.order; len(rest) > 0; {
		blocks := blocksOf(len(messages[rest[0]]))
		n := 1
		for n < min(lanes, len(rest)) && blocksOf(len(messages[rest[n]])) == blocks {
			n++
		}
		h.state = m.inner
		h.run(messages, rest[:n], blocks, block)
		h.words = behindHash
		copy(h.words[:8], h.state[:])
		h.state = m.outer
		compress512(&h.state, &h.words)
		for lane, i := range rest[:n] {
			first[i] = uint64(h.state[0][lane])<<32 | uint64(h.state[1][lane])
			if second != nil {
				second[i] = uint64(h.state[2][lane])<<32 | uint64(h.state[3][lane])
			}
		}
		rest = rest[n:]
	}
}
