package holdout

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/internal/machine"
)

// Limits bound what requests may ask for, each by itself and all together. A zero field takes its value from DefaultLimits; a negative
// one is refused.
type Limits struct {
	UploadBytes  int64 // of all parts of one upload together
	BatchQueries int   // of one batch
	QueryBytes   int   // of the JSON of one query
	ModelBytes   int   // of the JSON of one model that is kept
	AnswerBytes  int64 // of all answers of one batch together, at most, by names and the longest numbers
	Holdouts     int   // of one server, not counting deleted ones
	OpenTables   int   // holdouts whose files are mapped at a time; others are opened when they are asked
	Work         int64 // of one request, in steps: about nanoseconds of one processor

	Questions int           // requests that work at the same time; others wait in a line of their key's. One key has at most half
	Memory    int64         // bytes that the process is to stay within. Requests get a part of it: see Service.InTurn
	Wait      time.Duration // of a request for its turn
}

// DefaultLimits are those of a server started without flags.
var DefaultLimits = Limits{
	UploadBytes:  16 << 30, // beyond it a disk fills before a decoder's limits say so
	BatchQueries: 10_000,   // a million-row pass at 2 ns a row and query stays below half a minute
	QueryBytes:   4 << 20,  // a model of 100,000 weights; what the ledger records of a query
	ModelBytes:   64 << 20, // a forest of five million nodes
	AnswerBytes:  64 << 20, // as much as a batch may have; recording it takes a second
	Holdouts:     10_000,   // listing them all stays one reply
	OpenTables:   256,      // opening reads all columns once; what stays mapped is the kernel's to drop
	Work:         2e11,     // a few minutes of a processor: what is begun is finished, even if the asker leaves

	Questions: 16 * runtime.GOMAXPROCS(0),   // enough that a commit is shared by many
	Memory:    machine.Memory() >> 21 << 20, // half: the other half is for the decoders of uploads and for mapped columns
	Wait:      10 * time.Second,
}

const (
	// requestShare is the part of Memory that requests hold: half. The rest is for what stays (dictionaries of open tables, the ledger's
	// pages, numbers and models that can be named by their digest: keptShare), for bodies that are being received (BodyShare), and for what the collector has not yet found.
	requestShare = 2
	// BodyShare is the part of Memory that bodies of requests may take which are being received: an eighth.
	BodyShare = 8
	// kernelShare is the part of all memory, a sixteenth, that is neither the server's nor its decoding process's: for sockets, page tables,
	// pages of files on their way to the disk, and the pages of the program itself.
	kernelShare = 16
	// minMemory is what a server needs for one request of each kind.
	minMemory = 64 << 20
)

// decodeMemory is how much memory the process may take that decodes an upload (one at a time does), where the machine or the control group
// has all bytes and the server may take Limits.Memory of them: together they fit, so that no upload has the kernel end the server.
func decodeMemory(all, server int64) int64 {
	return min(ingest.DefaultMemoryBytes, all-server-all/kernelShare)
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits
	or(&l.UploadBytes, d.UploadBytes)
	or(&l.BatchQueries, d.BatchQueries)
	or(&l.QueryBytes, d.QueryBytes)
	or(&l.ModelBytes, d.ModelBytes)
	or(&l.AnswerBytes, d.AnswerBytes)
	or(&l.Holdouts, d.Holdouts)
	or(&l.OpenTables, d.OpenTables)
	or(&l.Work, d.Work)
	or(&l.Questions, d.Questions)
	or(&l.Memory, max(d.Memory, minMemory))
	or(&l.Wait, d.Wait)
	return l
}

func or[T ~int | ~int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// LimitError is a limit that makes no sense.
type LimitError struct {
	Name  string // as on the command line
	Value any
	Least any // what it must be at least
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit %s is %v; it must be at least %v", e.Name, e.Value, e.Least)
}

// Check refuses limits with which a server could do nothing. Errors are *[LimitError].
func (l Limits) Check() error {
	for _, x := range []struct {
		name         string
		value, least int64
	}{
		{"upload-bytes", l.UploadBytes, 1}, {"batch-queries", int64(l.BatchQueries), 1}, {"query-bytes", int64(l.QueryBytes), 1}, {"model-bytes", int64(l.ModelBytes), 1},
		{"answer-bytes", l.AnswerBytes, 1}, {"holdouts", int64(l.Holdouts), 1}, {"open-tables", int64(l.OpenTables), 1},
		{"work", l.Work, 1}, {"questions", int64(l.Questions), 1}, {"memory", l.Memory, minMemory},
	} {
		if x.value < x.least {
			return &LimitError{x.name, x.value, x.least}
		}
	}
	if l.Wait <= 0 {
		return &LimitError{"wait", l.Wait, time.Duration(1)}
	}
	return nil
}

// saturated adds without overflow; both are at least 0.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
