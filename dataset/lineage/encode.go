package lineage

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// version is the first byte of an encoded sketch. A reader refuses versions that it does not know.
const version = 2

// kindsOf are how many kinds of tokens a version has. The first one knew no names.
var kindsOf = map[byte]int{1: named, version: kinds}

// ErrDamaged: the bytes are no sketch of this version.
var ErrDamaged = errors.New("lineage: these bytes are no sketch of this version")

// MarshalBinary encodes a sketch, without what it was watched for (docs/format/lineage.md). It never fails. The bytes say which rows are alike, and
// with the key, whether a guess of a row is in the table: keep them sealed.
func (s *Sketch) MarshalBinary() ([]byte, error) { return s.encode(version), nil }

func (s *Sketch) encode(v byte) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{v}, uint64(s.Rows))
	b = append(b, byte(s.level))
	for k := range kindsOf[v] {
		b = binary.LittleEndian.AppendUint64(b, s.samples[k].limit)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s.samples[k].tokens)))
		for _, t := range s.samples[k].tokens {
			b = binary.LittleEndian.AppendUint64(b, t.hash)
			b = append(b, t.level, many(t.many), byte(len(t.cells)))
			for _, c := range t.cells {
				b = binary.LittleEndian.AppendUint32(b, uint32(c))
			}
		}
	}
	return b
}

func many(m bool) byte {
	if m {
		return 1
	}
	return 0
}

// UnmarshalBinary decodes a sketch, or fails with ErrDamaged.
func (s *Sketch) UnmarshalBinary(b []byte) error {
	bad := false
	take := func(n int) []byte {
		if len(b) < n {
			bad, b = true, nil
			return make([]byte, n)
		}
		taken := b[:n]
		b = b[n:]
		return taken
	}
	v := take(1)[0]
	if kindsOf[v] == 0 {
		return fmt.Errorf("%w: version %d", ErrDamaged, v)
	}
	*s = Sketch{Rows: int64(binary.LittleEndian.Uint64(take(8)))}
	s.level = int(take(1)[0])
	for k := range kindsOf[v] {
		of := &s.samples[k]
		of.limit = binary.LittleEndian.Uint64(take(8))
		n := binary.LittleEndian.Uint32(take(4))
		if n > uint32(sampleOf(k)) {
			return fmt.Errorf("%w: %d tokens of a kind", ErrDamaged, n)
		}
		for range n {
			t := &token{hash: binary.LittleEndian.Uint64(take(8)), level: take(1)[0]}
			head := take(2)
			if t.many = head[0] == 1; head[0] > 1 || head[1] > MaxCells {
				return fmt.Errorf("%w: a row", ErrDamaged)
			}
			for range head[1] {
				t.cells = append(t.cells, cell(binary.LittleEndian.Uint32(take(4))))
			}
			if last := len(of.tokens) - 1; last >= 0 && of.tokens[last].hash >= t.hash {
				return fmt.Errorf("%w: tokens out of order", ErrDamaged)
			}
			of.tokens = append(of.tokens, t)
		}
	}
	if bad || len(b) > 0 {
		return fmt.Errorf("%w: its length", ErrDamaged)
	}
	return nil
}
