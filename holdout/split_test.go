package holdout

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

// drawColumn is a small column of any kind with nulls and many repeats.
func drawColumn(t *rapid.T, rows int) dataset.Column {
	kind := rapid.SampledFrom([]dataset.Kind{dataset.Number, dataset.Bool, dataset.Text, dataset.Time}).Draw(t, "kind")
	c := dataset.Column{Field: dataset.Field{Name: "c", Kind: kind}}
	for range rows {
		v := rapid.IntRange(-1, 12).Draw(t, "value") // -1 is null
		switch kind {
		case dataset.Bool:
			c.Bools = append(c.Bools, uint8([]int{2, 0, 1}[(v+1)%3]))
		case dataset.Text:
			c.Codes = append(c.Codes, uint32(v+1))
		case dataset.Time:
			c.Numbers = append(c.Numbers, float64(v-6)*microsecondsPerDay/3)
		default:
			c.Numbers = append(c.Numbers, float64(v)/2)
		}
		if v < 0 && c.Numbers != nil {
			c.Numbers[len(c.Numbers)-1] = math.NaN()
		}
	}
	if kind == dataset.Text {
		texts := make([]string, 13)
		for i := range texts {
			texts[i] = fmt.Sprintf("v%02d", i)
		}
		c.Dictionary = dataset.NewDictionary(texts...)
	}
	table, err := dataset.FromColumns(c)
	if err != nil {
		t.Fatal(err)
	}
	return *table.Column(0)
}

// TestSplitKeepsUnitsWhole: rows that share a value are on one side, the sizes are exact, every row is somewhere, nulls
// are alone, and unit offsets delimit equal values.
func TestSplitKeepsUnitsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(2, 60).Draw(t, "rows")
		c := drawColumn(t, rows)
		day := c.Kind == dataset.Time && rapid.Bool().Draw(t, "day")
		g := groupBy(c, day)
		if g.n < 2 {
			return
		}
		s := splitter{key: []byte("a key")}
		size := rapid.IntRange(1, g.n-1).Draw(t, "size")
		check := rapid.IntRange(0, g.n-size).Draw(t, "check")
		p := byTags(nil, s.tags(g, &c, day), sizes{size, check})
		if len(p.holdout) != size || len(p.check) != check || len(p.holdout)+len(p.check)+len(p.training) != g.n {
			t.Fatalf("sides of %d, %d and %d units, want %d and %d of %d", len(p.training), len(p.check), len(p.holdout), check, size, g.n)
		}
		if without := byTags(nil, s.tags(g, &c, day), sizes{size, 0}); !slices.Equal(p.holdout, without.holdout) {
			t.Fatalf("with a check part the holdout has other units: %v and %v", p.holdout, without.holdout)
		}
		side := make([]int, rows)
		for i, units := range [][]uint32{p.training, p.holdout, p.check} {
			list, offsets, err := g.groupInOrder(units, placing{rand.New(rand.NewPCG(1, 2))})
			if err != nil {
				t.Fatal(err)
			}
			if len(offsets) != len(units)+1 || int(offsets[len(units)]) != len(list) {
				t.Fatalf("%d offsets end at %d, for %d units and %d rows", len(offsets), offsets[len(units)], len(units), len(list))
			}
			for u := range units {
				unit := list[offsets[u]:offsets[u+1]]
				for _, row := range unit {
					if side[row] != 0 {
						t.Fatalf("row %d is on two sides", row)
					}
					side[row] = i + 1
					if g.of[row] != units[u] {
						t.Fatalf("row %d lies in unit %d's stretch", row, units[u])
					}
				}
			}
		}
		for a := range rows {
			if side[a] == 0 {
				t.Fatalf("row %d is on no side", a)
			}
			for b := range a {
				same := sameCell(c, a, b)
				if day {
					same = dayOf(c.Numbers[a]) == dayOf(c.Numbers[b])
				}
				if one := g.of[a] == g.of[b]; one != (same && !c.Null(a)) {
					t.Fatalf("rows %d and %d: one unit %v, same value %v", a, b, one, same)
				}
			}
		}
	})
}

// TestTags: a tag is the HMAC of its unit's value, however many are made at a time.
func TestTags(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, rapid.IntRange(1, 200).Draw(t, "rows"))
		key := []byte(rapid.StringN(0, 40, 100).Draw(t, "key"))
		g := groupBy(c, false)
		for u, tag := range (splitter{key: key}).tags(g, &c, false) {
			mac := hmac.New(sha256.New, key)
			mac.Write(appendUnitValue(nil, &c, false, g.first[u]))
			if want := binary.BigEndian.Uint64(mac.Sum(nil)); tag != want {
				t.Fatalf("unit %d has the tag %x, want %x", u, tag, want)
			}
		}
	})
}

// TestSplitIsReproducible: the side of a value depends on the key and the value only, not on the other rows' order.
func TestSplitIsReproducible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, rapid.IntRange(1, 40).Draw(t, "rows"))
		s := splitter{key: []byte("a key")}
		g := groupBy(c, false)
		tags := s.tags(g, &c, false)
		if !slices.Equal(tags, s.tags(g, &c, false)) {
			t.Fatal("tags differ from run to run")
		}
		if other := (splitter{key: []byte("another key")}).tags(g, &c, false); slices.Equal(tags, other) {
			t.Fatal("tags do not depend on the key")
		}
		row := rapid.IntRange(0, c.Len()-1).Draw(t, "row")
		if c.Null(row) {
			return
		}
		single := c
		switch c.Kind {
		case dataset.Text:
			single.Codes = c.Codes[row : row+1]
		case dataset.Bool:
			single.Bools = c.Bools[row : row+1]
		default:
			single.Numbers = c.Numbers[row : row+1]
		}
		if got, want := s.tags(groupBy(single, false), &single, false)[0], tags[g.of[row]]; got != want {
			t.Fatalf("tag %x alone, %x among others", got, want)
		}
	})
}

// TestUnitValuesAreInjective: no two different values of any kind have one encoding.
func TestUnitValuesAreInjective(t *testing.T) {
	number := dataset.Column{Field: dataset.Field{Kind: dataset.Number}, Numbers: []float64{0, 1, math.NaN(), 65}}
	times := dataset.Column{Field: dataset.Field{Kind: dataset.Time}, Numbers: []float64{0, 1, math.NaN(), 65}}
	bools := dataset.Column{Field: dataset.Field{Kind: dataset.Bool}, Bools: []uint8{0, 1, 2, 2}}
	texts := dataset.Column{Field: dataset.Field{Kind: dataset.Text}, Codes: []uint32{1, 2, 0, 0}, Dictionary: dataset.NewDictionary("", "n\x00\x00\x00\x00\x00\x00\x00\x00")}
	seen := map[string]string{}
	check := func(name string, c *dataset.Column, day bool, row uint32) {
		t.Helper()
		value := string(appendUnitValue(nil, c, day, row))
		if other, ok := seen[value]; ok {
			t.Errorf("%s and %s are both %q", name, other, value)
		}
		seen[value] = name
	}
	for row := range uint32(4) {
		check(fmt.Sprint("row ", row), nil, false, row)
		check(fmt.Sprint("number ", row), &number, false, row)
	}
	check("false", &bools, false, 0)
	check("true", &bools, false, 1)
	check("empty text", &texts, false, 0)
	check("text", &texts, false, 1)
	check("time", &times, false, 0)
	check("later", &times, false, 1)
	check("day", &times, true, 0)
}

func TestHoldoutSize(t *testing.T) {
	check := func(setting float64, n, want int) {
		t.Helper()
		if got, err := holdoutSize(setting, n); err != nil || got != want {
			t.Errorf("holdoutSize(%v, %d) = %d, %v; want %d", setting, n, got, err, want)
		}
	}
	check(0.3, 10, 3)
	check(0.25, 10, 3) // halves upwards
	check(0.001, 10, 1)
	check(0.999, 10, 9)
	check(1, 10, 10)
	check(2, 10, 2)
	check(9, 10, 9)
	check(1, 1, 1)
	refuse := func(setting float64, n int, want Kind) {
		t.Helper()
		if got, err := holdoutSize(setting, n); KindOf(err) != want {
			t.Errorf("holdoutSize(%v, %d) = %d, %v; want kind %d", setting, n, got, err, want)
		}
	}
	refuse(10, 10, Invalid)
	refuse(2.5, 10, Invalid)
	refuse(-1, 10, Invalid)
	refuse(math.NaN(), 10, Invalid)
	refuse(math.Inf(1), 10, Invalid)
	refuse(0.5, 0, BadUpload)
	refuse(0.5, 1, BadUpload)
}

// TestApportion: shares add up, and each is its exact share rounded down or up.
func TestApportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		totals := rapid.SliceOfN(rapid.IntRange(1, 1000), 1, 20).Draw(t, "totals")
		n := 0
		for _, v := range totals {
			n += v
		}
		size, sum := rapid.IntRange(0, n).Draw(t, "size"), 0
		for i, got := range apportion(totals, size) {
			sum += got
			if exact := float64(totals[i]) * float64(size) / float64(n); math.Abs(float64(got)-exact) >= 1 || got > totals[i] {
				t.Fatalf("class %d of %d gets %d, exactly %v", i, totals[i], got, exact)
			}
		}
		if sum != size {
			t.Fatalf("%d given of %d", sum, size)
		}
	})
}

// TestStrataCounts: the card's counts are those of the split, in proportion.
func TestStrataCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawColumn(t, rapid.IntRange(2, 80).Draw(t, "rows"))
		g := groupByRow(c.Len())
		s, err := stratify(c, g)
		if err != nil {
			t.Fatal(err)
		}
		tags := splitter{key: []byte("k")}.tags(g, nil, false)
		size := rapid.IntRange(1, g.n-1).Draw(t, "size")
		p, counts := splitByStrata(nil, tags, s, sizes{size, rapid.IntRange(0, g.n-size).Draw(t, "check")})
		if without, _ := splitByStrata(nil, tags, s, sizes{size, 0}); !slices.Equal(p.holdout, without.holdout) {
			t.Fatalf("with a check part the holdout has other units: %v and %v", p.holdout, without.holdout)
		}
		got := map[string]Counts{}
		for _, u := range p.training {
			n := got[s.names[s.of[u]]]
			n.Training++
			got[s.names[s.of[u]]] = n
		}
		for _, u := range p.check {
			n := got[s.names[s.of[u]]]
			n.Check++
			got[s.names[s.of[u]]] = n
		}
		for _, u := range p.holdout {
			n := got[s.names[s.of[u]]]
			n.Holdout++
			got[s.names[s.of[u]]] = n
		}
		if fmt.Sprint(got) != fmt.Sprint(counts) {
			t.Fatalf("card says %v, split has %v", counts, got)
		}
	})
}

func TestStratifyRefuses(t *testing.T) {
	var many dataset.Column
	many.Kind, many.Name = dataset.Number, "x"
	for i := range MaxStrata + 1 {
		many.Numbers = append(many.Numbers, float64(i))
	}
	if _, err := stratify(many, groupByRow(MaxStrata+1)); KindOf(err) != Invalid {
		t.Errorf("%d strata: %v", MaxStrata+1, err)
	}
	if _, err := stratify(many, groupByRow(MaxStrata)); err != nil {
		t.Errorf("%d strata: %v", MaxStrata, err)
	}
	unit := dataset.Column{Field: dataset.Field{Name: "u", Kind: dataset.Bool}, Bools: []uint8{1, 1, 0}}
	label := dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Bool}, Bools: []uint8{1, 0, 0}}
	if _, err := stratify(label, groupBy(unit, false)); KindOf(err) != Invalid {
		t.Errorf("a stratum that differs within a unit: %v", err)
	}
}

// TestTimeSplit: no training unit is later than one of the check part, nor one of these than a holdout unit, by their latest rows.
func TestTimeSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(2, 50).Draw(t, "rows")
		times, unit := make([]float64, rows), dataset.Column{Field: dataset.Field{Kind: dataset.Number}}
		for i := range times {
			times[i] = float64(rapid.IntRange(0, 10).Draw(t, "time"))
			if times[i] == 10 {
				times[i] = math.NaN()
			}
			unit.Numbers = append(unit.Numbers, float64(rapid.IntRange(0, 9).Draw(t, "unit")))
		}
		g := groupByRow(rows)
		if rapid.Bool().Draw(t, "grouped") {
			g = groupBy(unit, false)
		}
		if g.n < 2 {
			return
		}
		tags := splitter{key: []byte("k")}.tags(g, nil, false)
		size := rapid.IntRange(1, g.n-1).Draw(t, "size")
		check := rapid.IntRange(0, g.n-size).Draw(t, "check")
		p := splitByTime(tags, g, times, sizes{size, check})
		latest := func(units []uint32, pick func(...float64) float64) float64 {
			out := math.NaN()
			for _, u := range units {
				late := math.Inf(-1)
				for row, v := range times {
					if (g.of == nil && row == int(u) || g.of != nil && g.of[row] == u) && v > late {
						late = v
					}
				}
				if out != out {
					out = late
				}
				out = pick(out, late)
			}
			return out
		}
		last := func(units []uint32) float64 {
			return latest(units, func(v ...float64) float64 { return math.Max(v[0], v[1]) })
		}
		first := func(units []uint32) float64 {
			return latest(units, func(v ...float64) float64 { return math.Min(v[0], v[1]) })
		}
		if len(p.holdout) != size || len(p.check) != check || last(p.training) > first(p.holdout) || last(p.training) > first(p.check) || last(p.check) > first(p.holdout) {
			t.Fatalf("training reaches %v, check of %d goes from %v to %v, holdout of %d begins at %v", last(p.training), len(p.check), first(p.check), last(p.check), len(p.holdout), first(p.holdout))
		}
	})
}

// TestSplitLooksRandom: membership is uncorrelated with the ordinal. Of 64 stretches of 1,000 rows each has a
// hypergeometric number of holdout rows with mean 300 and standard deviation below 14.5; all within 6 of them holds
// but for a chance below 64 * 2e-9 = 2e-7 over the choice of the (fixed) key.
func TestSplitLooksRandom(t *testing.T) {
	g := groupByRow(64_000)
	p := byTags(nil, splitter{key: []byte("fixed")}.tags(g, nil, false), sizes{holdout: 19_200})
	var stretch [64]int
	for _, u := range p.holdout {
		stretch[u/1000]++
	}
	for i, n := range stretch {
		if math.Abs(float64(n)-300) > 6*14.5 {
			t.Errorf("stretch %d has %d holdout rows of an expected 300", i, n)
		}
	}
	if !slices.IsSorted(p.holdout) || !slices.IsSorted(p.training) {
		t.Error("units are not listed by their first rows")
	}
}

func TestParseUnit(t *testing.T) {
	schema := dataset.Schema{Fields: []dataset.Field{{Name: "date", Kind: dataset.Time}, {Name: "day(x)", Kind: dataset.Number}, {Name: "x", Kind: dataset.Number}}}
	check := func(s, want string) {
		t.Helper()
		if got, err := parseUnit(s, schema); err != nil || got.String() != want {
			t.Errorf("parseUnit(%q) = %v, %v", s, got, err)
		}
	}
	check("", "row")
	check("row", "row")
	check("x", "x")
	check("date", "date")
	check("day(date)", "day(date)")
	check("day(x)", "day(x)") // the column of that name
	for _, s := range []string{"y", "day(y)", "day(date", "day()"} {
		if _, err := parseUnit(s, schema); KindOf(err) != Invalid {
			t.Errorf("parseUnit(%q): %v", s, err)
		}
	}
	if got, _ := parseUnit("day(date)", schema); !got.Day || got.Column != "date" {
		t.Errorf("day(date) reads as %+v", got)
	}
}

// Numbers are numbered in the order in which they come first, however often the table grows in between, with numbers that are none among them; a map says the same.
func TestUnitTable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	table, seen, next := newUnitTable(nil, 0), map[float64]uint32{}, uint32(0)
	for range 100_000 {
		v := float64(r.IntN(30_000)) / 8
		if r.IntN(10) == 0 {
			v = math.NaN()
		}
		want, known := seen[v]
		if !known {
			want = next
			next++
			if v == v {
				seen[v] = want
			}
		}
		if unit, old := table.unit(v); unit != want || old != known {
			t.Fatalf("%v is unit %d, known %v; want %d, %v", v, unit, old, want, known)
		}
	}
}

// Units that lie together are those that their values say.
func TestGroupTogether(t *testing.T) {
	c := dataset.Column{Field: dataset.Field{Name: "u", Kind: dataset.Number}, Numbers: []float64{5, 5, math.NaN(), math.NaN(), 2, 7, 7, 7}}
	want, got := groupBy(c, false), groupTogether(nil, []uint32{0, 2, 3, 4, 5, 8})
	if got.n != want.n || !slices.Equal(got.of, want.of) || !slices.Equal(got.first, want.first) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Of a large table no row is looked at before the first look that is held out where nothing is asked for, and nearly all others are.
func TestEarlyRowsAreTraining(t *testing.T) {
	const n = earlyExact + 1
	s := splitter{key: []byte("early")}
	size, err := holdoutSize(DefaultHoldout, n)
	if err != nil {
		t.Fatal(err)
	}
	held := make([]bool, n)
	for _, u := range byTags(nil, s.tags(groupByRow(n), nil, false), sizes{holdout: size}).holdout {
		held[u] = true
	}
	early := earlyRows(s, n, size, n)
	for _, u := range early {
		if held[u] {
			t.Fatalf("row %d", u)
		}
	}
	if all := n - size; len(early) < all*99/100 {
		t.Errorf("%d rows of %d", len(early), all)
	}
	if few := earlyRows(s, n, size, 1000); !slices.Equal(few, early[:1000]) {
		t.Error("the first rows are others where fewer are asked for")
	}
}
