package kernel_test

import (
	"math"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
)

// parts are all parts of a time, each as package time says it.
var parts = map[rowfn.Op]func(time.Time) int{
	rowfn.OpFullYear:     time.Time.Year,
	rowfn.OpMonth:        func(t time.Time) int { return int(t.Month()) - 1 },
	rowfn.OpDate:         time.Time.Day,
	rowfn.OpDayOfMonth:   func(t time.Time) int { return t.Day() - 1 },
	rowfn.OpDayOfYear:    func(t time.Time) int { return t.YearDay() - 1 },
	rowfn.OpDayOfWeek:    func(t time.Time) int { return int(t.Weekday()) },
	rowfn.OpHours:        time.Time.Hour,
	rowfn.OpMinutes:      time.Time.Minute,
	rowfn.OpSeconds:      time.Time.Second,
	rowfn.OpMilliseconds: func(t time.Time) int { return t.Nanosecond() / 1e6 },
}

// partsAre compares every part of the times, in microseconds since 1970.
func partsAre(t *testing.T, micros []float64) {
	t.Helper()
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "d", Kind: dataset.Time}, Numbers: micros})
	if err != nil {
		t.Fatal(err)
	}
	for op, part := range parts {
		got, err := kernel.Evaluate(table, &rowfn.Node{Op: op, Type: rowfn.Number, Args: []*rowfn.Node{{Op: rowfn.OpColumn, Type: rowfn.Time, Text: "d"}}})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range micros {
			at := time.UnixMicro(int64(x)).UTC()
			if got.Numbers[i] != float64(part(at)) {
				t.Fatalf("part %v of %v: got %v, want %v", op, at, got.Numbers[i], part(at))
			}
		}
	}
}

// TestEveryDay: on every day of a whole cycle of the calendar, 400 years, and of years before 1, every part is that of package time. A
// rule that is wrong on two days a year, or in one century of four, shows.
func TestEveryDay(t *testing.T) {
	const day = 86400e6
	for _, first := range []time.Time{time.Date(1799, 12, 30, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)} {
		micros := make([]float64, 0, 146_100)
		for i := range 146_100 {
			x := float64(first.UnixMicro()) + float64(i)*day
			micros = append(micros, x+float64(i%2)*(day-1)) // its first or its last microsecond
		}
		partsAre(t, micros)
	}
}

// TestEveryClock: every minute of a day before and of one after 1970, every second of an hour and every millisecond of a few
// seconds, at their first and their last microsecond.
func TestEveryClock(t *testing.T) {
	for _, start := range []float64{-86400e6, 86400e6 * 365} {
		var micros []float64
		for _, unit := range []struct{ length, count float64 }{{60e6, 1440}, {1e6, 3600}, {1e3, 3000}} {
			for i := range int(unit.count) {
				at := start + float64(i)*unit.length
				micros = append(micros, at, at+unit.length-1, math.Floor(at+unit.length/2))
			}
		}
		partsAre(t, micros)
	}
}
