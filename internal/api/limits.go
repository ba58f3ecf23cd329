package api

import (
	"runtime"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
)

// Limits bound what clients can make the server do. A zero field takes its value from DefaultLimits,
// a negative one too where it says nothing else.
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

	Uploads   int           // at the same time
	Questions int           // requests that scan rows at the same time; more wait
	Wait      time.Duration // for one of these places

	Rate  float64 // requests a second of one key, on average; negative: no limit
	Burst int     // requests of one key at once

	Service holdout.Limits // what the service holds itself to; the size of one query and of an upload are checked here first
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

	Uploads:   2, // each has a decoding process with half a gigabyte
	Questions: 16 * runtime.GOMAXPROCS(0),
	Wait:      10 * time.Second,

	Rate:  5000, // stops a client that runs wild, not one that is busy: two cores answer some 2,000 questions a second
	Burst: 10_000,

	Service: holdout.DefaultLimits,
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
	or(&l.Questions, d.Questions)
	or(&l.Wait, d.Wait)
	if l.Rate == 0 { // negative has a meaning of its own
		l.Rate = d.Rate
	}
	or(&l.Burst, d.Burst)
	or(&l.Service.UploadBytes, d.Service.UploadBytes)
	or(&l.Service.BatchQueries, d.Service.BatchQueries)
	or(&l.Service.QueryBytes, d.Service.QueryBytes)
	return l
}

func or[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
