package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"
)

// spending gives the columns of a table back one by one.
type spending struct {
	file *os.File
	left []atomic.Int64 // of each column, how often it is still written
}

// Spend says that each column of a large table, which was opened from dir and is removed in the end, is written so many times more, by [Write], [Select] or [SelectJoint], and is never
// read after that. So its values are given back then, on the disk and in the kernel's cache: what is written next takes their place. They must not be read again, and
// the dataset in dir is none any more. A small table stays as it is.
func (t *Table) Spend(dir string, times int) error {
	if len(t.mapping) < releaseLeast {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, columnsFile), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	s := &spending{file: f, left: make([]atomic.Int64, len(t.columns))}
	for i := range s.left {
		s.left[i].Store(int64(times))
	}
	t.spending = s
	return nil
}

// written counts a column that was written.
func (t *Table) written(i int) {
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
	at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(values))) - uintptr(unsafe.Pointer(unsafe.SliceData(t.mapping))))
	giveBack(t.spending.file, at, int64(len(values)))
}

// close ends the spending.
func (s *spending) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
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
