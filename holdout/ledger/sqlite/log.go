package sqlite

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// A commit is durable in the log until the log is copied into the database. SQLite trusts its log: it appends where it believes that the end is, and copies
// what lies there. A log that was truncated or overwritten in place under the running server would get a hole, and the copy of a hole destroys the
// database. So the log's head and size are compared with what was written before and after each commit, and every frame's checksum before the log is copied.
// What is compared is SQLite's documented format (https://www.sqlite.org/walformat.html).

// Sizes of the log's parts, in bytes.
const (
	logHeader   = 32
	frameHeader = 24 // then comes a page
)

// logPages are how many frames of the log the database may lack: 16 MB, so that a page that many commits change is copied back once.
const logPages = 4000

// logEnd is how far the log has come, in frames, and how many of these the database has.
type logEnd struct{ frames, copied int64 }

// brokenLog says that the log does not hold what was written to it. Only the checkpoint before it is whole.
type brokenLog struct{ name, reason string }

func (e *brokenLog) Error() string {
	return fmt.Sprintf("ledger: %s is not what was written: %s. What it held beyond ledger.db is lost, and nothing is recorded until the server has been started again", e.name, e.reason)
}

// checkLog compares the log with what was written: its head and size and, if whole, every frame. A log of which the database has everything can be anything: the
// next commit begins it anew. The error is a *brokenLog, or what the disk says.
func (l *Ledger) checkLog(ctx context.Context, whole bool) (end logEnd, err error) {
	w, name := &l.writer, l.path+"-wal"
	var busy int
	if err := w.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &end.frames, &end.copied); err != nil {
		return end, fmt.Errorf("ledger: the log's end: %w", err)
	}
	if end.frames <= end.copied {
		return end, nil
	}
	if w.log == nil { // SQLite locks the log's index, and not the log, so that closing this file takes no lock from it
		if w.log, err = l.disk.OpenFile(name, os.O_RDONLY); err != nil {
			return end, fmt.Errorf("ledger: %w", err)
		}
	}
	info, err := w.log.Stat()
	if err != nil {
		return end, fmt.Errorf("ledger: %w", err)
	}
	reason, err := readLog(w.log, info.Size(), end.frames, whole)
	if err != nil {
		return end, fmt.Errorf("ledger: read %s: %w", name, err)
	}
	if reason != "" {
		return end, &brokenLog{name, reason}
	}
	return end, nil
}

// readLog says what is wrong with a log of so many bytes that should have so many frames, or "".
func readLog(f io.ReaderAt, size, frames int64, whole bool) (reason string, err error) {
	var head [logHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return fmt.Sprintf("it has %d bytes", size), ended(err)
	}
	var order binary.ByteOrder = binary.LittleEndian // of the words that are summed
	switch binary.BigEndian.Uint32(head[:]) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return "its head is none", nil
	}
	sum := logSum{}.add(order, head[:24])
	if sum != sumAt(head[24:]) {
		return "its head does not fit its checksum", nil
	}
	page := int64(binary.BigEndian.Uint32(head[8:]))
	if want := logHeader + frames*(frameHeader+page); size < want {
		return fmt.Sprintf("it has %d bytes, of %d", size, want), nil
	}
	if !whole {
		return "", nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, logHeader, size-logHeader), 1<<20)
	frame := make([]byte, frameHeader+page)
	for i := range frames {
		if _, err := io.ReadFull(r, frame); err != nil {
			return fmt.Sprintf("it ends in frame %d of %d", i+1, frames), ended(err)
		}
		sum = sum.add(order, frame[:8]).add(order, frame[frameHeader:])
		if string(frame[8:16]) != string(head[16:24]) || sum != sumAt(frame[16:]) {
			return fmt.Sprintf("frame %d of %d does not fit its checksum", i+1, frames), nil
		}
	}
	return "", nil
}

// ended is nil where a file ended, which is a fault of the file and not of the disk.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// logSum is the running checksum of a log.
type logSum [2]uint32

func sumAt(b []byte) logSum {
	return logSum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// add sums a text of whole pairs of words.
func (s logSum) add(order binary.ByteOrder, text []byte) logSum {
	for ; len(text) >= 8; text = text[8:] {
		s[0] += order.Uint32(text) + s[1]
		s[1] += order.Uint32(text[4:]) + s[0]
	}
	return s
}

// distrust takes note of a read that failed because of the files: nothing is committed before the log is in the database and the ledger was read again.
func (l *Ledger) distrust(err error) {
	if failedRead(err) && l.unread.CompareAndSwap(nil, &err) {
		l.log.Error("the ledger cannot be read: nothing is recorded before it can", "error", err)
	}
}

// rescue is what has to succeed after a read that failed, before anything is committed: the log is whole, and in the database, and the ledger can be read.
func (l *Ledger) rescue(ctx context.Context) error {
	l.unread.Store(nil) // a read that fails from here on is another one
	var end logEnd
	err := l.checkFiles()
	if err == nil {
		end, err = l.checkLog(ctx, true)
	}
	if err == nil {
		err = l.copyLog(ctx)
	}
	if err == nil {
		err = l.readAgain(ctx)
	}
	if err != nil {
		l.unread.CompareAndSwap(nil, &err)
		return err
	}
	l.writer.end = logEnd{end.frames, end.frames}
	l.log.Info("the ledger can be read again")
	return nil
}

// readAgain reads the ledger with a new connection, which knows no page of it.
func (l *Ledger) readAgain(ctx context.Context) (err error) {
	defer func() { l.distrust(err) }()
	db, err := tryReaders(ctx, l.path, l.vfs()...)
	if err != nil {
		return wrapRead(err)
	}
	defer db.Close()
	for _, text := range []string{"SELECT count(*) FROM meta", "SELECT count(*) FROM (SELECT body FROM entries ORDER BY rowid DESC LIMIT 1)", "SELECT count(*) FROM books"} {
		if err := db.QueryRowContext(ctx, text).Scan(new(int)); err != nil {
			return wrapRead(err)
		}
	}
	return nil
}
