package lineage

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Versions of an encoded sketch, its first byte. A reader refuses others.
const (
	withoutNames = 1 // it ends after the tokens
	withHalves   = 2 // more kinds of tokens follow, which nothing is compared with any more
	version      = 3

	halvesKinds   = 9
	halvesSample  = 256
	choosesColumn = 0x8000 // beside what a column tells
)

// ErrDamaged: the bytes are no sketch of this version.
var ErrDamaged = errors.New("lineage: these bytes are no sketch of this version")

// MarshalBinary encodes a sketch, without what it was watched for (docs/format/lineage.md). It never fails. The bytes say which rows are alike, and
// with the key, whether a guess of a row is in the table: keep them sealed.
func (s *Sketch) MarshalBinary() ([]byte, error) { return s.encode(version), nil }

func (s *Sketch) encode(v byte) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{v}, uint64(s.Rows))
	b = append(b, byte(s.level))
	for k := range s.samples {
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
	if v == withoutNames {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s.named.columns)))
	for _, c := range s.named.columns {
		told := c.tells
		if c.chooses {
			told |= choosesColumn
		}
		b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint64(b, c.name), told)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s.named.rows)))
	for i, r := range s.named.rows {
		b = append(binary.LittleEndian.AppendUint64(b, r.hash), r.level)
		b = binary.LittleEndian.AppendUint16(b, r.copies)
		for _, c := range s.named.cells[i*len(s.named.columns) : (i+1)*len(s.named.columns)] {
			b = binary.LittleEndian.AppendUint32(b, c)
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

// decoder takes numbers from bytes. Once they are too few it gives zeros, and is short.
type decoder struct {
	b     []byte
	short bool
}

func (d *decoder) take(n int) []byte {
	if len(d.b) < n {
		d.short, d.b = true, nil
		return make([]byte, n)
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) uint8() uint8   { return d.take(1)[0] }
func (d *decoder) uint16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }
func (d *decoder) uint32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *decoder) uint64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

// UnmarshalBinary decodes a sketch, or fails with ErrDamaged.
func (s *Sketch) UnmarshalBinary(b []byte) error {
	d := &decoder{b: b}
	v := d.uint8()
	if v < withoutNames || v > version {
		return fmt.Errorf("%w: version %d", ErrDamaged, v)
	}
	*s = Sketch{Rows: int64(d.uint64())}
	s.level = int(d.uint8())
	for k := range s.samples {
		if err := d.sample(&s.samples[k], Sample); err != nil {
			return err
		}
	}
	switch v {
	case withHalves:
		for range halvesKinds {
			if err := d.sample(new(sample), halvesSample); err != nil {
				return err
			}
		}
	case version:
		if err := d.named(&s.named); err != nil {
			return err
		}
	}
	if d.short || len(d.b) > 0 {
		return fmt.Errorf("%w: its length", ErrDamaged)
	}
	return nil
}

// sample takes the tokens of a kind.
func (d *decoder) sample(of *sample, most uint32) error {
	of.limit = d.uint64()
	n := d.uint32()
	if n > most {
		return fmt.Errorf("%w: %d tokens of a kind", ErrDamaged, n)
	}
	for range n {
		t := &token{hash: d.uint64(), level: d.uint8()}
		head := d.take(2)
		if t.many = head[0] == 1; head[0] > 1 || head[1] > MaxCells {
			return fmt.Errorf("%w: a row", ErrDamaged)
		}
		for range head[1] {
			t.cells = append(t.cells, cell(d.uint32()))
		}
		if last := len(of.tokens) - 1; last >= 0 && of.tokens[last].hash >= t.hash {
			return fmt.Errorf("%w: tokens out of order", ErrDamaged)
		}
		of.tokens = append(of.tokens, t)
	}
	return nil
}

// named takes the rows with names.
func (d *decoder) named(n *named) error {
	columns := d.uint16()
	if columns > NamedColumns {
		return fmt.Errorf("%w: %d columns", ErrDamaged, columns)
	}
	for i := range columns {
		c := namedColumn{name: d.uint64()}
		told := d.uint16()
		c.tells, c.chooses = told&^choosesColumn, told&choosesColumn != 0
		if c.tells > longBits*tellsUnit || i > 0 && n.columns[i-1].name >= c.name {
			return fmt.Errorf("%w: a column", ErrDamaged)
		}
		n.columns = append(n.columns, c)
	}
	rows := d.uint16()
	if rows > NamedRows {
		return fmt.Errorf("%w: %d rows", ErrDamaged, rows)
	}
	for i := range rows {
		r := namedRow{hash: d.uint64(), level: d.uint8(), copies: d.uint16()}
		if i > 0 && n.rows[i-1].hash >= r.hash {
			return fmt.Errorf("%w: rows out of order", ErrDamaged)
		}
		n.rows = append(n.rows, r)
		for range columns {
			n.cells = append(n.cells, d.uint32())
		}
	}
	return nil
}
