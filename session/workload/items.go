package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
)

// item is one kind of question: so many of a type, about values of which this is supposed.
type item struct {
	count     int64
	kind      string
	of        int     // categories, groups or bins
	low, high float64 // the range of the values
	sd, at    float64 // their standard deviation, and their mean or share
	where     float64 // the share of rows that are asked about; 1: all
	assumed   bool    // the standard deviation was not said
}

// form is what a type of question needs to be told, and the query that is planned for it. Queries are about the columns of made-up rows (see [item.rows]).
type form struct {
	at       float64 // what is supposed of it where nothing is said
	of       int     // how many categories; 0: it has none
	ranged   bool    // it is about numbers in a range, which must be said
	fitted   bool    // it is about a model, which may have been fitted to the training part
	low      float64 // not 0: the answer can be negative, and its range is twice that of the values
	assumes  string  // what "at" is
	query    func(i item) string
	noWheres bool
}

var forms = map[string]form{
	"mean": {at: math.NaN(), ranged: true, assumes: "mean", query: func(i item) string {
		return fmt.Sprintf(`{"type":"mean","of":"y","range":%s%s}`, i.span(), i.condition())
	}},
	"loss": {at: math.NaN(), ranged: true, fitted: true, assumes: "mean", query: func(i item) string {
		return fmt.Sprintf(`{"type":"mean","of":"y","range":%s%s}`, i.span(), i.condition())
	}},
	"fraction": {at: 0.5, assumes: "share", query: func(i item) string { return fmt.Sprintf(`{"type":"fraction","of":"hit"%s}`, i.condition()) }},
	"accuracy": {at: 0.8, fitted: true, assumes: "accuracy", query: func(i item) string {
		return fmt.Sprintf(`{"type":"accuracy","label":"label","prediction":"guess"%s}`, i.condition())
	}},
	"balanced_accuracy": {at: 0.8, fitted: true, assumes: "accuracy", query: func(i item) string {
		return `{"type":"balanced_accuracy","label":"label","prediction":"guess"}`
	}, noWheres: true},
	"log_loss": {at: 0.8, fitted: true, assumes: "area under the curve", query: func(i item) string {
		return `{"type":"loss","loss":"log","label":"label","prediction":"score","clip":0.01}`
	}, noWheres: true},
	"auc": {at: 0.8, fitted: true, assumes: "area under the curve", query: func(i item) string {
		return `{"type":"auc","label":"label","prediction":"score","edges":` + edges(1, 10, 0.1) + `}`
	}, noWheres: true},
	"compare": {at: 0.05, fitted: true, low: -1, assumes: "share of rows on which both differ", query: func(i item) string {
		return `{"type":"compare","a":{"type":"accuracy","label":"label","prediction":"guess"},"b":{"type":"accuracy","label":"label","prediction":"other"}}`
	}, noWheres: true},
	"precision": {at: 0.8, fitted: true, assumes: "accuracy", query: func(i item) string { return `{"type":"precision","label":"label","prediction":"guess"}` }, noWheres: true},
	"recall":    {at: 0.8, fitted: true, assumes: "accuracy", query: func(i item) string { return `{"type":"recall","label":"label","prediction":"guess"}` }, noWheres: true},
	"f1":        {at: 0.8, fitted: true, assumes: "accuracy", query: func(i item) string { return `{"type":"f1","label":"label","prediction":"guess"}` }, noWheres: true},
	"confusion": {at: 0.8, fitted: true, assumes: "accuracy", query: func(i item) string { return `{"type":"confusion","label":"label","prediction":"guess"}` }, noWheres: true},
	"calibration": {at: 0.8, of: 10, fitted: true, assumes: "area under the curve", query: func(i item) string {
		return `{"type":"calibration","label":"label","prediction":"score","edges":` + edges(0, i.of+1, 1/float64(i.of)) + `}`
	}, noWheres: true},
	"groups": {at: 0.5, of: 10, assumes: "mean", query: func(i item) string {
		return fmt.Sprintf(`{"type":"groups","of":"y","range":%s,"by":"g","values":%s}`, i.span(), i.names())
	}, noWheres: true},
	"frequencies": {at: 0.5, of: 10, assumes: "", query: func(i item) string { return fmt.Sprintf(`{"type":"frequencies","of":"g","values":%s}`, i.names()) }, noWheres: true},
	"histogram": {at: 0.5, of: 10, assumes: "", query: func(i item) string {
		return `{"type":"histogram","of":"score","edges":` + edges(0, i.of+1, 1/float64(i.of)) + `}`
	}, noWheres: true},
	"difference": {at: math.NaN(), ranged: true, low: -1, assumes: "mean", query: func(i item) string {
		return fmt.Sprintf(`{"type":"difference","of":"y","range":%s,"between":["label","!label"]}`, i.span())
	}, noWheres: true},
	"median": {at: math.NaN(), ranged: true, assumes: "mean", query: func(i item) string {
		return fmt.Sprintf(`{"type":"median","of":"y","range":%s,"resolution":%v}`, i.span(), (i.high-i.low)/1000)
	}, noWheres: true},
	"correlation": {at: 0.3, low: -1, assumes: "correlation", query: func(i item) string {
		return `{"type":"correlation","x":"z","y":"t","range_x":[-4,4],"range_y":[-4,4],"center_x":0,"scale_x":1,"center_y":0,"scale_y":1}`
	}, noWheres: true},
}

// Types are the types of questions that a workload can have, sorted.
func Types() (names []string) {
	for name := range forms {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (i item) span() string { return fmt.Sprintf("[%v,%v]", i.low, i.high) }

func (i item) condition() string {
	if i.where < 1 {
		return `,"where":"w"`
	}
	return ""
}

// names are those of the categories, as a list in JSON.
func (i item) names() string {
	var all []string
	for k := range i.of {
		all = append(all, strconv.Quote("g"+strconv.Itoa(k)))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// edges are the multiples of a step from the from-th on, below the count-th.
func edges(from, count int, step float64) string {
	var all []string
	for k := range count - from {
		all = append(all, strconv.FormatFloat(math.Round(float64(from+k)*step*1e9)/1e9, 'g', -1, 64))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// words say a kind of question as a workload does.
func (i item) words() string {
	f, text := forms[i.kind], i.kind
	if f.of > 0 {
		text += fmt.Sprintf(" of %d", i.of)
	}
	if f.ranged || i.kind == "groups" {
		text += fmt.Sprintf(" in %v..%v", i.low, i.high)
	}
	if i.where < 1 {
		text += fmt.Sprintf(" where %v", i.where)
	}
	return text
}

// assumes says what is supposed of the values.
func (i item) assumes() string {
	f := forms[i.kind]
	var all []string
	if f.assumes != "" {
		all = append(all, fmt.Sprintf("%s %.3g", f.assumes, i.at))
	}
	if i.number() {
		words := fmt.Sprintf("standard deviation %.3g", i.sd)
		if i.assumed && i.kind != "median" {
			words += ", the largest that there can be; name yours with sd"
		}
		all = append(all, words)
	}
	if i.where < 1 {
		all = append(all, fmt.Sprintf("%v of the rows", i.where))
	}
	if f.of > 0 && i.kind != "calibration" && i.kind != "histogram" {
		all = append(all, "categories of one size")
	}
	return strings.Join(all, ", ")
}

// number reports whether the values are numbers in a range, of which a standard deviation is supposed.
func (i item) number() bool { return forms[i.kind].ranged || i.kind == "groups" }

const decimal = `(-?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)`

var grammar = regexp.MustCompile(`^(?:([0-9]+) +)?([a-z0-9_]+)(?: +of +([0-9]+))?(?: +in +` + decimal + `\.\.` + decimal + `)?(?: +sd +` + decimal + `)?(?: +at +` + decimal + `)?(?: +where +` + decimal + `)?$`)

// Limits of a workload: more is no plan of a person.
const (
	mostItems      = 50
	mostCategories = 500
	mostCount      = 1_000_000
)

// read reads a workload, such as "60 accuracy, 10 groups of 12 in -60..180 sd 39, 5 mean in 0..1 sd 0.2 at 0.3 where 0.1".
func read(text string) (all []item, err error) {
	wrong := func(format string, args ...any) error { return &RequestError{"workload", fmt.Sprintf(format, args...)} }
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		m := grammar.FindStringSubmatch(strings.ToLower(part))
		if m == nil {
			return nil, wrong("%q is not read; write COUNT TYPE [of CATEGORIES] [in LOW..HIGH] [sd DEVIATION] [at MEAN] [where SHARE], such as 60 accuracy, 10 groups of 12 in -60..180 sd 39", part)
		}
		f, ok := forms[m[2]]
		if !ok {
			hint := ""
			if near := nearest.Name(m[2], Types()); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return nil, wrong("%q is no type that can be planned: %s%s", m[2], strings.Join(Types(), ", "), hint)
		}
		i := item{count: 1, kind: m[2], of: f.of, low: 0, high: 1, at: f.at, where: 1}
		number := func(text string, into *float64) {
			if text != "" && err == nil {
				*into, err = strconv.ParseFloat(text, 64)
			}
		}
		if m[1] != "" {
			i.count, err = strconv.ParseInt(m[1], 10, 64)
		}
		if m[3] != "" && err == nil {
			i.of, err = strconv.Atoi(m[3])
		}
		number(m[4], &i.low)
		number(m[5], &i.high)
		i.sd = math.NaN()
		number(m[6], &i.sd)
		number(m[7], &i.at)
		number(m[8], &i.where)
		if err != nil || i.count < 1 || i.count > mostCount || i.of > mostCategories || f.of > 0 && i.of < 2 || m[3] != "" && f.of == 0 || !(i.low < i.high) || !(i.where > 0 && i.where <= 1) {
			return nil, wrong("%q has a number that is not possible: counts from 1 to %d, from 2 to %d categories where a type has them, a range whose low end is below its high end, shares above 0 and at most 1", part, mostCount, mostCategories)
		}
		switch {
		case f.ranged && m[4] == "":
			return nil, wrong("%q needs the range of its values: %s in LOW..HIGH", part, i.kind)
		case !i.number() && (m[4] != "" || m[6] != ""):
			return nil, wrong("%q has a range of its own; leave in and sd out", part)
		case f.noWheres && i.where < 1:
			return nil, wrong("%q is planned over all rows; leave where out", part)
		}
		if i.number() {
			if m[7] == "" {
				i.at = (i.low + i.high) / 2
			}
			most := math.Sqrt((i.at - i.low) * (i.high - i.at))
			if i.assumed = math.IsNaN(i.sd); i.assumed {
				i.sd = most
				if i.kind == "median" { // of two values there is no median
					i.sd = most / 2
				}
			}
			if !(i.at > i.low && i.at < i.high) || !(i.sd > 0 && i.sd <= most*(1+1e-9)) {
				return nil, wrong("%q: values between %v and %v with the mean %v have a standard deviation above 0 and at most %.4g", part, i.low, i.high, i.at, most)
			}
		} else if !(i.at > 0 && i.at < 1) {
			return nil, wrong("%q: at must be between 0 and 1", part)
		}
		all = append(all, i)
	}
	if len(all) > mostItems {
		return nil, wrong("%d kinds of questions; at most %d are planned at once", len(all), mostItems)
	}
	return all, nil
}

// madeRows is how many made-up rows there are at most; each stands for as many rows of the training part.
const madeRows = 4000

// made is how many units of a training part the made-up rows stand for: as many, or a few less.
func made(training int64) int64 {
	return training / max(1, (training+madeRows-1)/madeRows) * max(1, (training+madeRows-1)/madeRows)
}

// compile makes the question, and the training part that it is about.
func (i item) compile(ctx context.Context, training int64) (c compiled, err error) {
	times := max(1, (training+madeRows-1)/madeRows)
	rows := int(training / times)
	if training == 0 { // none: the rows have names, and nobody reads them
		rows = 1
	}
	table, err := dataset.FromColumns(i.rows(rows)...)
	if err != nil {
		return c, fmt.Errorf("workload: %w", err)
	}
	if c.query, err = queries.Parse([]byte(forms[i.kind].query(i))); err == nil {
		c.plan, err = c.query.Compile(ctx, table.Schema())
	}
	var wrong *queries.Error // what the numbers of the item make of its question, such as a range beyond what a query may have
	if errors.As(err, &wrong) {
		return c, &RequestError{"workload", fmt.Sprintf("%s: %s", i.kind, wrong.Violations[0].Detail)}
	}
	if err != nil {
		return c, fmt.Errorf("workload: %s: %w", i.kind, err)
	}
	c.plan.Fitted = c.plan.Fitted || forms[i.kind].fitted
	if training == 0 {
		return c, nil
	}
	read, err := engine.NewTable(table, nil, 1)
	if err != nil {
		return c, fmt.Errorf("workload: %w", err)
	}
	c.training = source{read, times}
	return c, nil
}

// widestBell is the largest standard deviation, in ranges, for which made-up numbers are a bell; with a larger one there are two numbers, of which those farthest apart are the ends of the range.
const widestBell = 0.28

// width is that of the answer's range.
func (i item) width() float64 {
	if forms[i.kind].low != 0 { // from minus as much
		return 2 * (i.high - i.low)
	}
	return i.high - i.low
}

// rows are made-up columns of so many rows: y, numbers with the mean, the standard deviation and the range; hit, a share; label and score, with an area under the curve; guess, right
// in a share of the rows, and other, that differs from it; g, categories; w, the rows that are asked about; z and t, correlated. They are the same every time.
func (i item) rows(n int) []dataset.Column {
	r := rand.New(rand.NewPCG(1, 2))
	number := func(name string) *dataset.Column {
		return &dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}}
	}
	truth := func(name string) *dataset.Column {
		return &dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool, Source: "BOOLEAN"}}
	}
	y, score, z, t := number("y"), number("score"), number("z"), number("t")
	hit, label, guess, other, w := truth("hit"), truth("label"), truth("guess"), truth("other"), truth("w")
	put := func(c *dataset.Column, yes bool) {
		b := uint8(0)
		if yes {
			b = 1
		}
		c.Bools = append(c.Bools, b)
	}
	share, apart, right, differ := 0.5, math.Sqrt2*distuv.UnitNormal.Quantile(0.8), 0.8, 0.05
	if !i.number() {
		share, right = i.at, i.at
		switch i.kind {
		case "auc", "log_loss", "calibration":
			apart, right = math.Sqrt2*distuv.UnitNormal.Quantile(max(i.at, 1-i.at)), 0.8
		case "compare":
			differ, right = i.at, 0.8
		}
	}
	var names []string
	for row := range n {
		place := func() float64 { return r.Float64() }
		v := i.at + i.sd*r.NormFloat64()
		if up := (i.at - i.low) / (i.high - i.low); i.number() && i.sd > widestBell*(i.high-i.low) {
			if v = i.at - i.sd*math.Sqrt(up/(1-up)); place() < up {
				v = i.at + i.sd*math.Sqrt((1-up)/up)
			}
		}
		y.Numbers = append(y.Numbers, min(max(v, i.low), i.high))
		yes := row%2 == 0
		put(label, yes)
		put(hit, place() < share)
		bell := r.NormFloat64()
		if yes {
			bell += apart
		}
		score.Numbers = append(score.Numbers, distuv.UnitNormal.CDF(bell-apart/2))
		correct := place() < right
		put(guess, yes == correct)
		put(other, (yes == correct) != (place() < differ))
		put(w, place() < i.where)
		first := r.NormFloat64()
		z.Numbers = append(z.Numbers, first)
		t.Numbers = append(t.Numbers, i.correlation()*first+math.Sqrt(1-i.correlation()*i.correlation())*r.NormFloat64())
		names = append(names, "g"+strconv.Itoa(row%max(i.of, 1)))
	}
	return []dataset.Column{*y, *score, *z, *t, *hit, *label, *guess, *other, *w, dataset.NewText("g", names, func(int) bool { return false })}
}

// correlation is that of z and t.
func (i item) correlation() float64 {
	if i.kind == "correlation" {
		return i.at
	}
	return 0.3
}
