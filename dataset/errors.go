package dataset

import (
	"errors"
	"runtime"
	"runtime/debug"
)

// ErrDamaged says that files of a dataset are not what was written: errors.Is finds it in every [*CorruptError] and in
// what [Guarded] returns.
var ErrDamaged = errors.New("dataset: damaged")

// ErrVersion says that a table was written in a version of the format that this program does not know. It comes with ErrDamaged, for the table
// cannot be read.
var ErrVersion = errors.New("use the holdoutd that wrote it, or a newer one")

// CorruptError says that the files of a dataset are damaged or were not written by this package.
type CorruptError struct {
	Path   string // the file, or the directory; "" where it is not known
	Detail string // what is wrong with it
	Err    error  // the cause, or nil
}

// Error names the file and what is wrong.
func (e *CorruptError) Error() string {
	s := "dataset: " + e.Path + " is damaged: " + e.Detail
	if e.Path == "" {
		s = "dataset: " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns [ErrDamaged] and the cause.
func (e *CorruptError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrDamaged}
	}
	return []error{ErrDamaged, e.Err}
}

// Guarded runs f, which reads mapped columns in this goroutine, and returns a [*CorruptError] when a read fails: the file
// was cut short while it is mapped, or the disk could not give its blocks. Without it the process would end (SIGBUS), and
// with it all other holdouts. What f has done until then is its own to drop. Other panics go on.
func Guarded(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr // only a fault at an address that is mapped, or was, has one
		}:
			err = &CorruptError{Detail: "a mapped column cannot be read: its file was cut short, or the disk failed", Err: p}
		default:
			panic(p)
		}
	}()
	f()
	return nil
}
