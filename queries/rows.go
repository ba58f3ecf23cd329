package queries

import (
	"crypto/sha256"
	bytesof "encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
)

// rowNumbers is a number for each row of the holdout and of the check part, as predictions are given where the features are public. Its canonical
// form is its digest: a question that was answered before can be asked again by that.
type rowNumbers struct {
	values []float64 // NaN is null; nil where only the digest is given
	digest string    // of the values; "" where the member is absent
	count  int64
}

// PublicRows says that the features of the holdout's rows are public and that it has so many rows, so that a question can bring a number
// for each; and then one for each of so many rows of the check part, if there is one. why says why it cannot, else it is empty. Without this option it cannot.
func PublicRows(rows, check int64, why string) Option {
	return func(c *compiler) { c.rows, c.checkRows, c.noRows = rows, check, why }
}

// rowNumbers is the node of numbers that come with the question; nil with a violation.
func (c *compiler) rowNumbers(name string, r rowNumbers) *rowfn.Node {
	at := c.pointer + "/" + name
	switch {
	case c.noRows != "":
		c.add(at, c.noRows)
	case c.rows == 0:
		c.add(at, "numbers for each row are for holdouts that were created with features=public")
	case r.values == nil:
		c.add(at, "no question with the numbers of this digest was answered; send the numbers")
	case r.count != c.rows+c.checkRows && c.checkRows > 0:
		c.add(at, fmt.Sprintf("has %d numbers; it wants one for each of the %d rows that the download of features has, in the order of row_id: %d rows of the holdout, then %d of the check part",
			r.count, c.rows+c.checkRows, c.rows, c.checkRows))
	case r.count != c.rows+c.checkRows:
		c.add(at, fmt.Sprintf("has %d numbers; the holdout has %d rows, and wants one for each in the order of row_id", r.count, c.rows))
	default:
		c.holdoutOnly = true
		return &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: r.values}
	}
	return nil
}

// rowNumbersForm reads rowNumbers.
type rowNumbersForm struct{ into *rowNumbers }

func (f rowNumbersForm) read(v *violations, pointer string, in *value) {
	if in.kind == objectValue {
		f.readDigest(v, pointer, in)
		return
	}
	if in.kind != listValue || len(in.items) == 0 {
		v.add(pointer, "must be a list of numbers, one for each row of the holdout in the order of row_id; null where there is none")
		return
	}
	values := make([]float64, len(in.items))
	h := sha256.New()
	var word [8]byte
	for i, item := range in.items {
		x, ok := item.float()
		switch {
		case item.kind == nullValue:
			x = math.NaN()
		case !ok || math.Abs(x) > MaxMagnitude:
			v.add(fmt.Sprintf("%s/%d", pointer, i), fmt.Sprintf("must be a number within ±%g or null", MaxMagnitude))
			return
		}
		if values[i] = x; x == x {
			bytesof.LittleEndian.PutUint64(word[:], math.Float64bits(x))
		} else {
			bytesof.LittleEndian.PutUint64(word[:], math.Float64bits(math.NaN())) // one null
		}
		h.Write(word[:])
	}
	*f.into = rowNumbers{values: values, digest: hex.EncodeToString(h.Sum(nil)), count: int64(len(values))}
}

func (f rowNumbersForm) readDigest(v *violations, pointer string, in *value) {
	digest, count := in.member("sha256"), in.member("count")
	if len(in.members) != 2 || digest == nil || count == nil || digest.kind != textValue {
		v.add(pointer, `must be a list of numbers, or {"sha256":…,"count":…} of one whose question was answered before`)
		return
	}
	if bytes, err := hex.DecodeString(digest.text); err != nil || len(bytes) != sha256.Size || digest.text != hex.EncodeToString(bytes) {
		v.add(pointer+"/sha256", "must be 64 small hexadecimal digits")
		return
	}
	n, ok := count.float()
	if !ok || n < 1 || n != math.Floor(n) || n > 1<<53 {
		v.add(pointer+"/count", "must be a whole number above 0")
		return
	}
	*f.into = rowNumbers{digest: digest.text, count: int64(n)}
}

func (f rowNumbersForm) canonical() any {
	if f.into.digest == "" {
		return nil
	}
	return map[string]any{"sha256": f.into.digest, "count": f.into.count}
}

func (f rowNumbersForm) schema() map[string]any {
	return map[string]any{"oneOf": []any{
		map[string]any{"type": "array", "items": map[string]any{"type": []string{"number", "null"}}, "minItems": 1},
		map[string]any{"type": "object", "required": []string{"sha256", "count"}, "additionalProperties": false, "properties": map[string]any{
			"sha256": map[string]any{"type": "string", "pattern": "^[0-9a-f]{64}$"},
			"count":  map[string]any{"type": "integer", "minimum": 1},
		}},
	}}
}
