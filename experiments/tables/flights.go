package tables

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/experiments/data"
)

// FlightTable is the demo's flights, an entry for each: what is known before a flight leaves, and how late it came.
type FlightTable struct {
	Hour, Weekday, Month []int // from 0, Monday and January first
	Distance, Delay      []float64
	Origin, Destination  []uint32 // codes
}

// Rows is the number of flights.
func (f FlightTable) Rows() int { return len(f.Delay) }

// Flights decodes the flights, once.
var Flights = sync.OnceValues(func() (FlightTable, error) {
	columns, rows, err := Columns("flights", data.Flights)
	if err != nil {
		return FlightTable{}, err
	}
	f := FlightTable{Distance: columns["distance"].Numbers, Delay: columns["delay"].Numbers,
		Origin: columns["origin"].Codes, Destination: columns["destination"].Codes}
	date := columns["date"].Numbers
	if len(date) != rows || len(f.Delay) != rows || len(f.Distance) != rows || len(f.Origin) != rows || len(f.Destination) != rows {
		return FlightTable{}, fmt.Errorf("experiments: the flights lack a column")
	}
	for _, v := range date {
		t := time.UnixMicro(int64(v)).UTC()
		f.Hour, f.Weekday, f.Month = append(f.Hour, t.Hour()), append(f.Weekday, (int(t.Weekday())+6)%7), append(f.Month, int(t.Month())-1)
	}
	return f, nil
})
