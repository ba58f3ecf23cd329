package files

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// What is decoded on the way from a table to its parts lies in directories scratch_WHO_N beside the parts, or where Options.Scratch says. WHO is the process: it has a file .working_WHO locked while it runs, and the kernel
// lets go of the lock when the process ends, however it does. So a directory whose process does not run any more is told from one of another server that has the same directory of parts.

const (
	scratchPrefix = "scratch_"
	workingPrefix = ".working_" // no name of a part
)

// working is a process that reads tables.
type working struct {
	parts string // or the directory of scratch
	who   string
	lock  *os.File
	made  atomic.Int64 // directories
	once  sync.Once    // of end
}

// beginWork says that this process works in a directory of parts, and removes what others have left there that do not run any more.
func beginWork(parts string) (*working, error) {
	for {
		var random [8]byte
		rand.Read(random[:]) // never fails
		w := &working{parts: parts, who: hex.EncodeToString(random[:])}
		f, err := os.OpenFile(w.file(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("files: the directory of the parts: %w", err)
		}
		w.lock = f
		// Where a file system has no locks nobody else can take this one, either.
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) && w.there() {
			return w, w.sweep()
		}
		f.Close() // another process that starts just now took it for one that has ended, and removes it
	}
}

func (w *working) file() string { return filepath.Join(w.parts, workingPrefix+w.who) }

// there reports whether the locked file is the one that has the name.
func (w *working) there() bool {
	own, err := w.lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(w.file())
	return err == nil && os.SameFile(own, named)
}

// sweep removes the scratch directories of processes that do not run any more, and their files.
func (w *working) sweep() error {
	entries, err := os.ReadDir(w.parts)
	if err != nil {
		return fmt.Errorf("files: the directory of the parts: %w", err)
	}
	left := map[string][]string{} // scratch directories, by whose they are
	for _, e := range entries {
		if who, isFile := strings.CutPrefix(e.Name(), workingPrefix); isFile {
			left[who] = append([]string(nil), left[who]...) // with or without directories
		} else if rest, isScratch := strings.CutPrefix(e.Name(), scratchPrefix); isScratch && e.IsDir() {
			who, _, _ := strings.Cut(rest, "_")
			left[who] = append(left[who], filepath.Join(w.parts, e.Name()))
		}
	}
	delete(left, w.who)
	for who, dirs := range left {
		if err := reap(filepath.Join(w.parts, workingPrefix+who), dirs); err != nil {
			return fmt.Errorf("files: what was left by a process that was killed: %w", err)
		}
	}
	return nil
}

// reap removes the directories of a process, and its file, if it does not run any more: the file is not locked, or not there. Where a file system has no locks, nobody is taken to have ended.
func reap(file string, dirs []string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	switch {
	case err == nil:
		defer f.Close() // and lets go of the lock
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// end says that this process does not work any more. Ending again does nothing.
func (w *working) end() (err error) {
	if w == nil {
		return nil
	}
	w.once.Do(func() {
		if err = os.Remove(w.file()); errors.Is(err, fs.ErrNotExist) {
			err = nil // with the directory
		}
		err = errors.Join(err, w.lock.Close())
	})
	return err
}

// scratch makes a directory for what is removed soon.
func (s *Source) scratch() (dir string, remove func() error, err error) {
	w := s.working
	dir = filepath.Join(w.parts, scratchPrefix+w.who+"_"+strconv.FormatInt(w.made.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, unavailable(err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
