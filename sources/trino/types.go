package trino

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources/sql"
)

// ownerColumn is a column of an owner's table that a part has.
type ownerColumn struct {
	Name     string       `json:"name"`
	Type     string       `json:"type"` // as Trino writes it
	Kind     dataset.Kind `json:"kind"`
	Infinite bool         `json:"infinite,omitempty"` // some values are: the part has a column that says which
}

const (
	// maxExact is the largest integer up to which a float64 holds every integer.
	maxExact = 1 << 53
	// maxDay keeps times within 2^62 microseconds from 1970, as uploads are.
	maxDay = (1 << 62) / 86400_000_000
	// exactDigits is how many decimal digits are always below maxExact.
	exactDigits = 15
)

var (
	decimalType = regexp.MustCompile(`^decimal\((\d+),\s*(\d+)\)$`)
	stampType   = regexp.MustCompile(`^timestamp\((\d+)\)( with time zone)?$`)
)

// kindOf is the kind of a column of a type, or the reason why no question can name it.
func kindOf(typ string) (dataset.Kind, string) {
	base, _, _ := strings.Cut(typ, "(")
	switch {
	case typ == "tinyint" || typ == "smallint" || typ == "integer" || typ == "bigint" || typ == "real" || typ == "double" || decimalType.MatchString(typ):
		return dataset.Number, ""
	case typ == "boolean":
		return dataset.Bool, ""
	case typ == "date" || stampType.MatchString(typ):
		return dataset.Time, ""
	case typ == "varchar" || base == "varchar" || base == "char" || typ == "uuid":
		return dataset.Text, ""
	case base == "array" || base == "map" || base == "row":
		return 0, "nested: arrays, maps and rows are not read"
	case typ == "varbinary":
		return 0, "binary; if it holds text, make a view that has from_utf8 of it"
	case strings.HasPrefix(base, "time"):
		return 0, "times of a day are not read; make a view that has them as seconds"
	}
	return 0, "its type holds no numbers, booleans, texts or times"
}

// forbidden reports control characters other than the white space that spreadsheets leave in names, as uploads do.
func forbidden(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }

// value is the SQL of a value as an upload has it: a finite double, a boolean or a text; SQL's null where it is null.
func (c *ownerColumn) value() string {
	q := sql.Trino.Name(c.Name)
	switch {
	case c.Kind == dataset.Text && c.Type == "uuid", c.Kind == dataset.Text && c.Type == "bigint":
		return "CAST(" + q + " AS varchar)"
	case c.Kind == dataset.Text && strings.HasPrefix(c.Type, "char"): // what pads it to its length is no part of the text
		return "rtrim(CAST(" + q + " AS varchar))"
	case c.Kind == dataset.Text:
		return "CAST(" + q + " AS varchar)"
	case c.Kind == dataset.Bool:
		return q
	case c.Type == "double" || c.Type == "real":
		x := "CAST(" + q + " AS double)"
		return "if(is_finite(" + x + "), " + x + " + 0e0)" // -0 + 0 is 0
	case c.Kind == dataset.Number:
		return "CAST(" + q + " AS double)"
	case c.Type == "date":
		return "CAST(" + days(q) + " * 86400000000 AS double)"
	}
	m := stampType.FindStringSubmatch(c.Type)
	p, _ := strconv.Atoi(m[1])
	if m[2] != "" {
		q = fmt.Sprintf("CAST(at_timezone(%s, 'UTC') AS timestamp(%d))", q, p)
	}
	// No function says the microseconds: those below a millisecond are digits of the text, which cuts and does not round.
	micros := fmt.Sprintf("%s * 86400000000 + (hour(%[2]s) * 3600 + minute(%[2]s) * 60 + second(%[2]s)) * 1000000 + millisecond(%[2]s) * 1000", days(q), q)
	if p > 3 {
		digits := min(p, 6) - 3
		micros += fmt.Sprintf(" + CAST(substr(CAST(%s AS varchar), -%d, %d) AS bigint) * %d", q, p-3, digits, [...]int{1, 100, 10, 1}[digits])
	}
	return "CAST(" + micros + " AS double)"
}

// days is the SQL of the days since 1970 of a date or a timestamp.
func days(q string) string { return "date_diff('day', DATE '1970-01-01', CAST(" + q + " AS date))" }

// stored is the SQL of a value as parts keep it: NaN for a null number or time, and 2 for a null truth.
func (c *ownerColumn) stored() string {
	switch c.Kind {
	case dataset.Bool:
		return "CASE WHEN " + c.value() + " IS NULL THEN 2 WHEN " + c.value() + " THEN 1 ELSE 0 END"
	case dataset.Text:
		return c.value()
	}
	return "coalesce(" + c.value() + ", nan())"
}

// facts are aggregates by which a look decides whether a column can be read, and as what. Their values are texts or integers.
func (c *ownerColumn) facts() []string {
	q := sql.Trino.Name(c.Name)
	switch {
	case c.Type == "bigint", c.Type == "date", decimalType.MatchString(c.Type):
		x := q
		if c.Type == "date" {
			x = days(q)
		}
		return []string{"CAST(min(" + x + ") AS varchar)", "CAST(max(" + x + ") AS varchar)"}
	case stampType.MatchString(c.Type):
		x := days(q)
		return []string{"CAST(min(" + x + ") AS varchar)", "CAST(max(" + x + ") AS varchar)"}
	case c.Type == "double" || c.Type == "real":
		return []string{"count_if(is_infinite(CAST(" + q + " AS double)))"}
	case c.Kind == dataset.Text && c.Type != "uuid":
		v := c.value()
		return []string{"approx_distinct(" + v + ")", "coalesce(max(length(to_utf8(" + v + "))), 0)", "count_if(from_utf8(to_utf8(" + v + ")) <> " + v + ")"}
	case c.Type == "uuid":
		return []string{"approx_distinct(" + q + ")"}
	}
	return nil
}

// decide reads the facts: it sets what the column is read as, or returns the reason not to read it.
func (c *ownerColumn) decide(facts []any) (reason string, err error) {
	switch {
	case c.Type == "double" || c.Type == "real":
		c.Infinite = fmt.Sprint(facts[0]) != "0"
		return "", nil
	case c.Kind == dataset.Text:
		return c.decideText(facts)
	case len(facts) < 2 || facts[0] == nil:
		return "", nil
	}
	scale := 0
	if m := decimalType.FindStringSubmatch(c.Type); m != nil {
		scale, _ = strconv.Atoi(m[2])
	}
	for _, fact := range facts {
		text := fmt.Sprint(fact)
		x, ok := new(big.Int).SetString(strings.Replace(text, ".", "", 1), 10)
		if whole, fraction, _ := strings.Cut(text, "."); !ok || len(fraction) != scale || whole == "" {
			return "", fmt.Errorf("%w: %q is no value of the type %s", errProtocol, text, c.Type)
		}
		x.Abs(x)
		switch {
		case c.Kind == dataset.Time && x.Cmp(big.NewInt(maxDay)) > 0:
			return "it has times more than 146,000 years from 1970; make a view that has nulls for them", nil
		case c.Type == "bigint" && x.Cmp(big.NewInt(maxExact)) > 0:
			c.Kind = dataset.Text // digits
		case c.Kind == dataset.Number && x.Cmp(big.NewInt(maxExact)) > 0:
			return c.Type + " is too precise: it has values of more than 2^53 units of its last digit, which a 64-bit float cannot hold; make a view that has it rounded, or as text", nil
		}
	}
	return "", nil
}

const (
	// maxTexts and maxTextLength are those of uploads: a column beyond them is free text or a key, of which no statistical question can be asked.
	maxTexts      = 1 << 22
	maxTextLength = 64 << 10
	// maxTextBytes bounds the different texts of a table, each with 16 bytes more than it is long, as for uploads.
	maxTextBytes = 256 << 20
)

const (
	tooManyTexts  = "it has more than 4,194,304 different texts: no category, but free text or a key"
	tooLongTexts  = "it has a text of more than 65,536 bytes: no category, but documents"
	tooLargeTexts = "the different texts of the table would take more than 256 MiB with those of this column"
	notUnicode    = "it holds bytes that are no UTF-8"
)

func (c *ownerColumn) decideText(facts []any) (string, error) {
	var n [3]int64
	for i, fact := range facts {
		var err error
		if n[i], err = strconv.ParseInt(fmt.Sprint(fact), 10, 64); err != nil {
			return "", fmt.Errorf("%w: %w", errProtocol, err)
		}
	}
	switch {
	case n[0] > maxTexts*11/10: // it is an estimate, within 2.3% as a rule; the exact number is asked for next
		return tooManyTexts, nil
	case n[1] > maxTextLength:
		return tooLongTexts, nil
	case n[2] > 0:
		return notUnicode, nil
	}
	return "", nil
}
