package sql

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// Found is what a statement says of the rows that it read, beside the sums.
type Found struct {
	Rows, Units int64
	Unit        uint64   // the sum of the units' numbers: of rows, or of units where they may have several rows
	Checksums   []uint64 // of the columns of the statement
}

// errAnswer is a Changed error: the engine has answered what no rows can be the reason of. Its texts depend on nothing.
func errAnswer(format string, args ...any) error {
	return &sources.Error{Kind: sources.Changed, Detail: "the source's rows are not those that were registered; nothing is asked there until the owner has mended it",
		Err: fmt.Errorf(format, args...)}
}

// Read reads a statement's row, or the row of each of several machines that have some of the units each, compares what they say of the rows that were read with what was registered,
// and puts the sums into place. Integers are in decimal digits. Its errors are [sources.Changed].
func (s *Statement) Read(checks *Checks, into *rowfn.Sums, rows ...[]string) error {
	values, err := s.added(rows)
	if err != nil {
		return err
	}
	found := s.found(values)
	if err := s.compare(found, checks); err != nil {
		return err
	}
	sums := values[s.Width-s.sums:]
	n := s.to - s.from
	of := func(at int) *big.Int {
		if at == countOfUnits {
			return big.NewInt(n)
		}
		return new(big.Int).SetUint64(sums[at])
	}
	most := new(big.Int).Mul(big.NewInt(n), big.NewInt(rowfn.One))
	for _, t := range s.functions {
		sum := new(big.Int)
		for _, term := range t.terms {
			sum.Add(sum, new(big.Int).Mul(of(term.sum), big.NewInt(term.factor)))
		}
		if sum.Sign() < 0 || sum.Cmp(most) > 0 {
			return errAnswer("sql: the sum %v of %d values", sum, n)
		}
		into.Values[t.function] = sum.Int64()
	}
	most.Mul(most, big.NewInt(rowfn.One))
	for _, t := range s.products {
		sum := of(t.low)
		if t.high != noSum {
			sum = new(big.Int).Add(new(big.Int).Lsh(of(t.high), 32), sum)
		}
		sum = new(big.Int).Mul(sum, new(big.Int).Mul(big.NewInt(t.a), big.NewInt(t.b)))
		if sum.Sign() < 0 || sum.Cmp(most) > 0 {
			return errAnswer("sql: the sum %v of %d products", sum, n)
		}
		lo := new(big.Int).And(sum, new(big.Int).SetUint64(^uint64(0)))
		into.Products[t.product] = rowfn.Wide{Hi: new(big.Int).Rsh(sum, 64).Uint64(), Lo: lo.Uint64()}
	}
	return nil
}

// added is the sum of rows, integer by integer, modulo 2^64.
func (s *Statement) added(rows [][]string) ([]uint64, error) {
	total := make([]uint64, s.Width)
	for _, row := range rows {
		if len(row) != s.Width {
			return nil, errAnswer("sql: a row of %d integers, want %d", len(row), s.Width)
		}
		for i, text := range row {
			x, err := parseInteger(text)
			if err != nil {
				return nil, errAnswer("sql: integer %d: %w", i, err)
			}
			total[i] += x
		}
	}
	return total, nil
}

// parseInteger reads an integer with or without a sign as 64 bits.
func parseInteger(text string) (uint64, error) {
	if x, err := strconv.ParseInt(text, 10, 64); err == nil {
		return uint64(x), nil
	}
	return strconv.ParseUint(text, 10, 64)
}

func (s *Statement) found(values []uint64) Found {
	f := Found{Units: int64(values[0]), Rows: int64(values[0]), Unit: values[1]}
	values = values[2:]
	if s.grouped {
		f.Rows, values = int64(values[0]), values[1:]
	}
	for range s.Columns {
		switch s.perCheck {
		case 1:
			f.Checksums = append(f.Checksums, values[0])
		default: // high and low halves
			f.Checksums = append(f.Checksums, values[0]<<32+values[1])
		}
		values = values[s.perCheck:]
	}
	return f
}

// compare compares what was found with what was registered.
func (s *Statement) compare(f Found, checks *Checks) error {
	n := uint64(s.high - s.low)
	if f.Units != s.high-s.low {
		return errAnswer("sql: %d units, want %d", f.Units, n)
	}
	if want := n * (uint64(s.low+s.high) - 1) / 2; f.Unit != want { // below 2^62
		return errAnswer("sql: the numbers of the units add up to %d, want %d", f.Unit, want)
	}
	if checks == nil {
		return nil
	}
	return checks.compare(s.low, s.high, f, s.Columns)
}
