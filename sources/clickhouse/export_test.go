package clickhouse

import (
	"math"
	"net/http"
	"time"
)

// OpenUnchecked opens a source whose users' settings are taken for good, to see what is noticed where they are not; and that sums few units in a statement.
func OpenUnchecked(url string, shards int) (*Source, error) {
	o, err := parse(url)
	if err != nil {
		return nil, err
	}
	c := newConn(o)
	c.pause = time.Millisecond
	return &Source{conn: c, cells: 1, version: [2]int{18, 16}, shards: shards, checked: time.Now().Add(time.Hour)}, nil
}

// Idle closes connections that are not in use, so that the next statement makes one.
func (s *Source) Idle() { s.conn.client.CloseIdleConnections() }

// OneRequestAConnection makes a connection for each statement.
func (s *Source) OneRequestAConnection() {
	s.conn.client.Transport.(*http.Transport).DisableKeepAlives = true
}

// HashText and HashNumber are the hashes of rows that are read.
func HashText(text string) uint64      { return hashText([]byte(text)) }
func HashNumber(number float64) uint64 { return hashNumber(math.Float64bits(number)) }
