package holdout

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestNamesUnits: which columns are named as ones that say who or what a row is about.
func TestNamesUnits(t *testing.T) {
	for name, want := range map[string]bool{
		"id": true, "customer_id": true, "customerId": true, "CustomerID": true, "customerid": true, "userid": true, "ID Kunde": true, "id_cliente": true, "order-id": true, "uuid": true,
		"patient": true, "Patient": true, "user": true, "session": true, "household": true, "device": true, "username": true, "user_name": true, "patient_no": true, "PatientNr": true,
		"customer number": true, "account_key": true, "hashed_email": true, "email_hash": true, "acct": true, "cust_no": true, "contract": true,
		"": false, "paid": false, "void": false, "grid": false, "humid": false, "age": false, "user_age": false, "customer_type": false, "plan": false, "zip code": false, "flight_number": false,
		"name": false, "number_of_customers": false, "n_users": false, "idle": false, "idea": false, "identity": false, "delay": false, "score": false, "key": false, "_": false,
	} {
		if got := namesUnits(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// TestDistinct: values are counted exactly up to a limit, and beyond it to within four standard errors; nulls are none of them.
func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 1000, countedValues, 3 * countedValues, 20 * countedValues} {
		numbers := dataset.Column{Field: dataset.Field{Kind: dataset.Number}}
		for i := range n {
			numbers.Numbers = append(numbers.Numbers, float64(7*i), float64(7*i), math.NaN())
		}
		var d distinct
		pieces := func(yield func(int, int) bool) { _ = yield(0, n) && yield(n, 3*n) }
		if nulls, whole := d.addAll(&numbers, pieces); nulls != n || !whole {
			t.Errorf("%d nulls of %d, whole numbers: %v", nulls, n, whole)
		}
		within := 0.0
		if n > countedValues {
			within = 4 * 1.2 / math.Sqrt(countedValues/2) * float64(n) // 1.20/sqrt(kept), of which at least half are left
		}
		if got := float64(d.count()); math.Abs(got-float64(n)) > within {
			t.Errorf("%v values of %d", got, n)
		}
	}
}

// TestChosenHashes: numbers whose hashes were chosen, so that they seem to be more than any table has, are no negative number of units.
func TestChosenHashes(t *testing.T) {
	var d distinct
	for i := range uint64(4 * countedValues) {
		d.add(i << 46)
	}
	if got := d.count(); got < countedValues {
		t.Errorf("%d values", got)
	}
}

// TestCoarse: what is said of a count is never below it, and at most a quarter above.
func TestCoarse(t *testing.T) {
	for n := int64(0); n < 5000; n++ {
		if got := coarse(n); got < n || float64(got) > 1.25*float64(n) || coarse(got) != got {
			t.Fatalf("%d is said as %d", n, got)
		}
	}
}

// repeated is a table of n rows with a column of this name and so many rows a value; of those in nulls there is none.
func repeated(t *testing.T, name string, n, each int, text bool, null func(i int) bool) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(each)))
	order := r.Perm(n)
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	of := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "INT64"}}
	var texts []string
	for i := range n {
		x.Numbers = append(x.Numbers, r.Float64())
		value := float64(order[i] / each)
		texts = append(texts, fmt.Sprint("c", value))
		if null(i) {
			value = math.NaN()
		}
		of.Numbers = append(of.Numbers, value)
	}
	if text {
		of = dataset.NewText(name, texts, null)
	}
	table, err := dataset.FromColumns(x, of)
	must(t, err)
	return table
}

// TestUnitUndecided: a table in which customers come again is not taken before its owner says what one observation is. Nothing is kept, and what is refused says what each choice would
// give. It would notice a test by the training part alone, nulls that are counted as customers, and a column of few values that is taken for one of customers.
func TestUnitUndecided(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	never := func(int) bool { return false }
	third := func(i int) bool { return i%3 == 0 }
	upload := func(set Settings, table *dataset.Table) (Card, error) {
		set.Name = "visits"
		card, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "")
		return card, err
	}
	before := files(t, dir)
	for _, c := range []struct {
		what  string
		set   Settings
		table *dataset.Table
		asked bool
		each  float64
	}{
		{"numbers", Settings{}, repeated(t, "customer_id", 4000, 2, false, never), true, 2},
		{"texts", Settings{Label: "x"}, repeated(t, "customer_id", 4001, 3, true, never), true, 2.6}, // 1,334 are said as 1,536
		{"a third of nulls", Settings{}, repeated(t, "patient", 6000, 5, true, third), true, 3.1},    // 1,200 as 1,280
		{"a mechanism of its own", Settings{Mechanism: "split"}, repeated(t, "user", 4003, 2, false, never), true, 2},
		{"a split by count", Settings{Holdout: 500}, repeated(t, "user", 4004, 2, false, never), true, 2},
		{"one row each", Settings{}, repeated(t, "customer_id", 4005, 1, false, never), false, 0},
		{"one row each, texts and nulls", Settings{}, repeated(t, "customer_id", 4006, 1, true, third), false, 0},
		{"nulls alone come again", Settings{}, repeated(t, "customer_id", 4007, 1, false, func(i int) bool { return i > 100 }), false, 0},
		{"ten customers", Settings{}, repeated(t, "customer_id", 4008, 400, true, never), false, 0},
		{"another name", Settings{}, repeated(t, "plan", 4009, 2, true, never), false, 0},
		{"the label", Settings{Label: "session"}, repeated(t, "session", 4010, 2, false, never), false, 0},
		{"the unit", Settings{Unit: "customer_id"}, repeated(t, "customer_id", 4011, 2, false, never), false, 0},
		{"rows are meant", Settings{Unit: "row"}, repeated(t, "customer_id", 4012, 2, false, never), false, 0},
	} {
		_, dryErr := dryRun(t, s, c.set, c.table)
		card, err := upload(c.set, c.table)
		if (dryErr != nil) != c.asked {
			t.Errorf("%s, dry: %v", c.what, dryErr)
		}
		if !c.asked {
			if err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			warned := func(card Card) bool {
				return slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == repeatedUnits && w.Unit == "customer_id" })
			}
			if want := c.set.Unit == rowUnit; warned(card) != want || warned(seen(t, s, card)) != want {
				t.Errorf("%s: warned %v, after a look %v", c.what, warned(card), warned(seen(t, s, card)))
			}
			must(t, s.Delete(t.Context(), admin, card.ID))
			continue
		}
		wantKind(t, c.what, err, UnitUndecided)
		var e *Error
		if !errors.As(err, &e) {
			continue
		}
		choices, _ := e.Members["choices"].([]UnitChoice)
		if len(choices) != 2 || choices[1].Unit != rowUnit || choices[1].Units != int64(c.table.Rows()) || choices[0].Rows != c.each ||
			choices[0].HalfWidth == nil || choices[1].HalfWidth == nil || *choices[0].HalfWidth <= *choices[1].HalfWidth {
			t.Errorf("%s: %+v", c.what, choices)
		}
		if !strings.Contains(e.Detail, "unit="+choices[0].Unit) || !strings.Contains(e.Detail, "unit=row") || dryErr.Error() != err.Error() {
			t.Errorf("%s: %s", c.what, e.Detail)
		}
	}
	if after := files(t, dir); !slices.Equal(before, after) {
		t.Errorf("kept: %v, before %v", after, before)
	}
}

// TestUndecidedByPublicFacts: what is said of a table is the same where other rows have other values of the same public shape.
func TestUndecidedByPublicFacts(t *testing.T) {
	s := open(t, t.TempDir())
	said := map[string]bool{}
	for _, n := range []int{2050, 2300, 2555} { // distinct values, all said as 2,560
		table := repeated(t, "customer_id", 6000, 1, false, func(int) bool { return false })
		column, _ := table.Lookup("customer_id")
		for i := range column.Numbers {
			column.Numbers[i] = math.Mod(column.Numbers[i], float64(n))
		}
		_, err := dryRun(t, s, Settings{}, table)
		wantKind(t, fmt.Sprint(n), err, UnitUndecided)
		said[err.Error()] = true
	}
	if len(said) != 1 {
		t.Errorf("%d sentences: %v", len(said), said)
	}
}

// TestUnitUndecidedOfGivenParts: customers come again across the parts of a table that was split by somebody else.
func TestUnitUndecidedOfGivenParts(t *testing.T) {
	s := open(t, t.TempDir())
	never := func(int) bool { return false }
	parts := func() Upload {
		return givenUpload(parquet(t, repeated(t, "customer_id", 1000, 1, false, never)), parquet(t, repeated(t, "customer_id", 900, 1, false, never)))
	}
	_, _, err := s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven}, parts(), "")
	wantKind(t, "given", err, UnitUndecided)
	if _, _, err := s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Unit: rowUnit}, parts(), ""); err != nil {
		t.Errorf("rows are meant: %v", err)
	}
}
