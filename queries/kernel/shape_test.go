package kernel

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
)

// outline is everything of a program that its time and memory can depend on: each step with its registers, constants and lists. Only the
// codes of literals, and what stands in tables, are left out: they are data to the steps.
func (p *Program) outline() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.functions, len(p.numbers.columns), len(p.bytes.columns), len(p.codes.columns), p.numbers.count(), p.bytes.count(), p.codes.count(),
		p.constants, p.scores, p.features, p.scratch, p.chained, p.Tables())
	for i := range p.steps {
		s := &p.steps[i]
		aux := s.aux
		if (s.op == opCodeEq || s.op == opCodeNe) && aux != 0 {
			aux = 1
		}
		fmt.Fprint(&b, s.op, s.a, s.b, s.c, s.k, aux, s.column, s.other, s.check, s.list, s.falling, s.dst, s.constant, s.high, s.first)
		if s.table != nil {
			fmt.Fprint(&b, s.table.op, s.table.size(), s.table.literals)
		}
		if s.sink != nil {
			sink := *s.sink
			if sink.chain != nil {
				fmt.Fprint(&b, *sink.chain, s.next)
				sink.chain = nil
			}
			fmt.Fprint(&b, sink)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// twins draws two tables of one schema and one public shape whose rows, texts and numbers of distinct texts are different.
func twins(t *rapid.T) (twins [2]*dataset.Table) {
	rows := rapid.IntRange(1, 40).Draw(t, "rows")
	texts := map[string]int{"s": rapid.SampledFrom([]int{1, 2, 8, 128}).Draw(t, "texts"), "t": rapid.SampledFrom([]int{4, 16}).Draw(t, "more texts")}
	for i := range twins {
		like := randomtree.Table(randomtree.Rows(t, rows))
		var columns []dataset.Column
		for c := range like.Columns() {
			column := *like.Column(c)
			if n := texts[column.Name]; n > 0 {
				column = drawTexts(t, column.Name, rows, n)
			}
			columns = append(columns, column)
		}
		table, err := dataset.FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		twins[i] = table
	}
	if a, b := twins[0].Shape(), twins[1].Shape(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatalf("shapes %v and %v", a, b)
	}
	return twins
}

// drawTexts is a column whose dictionary has more than half as many texts as most, up to as many, and more than 4096 bytes, up to 8192.
func drawTexts(t *rapid.T, name string, rows, most int) dataset.Column {
	pool := []string{"", "a", "A", "ab", "abc", "b", "é", "日本"} // those of the literals
	n := rapid.IntRange(most/2+1, most).Draw(t, "dictionary")
	known, dictionary, bytes := map[string]bool{}, []string{}, 1
	for len(dictionary) < n {
		text := fmt.Sprintf("%s%d", rapid.SampledFrom(pool).Draw(t, "text"), len(dictionary))
		if p := rapid.SampledFrom(pool).Draw(t, "literal"); !known[p] && rapid.Bool().Draw(t, "use") {
			text = p
		}
		if len(dictionary) == n-1 {
			text = strings.Repeat("x", rapid.IntRange(4096, 7000).Draw(t, "long")-bytes)
		}
		known[text] = true
		dictionary = append(dictionary, text)
		bytes += len(text) + 1
	}
	codes := make([]uint32, rows)
	for i := range codes {
		codes[i] = uint32(rapid.IntRange(0, n).Draw(t, "code"))
	}
	return dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Text}, Codes: codes, Dictionary: dataset.NewDictionary(dictionary...)}
}

// TestProgramsOfTwins: over two tables of one public shape the same questions are the same program, and take as many steps before the
// first row and in as many bytes of tables. A literal that is folded, merged or left early because of what a dictionary has is seen here.
func TestProgramsOfTwins(t *testing.T) {
	linear, err := model.Parse([]byte(`{"linear":{"weights":{"x":1,"s":{"a":2,"zzz":3}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	scanning := 0
	twinsAgree := func(t *rapid.T) {
		tables := twins(t)
		functions := make([]rowfn.Function, rapid.IntRange(1, 5).Draw(t, "functions"))
		for i := range functions {
			f := rowfn.Function{Lo: -1, Hi: 1, Where: randomtree.Condition(t, rapid.IntRange(0, 3).Draw(t, "depth"))}
			switch rapid.IntRange(0, 3).Draw(t, "value") {
			case 0:
				f.Value = randomtree.Condition(t, 3)
			case 1:
				f.Value = randomtree.Number(t, 3)
			case 2: // a lookup, as models have them
				column := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "column")}
				lookup := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{column}, Texts: map[string]float64{"a": 1, "abc": 2, "nowhere": 1e300}, Number: math.NaN()}
				x := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: "x"}
				f.Value = &rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Args: scoreArgs(linear, x, lookup), Model: linear.Scorer()}
			}
			functions[i] = f
		}
		functions = append(functions, compared())
		var outlines [2]string
		var steps, want [2]int64
		for i, table := range tables {
			p, err := Compile(functions, table)
			if err != nil {
				t.Fatal(err)
			}
			outlines[i] = p.outline()
			for _, s := range p.tables {
				if s.op != rowfn.OpIn && s.op != rowfn.OpLookup && s.literals[0] != "" {
					want[i] += ScanSteps(s.dictionary.Shape(), s.literals[0])
				}
			}
			before := scanned.Load()
			if err := p.Fill(); err != nil {
				t.Fatal(err)
			}
			steps[i] = scanned.Load() - before
			for _, s := range p.tables {
				if int64(8*(len(s.bits)+len(s.list))+len(s.bytes)) != s.size() {
					t.Fatalf("a table of %d and %d words is said to have %d bytes", len(s.bits), len(s.list), s.size())
				}
			}
		}
		if outlines[0] != outlines[1] {
			t.Fatalf("two programs for\n%v\n%s\n%s", functions, outlines[0], outlines[1])
		}
		if steps[0] != steps[1] || steps[0] != want[0] || want[0] != want[1] {
			t.Fatalf("%v steps, said to be %v", steps, want)
		}
		if steps[0] > 0 {
			scanning++
		}
	}
	for turn := range 8 { // a hundred tables rarely show that a text is folded: once in six runs none did
		rapid.Check(t, stattest.Further(turn, twinsAgree))
	}
	if scanning < 3 { // of 100; the test would see nothing without
		t.Errorf("%d draws look for parts of texts", scanning)
	}
}

// compared is a conjunction of comparisons of one column with many literals: in each table it has some of them.
func compared() rowfn.Function {
	column := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "s"}
	all := &rowfn.Node{Op: rowfn.OpAnd, Type: rowfn.Condition}
	for _, text := range []string{"", "a", "A", "ab", "abc", "b", "é", "日本"} {
		literal := &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: text}
		all.Args = append(all.Args, &rowfn.Node{Op: rowfn.OpNe, Type: rowfn.Condition, Args: []*rowfn.Node{column, literal}})
	}
	return rowfn.Function{Lo: 0, Hi: 1, Value: all}
}

func scoreArgs(m *model.Model, x, lookup *rowfn.Node) (args []*rowfn.Node) {
	for _, f := range m.Features() {
		if f.Texts != nil {
			args = append(args, lookup)
		} else {
			args = append(args, x)
		}
	}
	return args
}

// TestScan: a search of the whole dictionary as one stream finds what package strings finds in each text, also over many words of codes
// and with literals of several words.
func TestScan(t *testing.T) {
	letters := rapid.SampledFrom([]string{"a", "b", "é", "日", strings.Repeat("ab", 40), strings.Repeat("a", 63)})
	word := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(letters, 0, 6).Draw(t, "letters"), "") })
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(word, 1, 200).Draw(t, "values")
		for i := range 150 { // codes of several words
			values = append(values, fmt.Sprint(i, "ab"))
		}
		column := dataset.NewText("t", values, nil)
		literal := word.Draw(t, "literal")
		if rapid.Bool().Draw(t, "a part of a text") {
			runes := []rune(values[0])
			from := rapid.IntRange(0, len(runes)).Draw(t, "from")
			literal = string(runes[from:rapid.IntRange(from, len(runes)).Draw(t, "to")])
		}
		for _, o := range []rowfn.Op{rowfn.OpContains, rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpIn} {
			table := &table{op: o, dictionary: &column.Dictionary, literals: []string{literal}}
			table.fill()
			dst := make([]uint8, len(values))
			codeLookup(dst, column.Codes, table.bits)
			small := make([]uint8, len(values))
			if codeBytes(small, column.Codes, table.bytes); string(small) != string(dst) {
				t.Fatalf("%v by bytes, %v by bits", small, dst)
			}
			for i, v := range values {
				if want := bit(textTest(o, v, literal)); dst[i] != want {
					t.Fatalf("operation %d of %q and %q: %d, want %d", o, v, literal, dst[i], want)
				}
			}
			if table.bits[0]&1 != 0 {
				t.Fatalf("operation %d holds for null", o)
			}
		}
	})
}
