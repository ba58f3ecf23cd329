package clickhouse

import (
	"encoding/binary"
	"math/bits"
)

// What ClickHouse's cityHash64 is: CityHash64 of Google, version 1.0.2 (Pike and Alakuijala, 2011), of texts, and the finalizer of MurmurHash3 of numbers. Both have been the same in all
// versions, because clusters shard by them.

// hashNumber is cityHash64 of a Float64 with these bits, or of an integer.
func hashNumber(x uint64) uint64 {
	x ^= 0x4CF2D2BAAE6DA887
	x ^= x >> 33
	x *= 0xFF51AFD7ED558CCD
	x ^= x >> 33
	x *= 0xC4CEB9FE1A85EC53
	return x ^ x>>33
}

const (
	city0 = 0xc3a5c85c97cb3127
	city1 = 0xb492b66fbe98f273
	city2 = 0x9ae16a3b2f90404f
	city3 = 0xc949d7c7509e6557
)

func load64(s []byte) uint64 { return binary.LittleEndian.Uint64(s) }

func right(x uint64, n int) uint64 { return bits.RotateLeft64(x, -n) }

func mixed(x uint64) uint64 { return x ^ x>>47 }

// both hashes two hashes.
func both(u, v uint64) uint64 {
	const multiplier = 0x9ddfea08eb382d69
	a := mixed((u ^ v) * multiplier)
	return mixed((v^a)*multiplier) * multiplier
}

// hashText is cityHash64 of a String.
func hashText(s []byte) uint64 {
	n := uint64(len(s))
	end := func(back int) uint64 { return load64(s[len(s)-back:]) }
	switch {
	case n == 0:
		return city2
	case n < 4:
		y, z := uint32(s[0])+uint32(s[n>>1])<<8, uint32(n)+uint32(s[n-1])<<2
		return mixed(uint64(y)*city2^uint64(z)*city3) * city2
	case n <= 8:
		first, last := binary.LittleEndian.Uint32(s), binary.LittleEndian.Uint32(s[n-4:])
		return both(n+uint64(first)<<3, uint64(last))
	case n <= 16:
		b := end(8)
		return both(load64(s), right(b+n, int(n))) ^ b
	case n <= 32:
		a, b, c, d := load64(s)*city1, load64(s[8:]), end(8)*city2, end(16)*city0
		return both(right(a-b, 43)+right(c, 30)+d, a+right(b^city3, 20)-c+n)
	case n <= 64:
		return hashMiddle(s)
	}
	x, y, z := load64(s), end(16)^city1, end(56)^city0
	v := weak(s[n-64:], n, y)
	w := weak(s[n-32:], n*city1, city0)
	z += mixed(v[1]) * city1
	x = right(z+x, 39) * city1
	y = right(y, 33) * city1
	for left := (n - 1) &^ 63; left > 0; left -= 64 {
		x = right(x+y+v[0]+load64(s[16:]), 37) * city1
		y = right(y+v[1]+load64(s[48:]), 42) * city1
		x ^= w[1]
		y ^= v[0]
		z = right(z^w[0], 33)
		v = weak(s, v[1]*city1, x+w[0])
		w = weak(s[32:], z+w[1], y)
		z, x, s = x, z, s[64:]
	}
	return both(both(v[0], w[0])+mixed(y)*city1+z, both(v[1], w[1])+x)
}

// hashMiddle is that of 33 to 64 bytes: of two halves, each from four of its words.
func hashMiddle(s []byte) uint64 {
	half := func(a, z, second, third uint64) (first, last uint64) {
		b, c := right(a+z, 52), right(a, 37)
		a += second
		c += right(a, 7)
		a += third
		return a + z, b + right(a, 31) + c
	}
	n := len(s)
	end := func(back int) uint64 { return load64(s[n-back:]) }
	v0, v1 := half(load64(s)+(uint64(n)+end(16))*city0, load64(s[24:]), load64(s[8:]), load64(s[16:]))
	w0, w1 := half(load64(s[16:])+end(32), end(8), end(24), end(16))
	r := mixed((v0+w1)*city2 + (w0+v1)*city0)
	return mixed(r*city0+v1) * city2
}

// weak hashes 32 bytes from two seeds.
func weak(s []byte, a, b uint64) [2]uint64 {
	last := load64(s[24:])
	a += load64(s)
	b = right(b+a+last, 21)
	c := a
	a += load64(s[8:]) + load64(s[16:])
	b += right(a, 44)
	return [2]uint64{a + last, b + c}
}
