package ingest

import (
	"encoding/json"
	"strings"
)

// program is the one that wrote a file, where what it means by a type, or what its user can do about a column, differs from others.
type program int

const (
	otherWriter  program = iota
	pandasWriter         // or pyarrow alone
	fastparquetWriter
	polarsWriter
	duckdbWriter
	sparkWriter
	clickhouseWriter
)

// writerNames begin the value of created_by.
var writerNames = map[string]program{"parquet-cpp": pandasWriter, "fastparquet": fastparquetWriter, "polars": polarsWriter, "duckdb": duckdbWriter,
	"parquet-mr": sparkWriter, "clickhouse": clickhouseWriter}

func writerOf(createdBy []byte) program {
	name := strings.ToLower(string(createdBy[:min(len(createdBy), maxWriterName)]))
	for begin, w := range writerNames {
		if strings.HasPrefix(name, begin) {
			return w
		}
	}
	return otherWriter
}

// Keys of the footer under which writers keep what Parquet's types do not say.
const (
	pandasKey = "pandas"
	geoKey    = "geo"
	sparkKey  = "org.apache.spark.sql.parquet.row.metadata"
	// maxOrigin bounds what is parsed of each: that of 16,384 columns has about 3 MB.
	maxOrigin = 16 << 20
)

// origin is what the writer says of columns beside their types, by their names. It is for people, and the values are good without it: what cannot be parsed is not known.
type origin struct {
	by       program
	arrow    arrowFacts
	pandas   map[string]string // dtypes
	spark    map[string]string // types
	geometry map[string]bool
	ordered  map[string]bool // categories whose order means something
	category map[string]bool // categories of pandas, with an order or without
	index    []string        // columns that are a pandas index without a name
}

func newOrigin(m *metadata) *origin {
	o := &origin{by: m.by, pandas: map[string]string{}, category: map[string]bool{}, spark: map[string]string{}, geometry: map[string]bool{}, arrow: readArrow(m.arrow)}
	o.ordered = o.arrow.ordered
	if o.ordered == nil {
		o.ordered = map[string]bool{}
	}
	var frame struct {
		Index   []any `json:"index_columns"`
		Columns []struct {
			Name  string `json:"field_name"`
			Dtype string `json:"numpy_type"`
			Type  string `json:"pandas_type"`
			Is    struct {
				Ordered bool `json:"ordered"`
			} `json:"metadata"`
		} `json:"columns"`
	}
	if readOrigin(m.notes[pandasKey], &frame) {
		for _, c := range frame.Columns {
			o.pandas[c.Name] = c.Dtype
			if c.Type == "categorical" {
				o.category[c.Name] = true
			}
			if c.Is.Ordered {
				o.ordered[c.Name] = true
			}
		}
		for _, name := range frame.Index {
			if s, ok := name.(string); ok && strings.HasPrefix(s, "__index_level_") {
				o.index = append(o.index, s)
			}
		}
	}
	var geo struct {
		Columns map[string]any `json:"columns"`
	}
	if readOrigin(m.notes[geoKey], &geo) {
		for name := range geo.Columns {
			o.geometry[name] = true
		}
	}
	var row struct {
		Fields []struct {
			Name string `json:"name"`
			Type any    `json:"type"` // a text, or an object for what is nested
		} `json:"fields"`
	}
	if readOrigin(m.notes[sparkKey], &row) {
		for _, f := range row.Fields {
			if s, ok := f.Type.(string); ok {
				o.spark[f.Name] = s
			}
		}
	}
	return o
}

func readOrigin(text string, into any) bool {
	return text != "" && len(text) <= maxOrigin && json.Unmarshal([]byte(text), into) == nil
}

// durationWords are the units of Arrow's durations in words.
var durationWords = map[string]string{"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

// periodWords are what a pandas period of a frequency counts since 1970; others have a letter of their own.
var periodWords = map[string]string{"Y": "years", "Q": "quarters", "M": "months", "W": "weeks", "D": "days", "h": "hours", "min": "minutes", "s": "seconds"}

// bare says what the numbers of an integer column count where the writer has a type for it that Parquet lacks; "" where it has none.
func (o *origin) bare(name string) string {
	if unit, ok := o.arrow.durations[name]; ok {
		return durationWords[unit]
	}
	if frequency, ok := strings.CutPrefix(o.pandas[name], "period["); ok {
		frequency = strings.TrimSuffix(frequency, "]")
		word, known := periodWords[strings.SplitN(frequency, "-", 2)[0]]
		if !known {
			word = "units of " + frequency
		}
		return "pandas " + o.pandas[name] + ": " + word + " since 1970; for times: " + onePandas(name, ".dt.to_timestamp()")
	}
	switch t := o.spark[name]; {
	case !strings.HasPrefix(t, "interval "):
		return ""
	case strings.Contains(t, "year") || strings.Contains(t, "month"):
		return "Spark " + t + ": months"
	default:
		return "Spark " + t + ": microseconds"
	}
}

// maxQuoted is the longest name that a line of code quotes.
const maxQuoted = 64

// quoted is a name in a line of Python.
func quoted(name string) string {
	if len(name) > maxQuoted {
		name = "…"
	}
	b, err := json.Marshal(name)
	if err != nil {
		return `"…"`
	}
	return string(b)
}

// onePandas is the line that gives a column of a frame another form.
func onePandas(name, method string) string {
	return "df[" + quoted(name) + "] = df[" + quoted(name) + "]" + method
}

// quotedSQL is a name in a line of SQL.
func quotedSQL(name string) string {
	if len(name) > maxQuoted {
		name = "…"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
