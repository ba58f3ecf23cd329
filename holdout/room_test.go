package holdout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

// What a split decides must not depend on where its arrays lie: in ordinary memory, in a mapped file, or half here and half there when the
// file is full. The test would notice arrays that overlap or are not zero at the start.
func TestSplitInARoom(t *testing.T) {
	const rows = 20_000
	r := rand.New(rand.NewPCG(5, 6))
	c := dataset.Column{Field: dataset.Field{Name: "u", Kind: dataset.Number}, Numbers: make([]float64, rows)}
	times := make([]float64, rows)
	for i := range c.Numbers {
		c.Numbers[i], times[i] = float64(r.IntN(5000))/7, float64(r.IntN(100))
		if r.IntN(50) == 0 {
			c.Numbers[i] = math.NaN()
		}
	}
	s := splitter{key: []byte("room")}
	split := func(room *room) [][]uint32 {
		g := groupIn(room, c, false, func(yield func(int, int) bool) { _ = yield(0, 7001) && yield(7001, rows) })
		tags := s.tags(g, &c, false)
		a, b := byTags(room, tags, sizes{g.n / 3, g.n / 5}), splitByTime(tags, g, times, sizes{g.n / 4, g.n / 6})
		list, offsets, err := g.groupInOrder(a.holdout, placing{rand.New(rand.NewPCG(1, 2))})
		if err != nil {
			t.Fatal(err)
		}
		all := [][]uint32{g.of, g.first, a.training, a.check, a.holdout, b.training, b.check, b.holdout, list, offsets, g.sizes()}
		for i := range all {
			all[i] = slices.Clone(all[i])
		}
		return all
	}
	want := split(nil)
	for _, size := range []int64{roomOnHeap + 1, 1 << 10, 600_000} {
		room, err := newRoom(t.TempDir(), roomOnHeap+1)
		if err != nil {
			t.Fatal(err)
		}
		if room != nil {
			room.used = max(len(room.mapping)-int(size), 0)
		}
		got := split(room)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("with %d bytes, array %d is another than in ordinary memory", size, i)
			}
		}
		if err := room.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// byTags is splitByTag of units with these tags.
func byTags(r *room, tags []uint64, size sizes) parts {
	return splitByTag(r, len(tags), func(dst []uint64, first int) { copy(dst, tags[first:]) }, size)
}

// Taking the first by the bits of their tags that are kept is the same as sorting them, also with ties.
func TestSelectTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Bool().Draw(t, "ties")
		tags := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint64 {
			if few {
				return rapid.SampledFrom([]uint64{0, 1, 1 << 47, 1 << 48, 1 << 63, 1<<63 + 1, math.MaxUint64}).Draw(t, "tag")
			}
			return rapid.Uint64().Draw(t, "tag")
		}), 1, 200).Draw(t, "tags")
		size := rapid.IntRange(0, len(tags)).Draw(t, "size")
		check := rapid.IntRange(0, len(tags)-size).Draw(t, "check")
		sorted, got := order(nil, tags), byTags(nil, tags, sizes{size, check})
		for i, units := range [][]uint32{got.holdout, got.check, got.training} {
			from, to := []int{0, size, size + check}[i], []int{size, size + check, len(tags)}[i]
			if want := slices.Sorted(slices.Values(sorted[from:to])); !slices.Equal(units, want) {
				t.Fatalf("part %d: %v, by sorting %v", i, units, want)
			}
		}
	})
}

// The split of one table by each kind of unit under a fixed key. A server that decided otherwise for a table that comes again, in
// another data directory with the same key, would put rows that were handed out on the other side.
func TestGoldenSplit(t *testing.T) {
	const rows = 1000
	number := dataset.Column{Field: dataset.Field{Kind: dataset.Number}, Numbers: make([]float64, rows)}
	time := dataset.Column{Field: dataset.Field{Kind: dataset.Time}, Numbers: make([]float64, rows)}
	texts := make([]string, rows)
	for i := range rows {
		number.Numbers[i], time.Numbers[i], texts[i] = float64(i/3)-5, float64(i)*3600e6, string(rune('a'+i%26))+"é"
	}
	number.Numbers[7] = math.NaN()
	text := dataset.NewText("s", texts, func(i int) bool { return i == 9 })
	for _, c := range []struct {
		name   string
		column *dataset.Column
		day    bool
		want   string
	}{
		{"row", nil, false, "f23b7bf41ffed535"},
		{"number", &number, false, "d482389d64c4131c"},
		{"time", &time, false, "3f7a8933dc089865"},
		{"day", &time, true, "912270d4d0c38931"},
		{"text", &text, false, "f74c7fd896187a38"},
	} {
		g := groupByRow(rows)
		if c.column != nil {
			g = groupBy(*c.column, c.day)
		}
		p := byTags(nil, splitter{key: []byte("golden")}.tags(g, c.column, c.day), sizes{g.n / 4, 0})
		h := sha256.New()
		for _, u := range p.holdout {
			h.Write(binary.BigEndian.AppendUint32(nil, u))
		}
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != c.want {
			t.Errorf("%s: the split is %s, want %s", c.name, got, c.want)
		}
	}
}

// A warning counts the infinities of the training part, by column, and no nulls.
func TestInfiniteWarnings(t *testing.T) {
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: []float64{1, math.Inf(1), math.NaN(), math.Inf(-1)}},
		dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Number}, Numbers: []float64{1, 2, math.NaN(), 4}})
	if err != nil {
		t.Fatal(err)
	}
	cards, err := columnCards(table.Schema(), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := infiniteWarnings(table, cards)
	if err != nil {
		t.Fatal(err)
	}
	if len(w) != 1 || w[0].Code != "infinite-values" || w[0].Column != "x" || !strings.HasPrefix(w[0].Detail, `2 values of "x" in the training part`) {
		t.Errorf("%+v", w)
	}
	if c := table.Column(0); !c.Null(1) || !c.Null(3) || c.Null(0) {
		t.Error("an infinity is a null")
	}
}
