package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Two servers on one ledger would each write over what the other has told. Locks keep them apart where both see the same file system; they do not
// reach through a FUSE mount, a network, or a disk that two machines have. There the owner's record keeps them apart. It is a file beside the database and
// no row in it: SQLite would answer from its memory. It is opened anew for each look, which network file systems and FUSE promise to be the newest.
//
//   - Whoever starts and finds the record of an owner that the locks cannot speak for asks it: path.asks has who asks. A living owner answers within a second,
//     there, and the newcomer gives up. One that does not answer for askFor is taken for dead, and the newcomer takes its place.
//   - An owner looks at the record before each commit, and after it before anyone is told. Once the record is not its own, it begins no commit any more, for ever, and reads nothing: what it read would be old.
//   - The record is written by who takes the ledger, and by its owner at the end. Nobody writes it for another reason: an owner that stood still would write over its successor.
//
// What an owner told does not rest on clocks: it was durable while the record was its own, so that it is in the log that the next one reads. One thing does: a commit
// that was begun before the take-over and reaches the disk more than takenFor after it is written over what the successor has. The successor finds that when it
// checks its log, commits nothing more, and the holdouts that lost answers are rolled back (see log.go).

const (
	answerEvery = time.Second     // how often an owner looks whether somebody asks
	askFor      = 4 * time.Second // how long an owner is asked: a few of its looks, and of a network's caches
	takenFor    = time.Second     // how long a record must stay after a take-over: another newcomer may have written at the same time
	recordBytes = 4 << 10         // a record is written in place, in one piece, over the one before it
)

// owner is who has a ledger, or asks for it.
type owner struct {
	Token    string    `json:"token"` // of this one opening
	Host     string    `json:"host"`
	Process  int       `json:"process"`
	Path     string    `json:"path"`
	Since    time.Time `json:"since"`
	Boot     string    `json:"boot"`               // of the kernel that it runs on
	Device   uint64    `json:"device"`             // of the file system, to that kernel
	Answered string    `json:"answered,omitempty"` // of who asks: the token of the owner that is alive
}

func (o *owner) String() string {
	return fmt.Sprintf("process %d on %s, which serves %s since %s", o.Process, o.Host, o.Path, o.Since.Format(time.RFC3339))
}

// ownership is this process's claim on a ledger.
type ownership struct {
	path  string
	disk  ledger.Disk
	self  owner
	text  []byte // of its record; nil before take
	asked bool   // the owner before did not answer, may stand still somewhere, and has the log open
	log   *slog.Logger
	ends  chan struct{} // closed to end the answers; nil before take
	done  chan struct{} // closed when they have ended

	lost atomic.Pointer[taken] // once it is known that the record is not this process's
}

// taken says that the record is not this process's any more.
type taken struct{ by owner }

func (e *taken) Error() string {
	if e.by.Token == "" {
		return "ledger: the record of its server is gone, so that another one may have had it; nothing is recorded here until the server has been started again"
	}
	return fmt.Sprintf("ledger: it was taken over by %s; nothing is recorded here any more", &e.by)
}

// newOwnership describes this process to others.
func newOwnership(path string, disk ledger.Disk, log *slog.Logger) (*ownership, error) {
	info, err := disk.Stat(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	return &ownership{path: path, disk: disk, log: log, self: owner{
		Token: rand.Text(), Host: shorten(host), Process: os.Getpid(), Path: shorten(path), Since: time.Now().UTC().Truncate(time.Second),
		Boot: boot(), Device: disk.Device(info),
	}}, nil
}

// shorten keeps a record within its bytes, of which JSON may take six for one.
func shorten(text string) string {
	if most := recordBytes / 16; len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func (o *ownership) record() string { return o.path + ".owner" }
func (o *ownership) asks() string   { return o.path + ".asks" }

// take makes this process the owner. It waits where another may be alive that the locks, which this process has, do not reach. The error is ErrInUse with
// whoever has the ledger, or what the disk says.
func (o *ownership) take(ctx context.Context) error {
	before, err := o.read(o.record())
	if errors.Is(err, errNoRecord) { // the machine ended while it was written
		before, err = owner{Token: unknown, Host: "an unknown machine"}, nil
	}
	if err != nil {
		return err
	}
	asked := before.Token != "" && before.Token != o.self.Token && !o.speaksFor(before)
	if asked {
		if err := o.ask(ctx, before); err != nil {
			return err
		}
	}
	if err := o.write(o.record(), o.self); err != nil {
		return err
	}
	if asked {
		o.asked = true
		if err := wait(ctx, takenFor); err != nil {
			return err
		}
		if now, err := o.read(o.record()); err != nil {
			return err
		} else if now.Token != o.self.Token {
			return inUse(&now)
		}
		// Processes of one kernel share the index of the log as memory. That of an owner elsewhere is written into its file whenever it likes.
		if err := o.disk.Remove(o.path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("ledger: %w", err)
		}
	}
	text, err := o.self.text()
	if err != nil {
		return err
	}
	if err := o.write(o.asks(), owner{}); err != nil { // it is there from now on: that a file is not there is remembered longer than what is in one
		return err
	}
	o.text = text
	o.ends, o.done = make(chan struct{}), make(chan struct{})
	go o.answer()
	return nil
}

// speaksFor reports whether the locks would have kept this process out if that owner were alive: it was on this kernel and this file system.
func (o *ownership) speaksFor(before owner) bool {
	return before.Boot != "" && before.Boot == o.self.Boot && before.Device == o.self.Device
}

// ask asks the owner whether it is alive; nil means that it is not.
//
// Several may ask at the same time. Who finds another's question waits for the same answer: whoever it was for, an owner that gives one is alive.
func (o *ownership) ask(ctx context.Context, before owner) error {
	if err := o.write(o.asks(), o.self); err != nil { // over an answer of old
		return err
	}
	o.log.Info("the ledger was not closed by its last server, which no lock here would tell of: asking whether it is alive", "server", before.String(), "for", askFor)
	for end := time.Now().Add(askFor); time.Now().Before(end); {
		if err := wait(ctx, answerEvery/10); err != nil {
			return err
		}
		switch asks, err := o.read(o.asks()); {
		case errors.Is(err, errNoRecord): // it is being written
		case err != nil:
			return err
		case asks.Answered != "" && (asks.Answered == before.Token || before.Token == unknown):
			return inUse(&before)
		case asks.Token == "" || asks.Answered != "": // nobody asks any more
			if err := o.write(o.asks(), o.self); err != nil {
				return err
			}
		}
		switch now, err := o.read(o.record()); {
		case errors.Is(err, errNoRecord):
		case err != nil:
			return err
		case now.Token == "": // it was closed
			return nil
		case now.Token != before.Token && before.Token != unknown: // another newcomer took its place
			return inUse(&now)
		}
	}
	return nil
}

func inUse(by *owner) error {
	return fmt.Errorf("%w: %s; stop it, or use another directory", ledger.ErrInUse, by)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ledger: %w", ctx.Err())
	}
}

// answer tells whoever asks that the owner is alive, until it is not the owner any more; that it looks for, too, since what is read must not be older than what the next one tells.
func (o *ownership) answer() {
	defer close(o.done)
	for {
		select {
		case <-o.ends:
			return
		case <-time.After(answerEvery):
		}
		if o.check() != nil {
			continue
		}
		who, err := o.read(o.asks())
		if err != nil || who.Token == "" || who.Answered != "" {
			continue // it is asked for some seconds
		}
		who.Answered = o.self.Token
		if err := o.write(o.asks(), who); err != nil {
			o.log.Warn("another server asks whether this one is alive, and cannot be answered", "server", who.String(), "error", err)
		}
	}
}

// check is nil while the record is this process's; *taken once it is not, also where it is gone.
func (o *ownership) check() error {
	switch {
	case o == nil:
		return nil
	case o.text == nil: // there was no room for the record
		return o.take(context.Background())
	}
	if text, err := o.readText(o.record()); err == nil && bytes.Equal(text, o.text) {
		return nil // nearly always; parsing takes as long as reading
	}
	now, err := o.read(o.record())
	switch {
	case err != nil:
		return err
	case now.Token == o.self.Token:
		return nil
	}
	if t := (&taken{now}); o.lost.CompareAndSwap(nil, t) {
		o.log.Error("another server took the ledger over; nothing is recorded or read here any more", "error", t)
	}
	return o.lost.Load()
}

// ours is nil as long as it is not known that another owner writes the ledger: what is read after that would be old.
func (l *Ledger) ours() error {
	if l.own == nil {
		return nil
	}
	if t := l.own.lost.Load(); t != nil {
		return unavailable(t)
	}
	return nil
}

// release ends the ownership: the next start need not ask.
func (o *ownership) release() error {
	if o == nil || o.ends == nil {
		return nil
	}
	close(o.ends)
	<-o.done
	if now, err := o.read(o.record()); err != nil || now.Token != o.self.Token {
		return err
	}
	return o.write(o.record(), owner{})
}

// text is a record as it is written.
func (o owner) text() ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%-*s\n", recordBytes-1, text), nil
}

// write overwrites a record in place: another file of the name would not be seen by whoever remembers where the name led.
func (o *ownership) write(name string, r owner) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	f, err := o.disk.OpenFile(name, os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

var errNoRecord = errors.New("ledger: the record of the ledger's server is none")

// unknown is the token of an owner whose record cannot be read.
const unknown = "unknown"

// looks are how often a record is read that is being written.
const looks = 50

// read reads a record; it is empty where there is none.
func (o *ownership) read(name string) (r owner, err error) {
	for range looks {
		var text []byte
		text, err = o.readText(name)
		if errors.Is(err, fs.ErrNotExist) {
			return owner{}, nil
		}
		if err != nil {
			return owner{}, fmt.Errorf("ledger: %w", err)
		}
		if err = json.Unmarshal(text, &r); err == nil {
			return r, nil
		}
		time.Sleep(time.Millisecond)
	}
	return owner{}, fmt.Errorf("%w: %s (%w); start the server again", errNoRecord, name, err)
}

func (o *ownership) readText(name string) ([]byte, error) {
	f, err := o.disk.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, recordBytes) // at once: io.ReadAll takes three times as long, and two looks belong to each commit
	n, err := f.ReadAt(text, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text[:n], err
}
