package ingest

import (
	"errors"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
)

// Numbers, times and truths of a file of several row groups are decoded by two lanes: one takes the odd groups, the other the even ones, and what
// they make is written in the order of the file. Texts are not: their codes follow from the texts before.
//
// Lanes are for what writers write every day. Where anything is not, they are given up, and the column is read again by one reader from its beginning: so what is taken and what is
// refused, and by which words, does not depend on them.

const (
	// laneCount is the processors that the decoding process has.
	laneCount = 2
	// lanePageBytes is the largest page that a lane takes: four times what writers make.
	lanePageBytes = 4 << 20
	// lanePieces is how many pieces, of batchRows values, wait to be written: a row group of a million rows, as writers make it. They are made at need.
	lanePieces = 64
	// laneShare is the share of the memory that both lanes may need: each has pages and a dictionary, 21 MiB at most, and pieces of 8 MiB.
	laneShare = 8
	// laneBytes is that memory.
	laneBytes = laneCount * (5*lanePageBytes + streamBuffer + lanePieces*batchRows*8)
)

// lane decodes chunks on a goroutine of its own.
type lane struct {
	pages *pages
	batch batch
	free  chan piece // that were written
	made  int
}

// piece is some values of a column, in the one of the two slices that its kind has, or the end of a chunk.
type piece struct {
	numbers []float64
	bools   []uint8
	kind    dataset.Kind
	n       int

	end  bool
	read measured // of all of the chunk, at its end
	err  error    // with which the chunk ended
}

// errLanes says that the lanes were given up.
var errLanes = errors.New("the column is to be read by one reader")

// inLanes reports whether the lanes are to read a column.
func (d *decoder) inLanes(kind dataset.Kind) bool {
	return kind != dataset.Text && !d.alone && len(d.filled) > 1 && d.lim.MemoryBytes/laneShare >= laneBytes
}

// readInLanes reads a column that was begun, and writes it. After errLanes the column is to be begun again.
func (d *decoder) readInLanes(c *column) (err error) {
	if d.lanes == nil {
		for range laneCount {
			d.lanes = append(d.lanes, &lane{pages: newPages(min(d.lim.MaxPageBytes, lanePageBytes)), free: make(chan piece, lanePieces)})
		}
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(stop)
	outs := make([]chan piece, laneCount)
	for i, l := range d.lanes {
		outs[i] = make(chan piece, lanePieces+1)
		l.batch.begin(d.lim)
		wait.Go(func() {
			for at := i; at < len(d.filled) && l.decode(d, c, d.filled[at], outs[i], stop); at += laneCount {
			}
		})
	}
	for at, group := range d.filled {
		i := at % laneCount
		for p := range outs[i] {
			if p.end {
				if p.err != nil {
					d.lanes = nil // what they hold is lost
					if errors.Is(p.err, errTooWide) {
						return p.err
					}
					d.alone = true
					return errLanes
				}
				d.compare(c, group, p.read)
				break
			}
			if err := (&batch{kind: p.kind, numbers: p.numbers, bools: p.bools}).writeTo(d.writer, p.n); err != nil {
				return err
			}
			d.lanes[i].free <- p // which has room for all that were made
		}
	}
	return nil
}

// decode sends the pieces of a chunk and its end, and reports whether another chunk may follow.
func (l *lane) decode(d *decoder, c *column, group int, out chan<- piece, stop <-chan struct{}) bool {
	send := func(p piece) bool {
		select {
		case out <- p:
			return true
		case <-stop:
			return false
		}
	}
	var p piece
	take := func() bool {
		if l.made < lanePieces && len(l.free) == 0 {
			p = piece{}
			l.made++
			return true
		}
		select {
		case p = <-l.free:
			return true
		case <-stop:
			return false
		}
	}
	read, err := d.readChunk(l.pages, &l.batch, c, group, func(n int) error {
		if !take() {
			return errLanes
		}
		p.n, p.kind = n, l.batch.kind
		if p.kind == dataset.Bool {
			if p.bools == nil {
				p.bools = make([]uint8, batchRows)
			}
			p.bools, l.batch.bools = l.batch.bools, p.bools
		} else {
			if p.numbers == nil {
				p.numbers = make([]float64, batchRows)
			}
			p.numbers, l.batch.numbers = l.batch.numbers, p.numbers
		}
		if !send(p) {
			return errLanes
		}
		return nil
	})
	return send(piece{end: true, read: read, err: err}) && err == nil
}
