package holdout

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// What the card says of a text column's values, so that a card of thousands of columns stays readable.
const (
	// MaxCardValues is the largest number of distinct texts that are listed.
	MaxCardValues = 20
	// maxCardText is the most bytes that the listed texts of one column have together.
	maxCardText = 1024
)

const rowUnit = "row"

// columnCards describes columns by the training part; without one it names them and their kinds alone. texts are the public shapes of
// dictionaries.
func columnCards(schema dataset.Schema, training *dataset.Table, texts map[string]dataset.TextShape) ([]ColumnCard, error) {
	cards := make([]ColumnCard, len(schema.Fields))
	for i, f := range schema.Fields {
		cards[i] = ColumnCard{Name: f.Name, Kind: f.Kind, Source: f.Source, Note: f.Note}
		if shape, ok := texts[f.Name]; ok {
			cards[i].Dictionary = &shape
		}
	}
	if training == nil {
		return cards, nil
	}
	return cards, eachColumn(len(cards), func(i int) { cards[i].describe(training, i) })
}

// describe says what the training part shows of its column i.
func (card *ColumnCard) describe(training *dataset.Table, i int) {
	c := training.Column(i)
	nulls, low, high := int64(0), math.Inf(1), math.Inf(-1)
	for from, to := range training.Pieces(i) {
		switch c.Kind {
		case dataset.Bool:
			for _, b := range c.Bools[from:to] {
				if b == dataset.NullBool {
					nulls++
				}
			}
		case dataset.Text:
			for _, code := range c.Codes[from:to] {
				if code == 0 {
					nulls++
				}
			}
		default:
			for _, v := range c.Numbers[from:to] {
				if v != v {
					nulls++
				}
				if v < low {
					low = v
				}
				if v > high {
					high = v
				}
			}
		}
	}
	card.Nulls = &nulls
	switch c.Kind {
	case dataset.Number, dataset.Time:
		switch {
		case low > high: // nulls only
		case c.Kind == dataset.Time:
			earliest, latest := timeOf(low), timeOf(high)
			card.Earliest, card.Latest = &earliest, &latest
		default:
			card.Min, card.Max = &low, &high
		}
	case dataset.Text:
		card.Distinct = int64(c.Dictionary.Len())
		// Each text has a separator behind it, and there is one before the first.
		if n := c.Dictionary.Len(); n <= MaxCardValues && len(c.Dictionary.Flat())-n-1 <= maxCardText {
			card.Values = c.Dictionary.Sorted()
		}
	}
}

// orderCards says in which order the categories of columns are. The upload's own list names texts that held-out rows alone may have: only those of the training part are
// shown, and in the file of the training part, too.
func orderCards(cards []ColumnCard, training *dataset.Table, orders map[string][]string) {
	for i := range cards {
		order := orders[cards[i].Name]
		if cards[i].Kind != dataset.Text || order == nil {
			continue
		}
		seen := map[string]bool{}
		for _, text := range training.Column(i).Dictionary.Sorted() {
			seen[text] = true
		}
		for _, text := range order {
			if seen[text] {
				cards[i].Order = append(cards[i].Order, text)
			}
		}
	}
}

// orders are those that the card shows, by column.
func (c Card) orders() map[string][]string {
	orders := map[string][]string{}
	for _, column := range c.Columns {
		if column.Order != nil {
			orders[column.Name] = column.Order
		}
	}
	return orders
}

// timeOf is a time of a Time column. JSON knows the years 0 to 9999 only; others are shown as the nearest of them.
func timeOf(microseconds float64) time.Time {
	const year0, year9999 = -62167219200e6, 253402300799e6
	return time.UnixMicro(int64(min(max(microseconds, year0), year9999))).UTC()
}

// nullRule is what a card says of nulls in general; explain says it of one question.
const nullRule = `a null counts as the low end of the range unless the query's "null" says otherwise; a comparison with a null does not hold`

// population is what the holdout's units were drawn from, in words: what every interval of the holdout is about.
func (set Settings) population(grouped bool) string {
	units := "rows"
	if grouped {
		units = "units"
	}
	words := "the population that the " + units + " were drawn from"
	switch {
	case strings.HasPrefix(set.Split, splitByTimeOf):
		words = "the population that " + units + " as late as the holdout's are drawn from"
	case set.Split == splitGiven:
		words = "the population that the " + units + " of the part holdout were drawn from"
	}
	if set.Features == featuresPublic {
		words = "the population of labels that " + units + " with the features of the holdout's have"
	}
	if set.Stratify != "" {
		words += ", with strata of the sizes on the card"
	}
	return words
}

// target is what the card says of every question's target.
func (set Settings) target(unit unitRule, largest int64) string {
	target := set.population(unit.Column != "") + ", independently of each other"
	if unit.Column != "" {
		target += `; each unit has one vote, or with "weight":"row" each row, `
		switch {
		case set.LargestUnit > 0:
			target += fmt.Sprintf("no unit having more than %d, as declared", largest)
		case largest == 0: // not to be said yet
			target += "a larger unit than the training part's largest having as many as that one"
		default:
			target += fmt.Sprintf("a unit of more than %d having %d", largest, largest)
		}
	}
	return target
}

// sayMore adds what follows from the settings and the guarantee, and is not stored with them.
func (card *Card) sayMore() {
	if card.Settings.spec(card.Units).LeavesBudget() {
		card.Chosen = card.Guarantee.SayBudget()
	}
	if widest, ok := card.Guarantee.WidestShare(); ok {
		card.Widest = &widest
	}
}
