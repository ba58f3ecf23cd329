package api

import (
	"math"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
)

// Limits bound what clients can make the server do over HTTP; what a request may ask for, and how many at a time, is up to the service
// (holdout.Limits). A zero field takes its value from DefaultLimits.
type Limits struct {
	ReadHeader time.Duration // for the head of a request
	ReadBody   time.Duration // for the body of a request that is not an upload
	Handle     time.Duration // for the work on a request that is not an upload
	Write      time.Duration // for each piece of a reply to be taken by the client
	Idle       time.Duration // of a kept-alive connection
	UploadIdle time.Duration // an upload may last while bytes come at least this often …
	UploadTime time.Duration // … and no longer than this
	Drain      time.Duration // for what was accepted to be finished at shutdown

	HeaderBytes int   // of a request's head
	BatchBytes  int64 // of the body of a batch
	KeyBytes    int64 // of the body that asks for a new key

	Uploads     int // at the same time
	Connections int // open at the same time; for one beyond, one that has nothing to do is closed, or it waits in the system's queue

	// ConnectionsEach is how many connections may be open of one IPv4 address, or of one /64 network of IPv6, at the same time. The default 0 is half of
	// Connections: no address keeps the others out. Behind a proxy all connections are of its address.
	ConnectionsEach int

	Rate  float64 // requests a second of one key, on average; negative: no limit
	Burst int     // requests of one key at once
}

// DefaultLimits are those of a server started without flags.
var DefaultLimits = Limits{
	ReadHeader: 10 * time.Second, // a head is one packet; slower is an attack or a broken line
	ReadBody:   30 * time.Second, // the largest batch at 20 Mbit/s
	Handle:     2 * time.Minute,  // a batch of 10,000 over a million rows takes half a minute
	Write:      time.Minute,
	Idle:       2 * time.Minute, // longer than the 60 s after which common proxies drop theirs
	UploadIdle: time.Minute,
	UploadTime: 4 * time.Hour, // 16 GiB at 10 Mbit/s
	Drain:      2 * time.Minute,

	HeaderBytes: 64 << 10,
	BatchBytes:  64 << 20, // 10,000 queries of 6 kB
	KeyBytes:    4 << 10,

	Uploads:     2,    // one is received while another is decoded
	Connections: 4096, // 20 kB each; see fitConnections for file descriptors

	Rate:  5000, // stops a client that runs wild, not one that is busy: two cores answer some 2,000 questions a second
	Burst: 10_000,
}

// withDefaults fills the fields that are zero.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	or(&l.ReadHeader, d.ReadHeader)
	or(&l.ReadBody, d.ReadBody)
	or(&l.Handle, d.Handle)
	or(&l.Write, d.Write)
	or(&l.Idle, d.Idle)
	or(&l.UploadIdle, d.UploadIdle)
	or(&l.UploadTime, d.UploadTime)
	or(&l.Drain, d.Drain)
	or(&l.HeaderBytes, d.HeaderBytes)
	or(&l.BatchBytes, d.BatchBytes)
	or(&l.KeyBytes, d.KeyBytes)
	or(&l.Uploads, d.Uploads)
	or(&l.Connections, d.Connections)
	if l.Rate == 0 {
		l.Rate = d.Rate
	}
	or(&l.Burst, d.Burst)
	return l
}

func or[T ~int | ~int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Check refuses limits with which a server could do nothing, by their names on the command line. Errors are *[holdout.LimitError].
func (l Limits) Check() error {
	for _, x := range []struct {
		name  string
		value time.Duration
	}{
		{"read-header", l.ReadHeader}, {"read-body", l.ReadBody}, {"handle", l.Handle}, {"write", l.Write}, {"idle", l.Idle},
		{"upload-idle", l.UploadIdle}, {"upload-time", l.UploadTime}, {"drain", l.Drain},
	} {
		if x.value < leastTime {
			return &holdout.LimitError{Name: x.name, Value: x.value, Least: leastTime}
		}
	}
	if l.ConnectionsEach < 0 {
		return &holdout.LimitError{Name: "connections-each", Value: l.ConnectionsEach, Least: 1}
	}
	for _, x := range []struct {
		name  string
		value int64
	}{
		{"header-bytes", int64(l.HeaderBytes)}, {"batch-bytes", l.BatchBytes}, {"key-bytes", l.KeyBytes}, {"uploads", int64(l.Uploads)},
		{"connections", int64(l.Connections)}, {"burst", int64(l.Burst)},
	} {
		if x.value < 1 {
			return &holdout.LimitError{Name: x.name, Value: x.value, Least: 1}
		}
	}
	if math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Rate == 0 {
		return &holdout.LimitError{Name: "rate", Value: l.Rate, Least: "more than 0, or negative for no limit"}
	}
	return nil
}

// leastTime is the shortest time limit that makes sense: a shorter one ends requests that nothing is wrong with.
const leastTime = time.Millisecond
