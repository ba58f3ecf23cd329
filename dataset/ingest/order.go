package ingest

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

const (
	// maxOrdered is how many categories an order can have: more are no scale that a person made.
	maxOrdered = 1000
	// maxOrderBytes bounds the categories of all orders of a table together: they are in a reply and on the card.
	maxOrderBytes = 1 << 18
)

// order is that of a column's categories, as the dictionaries of its chunks have them: a writer of categories puts all of them there, in order.
type order struct {
	texts []string
	none  bool // two chunks differ, or a chunk has too many
}

// add looks at the dictionary of a chunk that was read. A chunk without one says nothing.
func (o *order) add(d *dictionary) {
	switch {
	case d.entries < 0 || o.none:
		return
	case d.entries > maxOrdered || len(d.data) > maxOrderBytes:
		o.none = true
		return
	}
	var texts []string
	for _, start := range startsOf(d.data, d.entries) {
		length := binary.LittleEndian.Uint32(d.data[start:])
		texts = append(texts, string(d.data[start+4:][:length]))
	}
	if o.texts == nil {
		o.texts = texts
	}
	o.none = !slices.Equal(o.texts, texts)
}

// keep keeps the order of the column at hand, if it is one of all its texts.
func (d *decoder) keep(column string, o order) {
	place, bytes := map[string]bool{}, 0
	for _, text := range o.texts {
		place[text] = true
		if bytes += len(text); !utf8.ValidString(text) {
			return
		}
	}
	if o.none || len(o.texts) == 0 || len(place) < len(o.texts) || d.orderBytes+bytes > maxOrderBytes {
		return
	}
	for _, text := range d.batch.dictionary {
		if !place[text] { // of a page that does not use the dictionary
			return
		}
	}
	if d.result.Orders == nil {
		d.result.Orders = map[string][]string{}
	}
	d.result.Orders[column] = o.texts
	d.orderBytes += bytes
}
