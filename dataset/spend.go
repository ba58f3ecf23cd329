package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"
)

// spending gives the columns of a table back one by one.
type spending struct {
	path string         // of the columns
	left []atomic.Int64 // of each column, how often it is still read
}

// spentLeast is how many bytes of a column are worth a call: below, its blocks stay until the file is removed.
const spentLeast = 256 << 10

// Spend says that each column of a table, which was opened from dir and is removed in the end, is read so many times more: written by [Write], [Select] or [SelectJoint], or up to a call of
// [Table.Spent]. It is never read after that. So its values are given back then, on the disk and in the kernel's cache: what is written next takes their place. They must not be read again, and
// the dataset in dir is none any more.
func (t *Table) Spend(dir string, times int) {
	s := &spending{path: filepath.Join(dir, columnsFile), left: make([]atomic.Int64, len(t.columns))}
	for i := range s.left {
		s.left[i].Store(int64(times))
	}
	t.spending = s
}

// Spent says that a column of a table that is spent was read. The table may have none of this name.
func (t *Table) Spent(name string) {
	if i, has := t.index[name]; has {
		t.spent(i)
	}
}

// spent counts a column that was read.
func (t *Table) spent(i int) {
	if t.spending == nil || t.spending.left[i].Add(-1) != 0 {
		return
	}
	c := &t.columns[i]
	values := c.Bools
	switch c.Kind {
	case Bool:
	case Text:
		values = bytesOf(c.Codes)
	default:
		values = bytesOf(c.Numbers)
	}
	c.Numbers, c.Codes, c.Bools = nil, nil, nil // whoever reads them all the same fails, and does not read zeros
	if len(values) < spentLeast {
		return
	}
	f, err := os.OpenFile(t.spending.path, os.O_RDWR, 0)
	if err != nil {
		return // the blocks stay until the file is removed
	}
	defer f.Close() // nothing is written
	giveBack(f, int64(uintptr(unsafe.Pointer(unsafe.SliceData(values)))-uintptr(unsafe.Pointer(unsafe.SliceData(t.mapping)))), int64(len(values)))
}

// Passed says of a dataset of [NewPassing], in dir, whether all was right with the disk until now: what it could not take is an error here. It does not wait for what is only in the
// kernel's cache, from which it was read as it was written.
func Passed(dir string) error {
	f, err := OpenRegular(filepath.Join(dir, columnsFile))
	if err != nil {
		return err
	}
	return errors.Join(writtenSoFar(f), f.Close())
}
