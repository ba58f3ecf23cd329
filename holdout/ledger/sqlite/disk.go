package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// machine is the machine's disk.
type machine struct{}

func (machine) VFS() string                           { return "" }
func (machine) Create(path string) error              { return create(path) }
func (machine) CheckAccess(path string) error         { return checkAccess(path) }
func (machine) Remove(name string) error              { return os.Remove(name) }
func (machine) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }
func (machine) SameFile(a, b fs.FileInfo) bool        { return os.SameFile(a, b) }
func (machine) Device(info fs.FileInfo) uint64        { return device(info) }
func (machine) Lock(path string) (io.Closer, error) {
	files, err := lock(path)
	return closers(files), err
}

func (machine) OpenFile(name string, flag int) (ledger.File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err // no nil in an interface that is none
	}
	return f, nil
}

// closers are closed together.
type closers []*os.File

func (c closers) Close() error {
	var errs []error
	for _, f := range c {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// vfs is what the engine's connections need to know of the disk.
func (l *Ledger) vfs() []string {
	if name := l.disk.VFS(); name != "" {
		return []string{"vfs=" + name}
	}
	return nil
}
