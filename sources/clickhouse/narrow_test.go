package clickhouse

import (
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestNarrow: a type is chosen that holds the least and the greatest value, and none where a value is null, no number, or not whole. It would notice an end that is off by one.
func TestNarrow(t *testing.T) {
	check := func(typ string, want string, ticks float64, facts ...string) {
		t.Helper()
		k := kept{Name: "a", Type: typ, Narrow: "UInt8", Ticks: 7}
		if reason := k.plan(); reason != "" {
			t.Fatal(reason)
		}
		if k.narrow(facts); k.Narrow != want || k.Ticks != ticks {
			t.Errorf("%s of the facts %v is kept in %q times %v, want %q times %v", typ, facts, k.Narrow, k.Ticks, want, ticks)
		}
	}
	for _, c := range []struct{ least, most, want string }{
		{"0", "255", "UInt8"}, {"0", "256", "UInt16"}, {"-1", "127", "Int8"}, {"-128", "128", "Int16"}, {"-129", "0", "Int16"}, {"0", "65535", "UInt16"}, {"-1", "32767", "Int16"}, {"-32768", "32768", "Int32"},
		{"0", "65536", "UInt32"}, {"0", "4294967295", "UInt32"}, {"0", "4294967296", ""}, {"-1", "2147483647", "Int32"}, {"-1", "2147483648", ""}, {"-2147483649", "0", ""}, {"3", "2", ""}, {"", "", ""}, {"nan", "nan", ""},
	} {
		check("Float64", c.want, 0, "0", "0", "1", c.least, c.most)
	}
	check("Float64", "Float32", 0, "0", "0", "0", "0", "4294967296")
	check("Float64", "Float32", 0, "0", "1", "0", "0", "1")
	check("Float64", "", 0, "0", "1", "1", "0", "1")
	check("Float64", "", 0, "1", "0", "0", "0", "1")
	check("DateTime", "UInt32", 1e6, "0", "0", "1", "0", "4294967295000000")
	check("DateTime", "", 0, "0", "0", "1", "0", "4294967296000000")
	check("DateTime", "", 0, "0", "1", "0", "0", "1000000")
	check("DateTime64(6)", "UInt8", 1e6, "0", "0", "0", "0", "255000000")
	check("Date32", "Int8", 86400e6, "0", "0", "1", "-86400000000", "0")
	check("String", "", 0, "", "", "", "", "")
	text := kept{Kind: dataset.Text}
	for _, c := range []struct {
		version int
		texts   int64
		want    string
	}{{18, 2, "c4 String"}, {20, 8192, "c4 LowCardinality(String)"}, {26, 16384, "c4 String"}} {
		if got := text.definition(4, c.version, dataset.TextShape{Texts: c.texts}); got != c.want {
			t.Errorf("%d texts in version %d are %q, want %q", c.texts, c.version, got, c.want)
		}
	}
}
