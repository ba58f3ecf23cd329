package holdout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Several servers, each a replica, may share a ledger (Options.OpenLedger). What they share beside it are the server's key and the tables of holdouts, which
// never change: in one directory that all of them see, or copied to each. Everything else in a data directory is one replica's own.
//
// What decides about a question is read from the ledger for each one, and decided again when it is debited (commit.go). What a replica remembers
// only keeps its own requests in order: their turns, their reservations, numbers that came with queries, and how far its marks have come.

const (
	lockFile = "replica.lock" // in the data directory of a replica: held while it runs
	marksDir = "marks"        // a replica's own marks, by holdout
	// stagingDir is in a directory of tables that is not a data directory's own: what is being made there, on the file system on which it will stay.
	stagingDir = ".making"
	// abandonedAfter is how old something must be that another replica may be making before it is taken for what a crash has left. An upload takes hours at
	// most, and a commit whose outcome nobody has heard of is over within minutes.
	abandonedAfter = 24 * time.Hour
	// followEvery is how often the ledger is asked whether others have answered, while somebody follows a holdout's answers.
	followEvery = time.Second
)

// places are the directories of a service.
type places struct {
	dir    string // the data directory
	tables string // where the directories of holdouts are
	making string // where such a directory is made, on the same file system
}

func placesOf(o Options) places {
	p := places{dir: o.Dir, tables: filepath.Join(o.Dir, holdoutsDir), making: filepath.Join(o.Dir, temporaryDir)}
	if o.Tables != "" {
		p.tables, p.making = o.Tables, filepath.Join(o.Tables, stagingDir)
	}
	return p
}

// all are the directories that must be there.
func (p places) all() []string {
	all := []string{p.dir, filepath.Join(p.dir, temporaryDir), p.tables}
	if p.making != all[1] {
		all = append(all, p.making)
	}
	return all
}

// holdoutPath is a place in the directory of a holdout's tables.
func (p places) holdoutPath(elements ...string) string {
	return filepath.Join(append([]string{p.tables}, elements...)...)
}

// markDir is where the mark of a holdout is kept that follows its chain: beside the tables, or, where other servers have the same tables, among a
// replica's own.
func (s *Service) markDir(id string) string {
	if s.shared {
		return s.path(marksDir, id)
	}
	return s.holdoutPath(id)
}

// lockDirectory keeps a second replica out of a data directory: each would remove the other's uploads and write its marks. The kernel lets go of it
// when the process ends. A ledger in a file has a lock of its own.
func lockDirectory(dir string) (*os.File, error) {
	name := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, secretMode)
	if err != nil {
		return nil, fmt.Errorf("holdout: data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(fmt.Errorf("%w: %s is locked: each replica needs a data directory of its own", ledger.ErrInUse, name), f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("holdout: lock %s: %w", name, err), f.Close())
	}
	return f, nil
}

// openShared opens a ledger that other servers may have open, too. Nothing is made of which all replicas need the same: the key must be there.
func (s *Service) openShared(ctx context.Context, o Options) (err error) {
	if s.locked, err = lockDirectory(s.dir); err != nil {
		return err
	}
	secret, err := s.givenSecret()
	if errors.Is(err, fs.ErrNotExist) && o.ServerKey == nil {
		return &Error{Kind: Unavailable, Err: err, Detail: fmt.Sprintf("there is no server key: all replicas of a ledger need the same one, so none is made. "+
			"Make it once, such as by: openssl rand -hex 32, keep it as a secret, and give it to each replica: --server-key FILE, --server-key-command COMMAND, or as %s", s.path(serverKeyFile))}
	}
	if err != nil {
		return err
	}
	s.split, s.digest = secret.derive("split"), secret.derive("digest")
	s.printing, s.printSealer = secret.derive("prints"), ledger.Sealer{Key: secret.derive("prints file")}
	s.browsers.sealer.Key = secret.derive("sessions")
	must, err := s.expectShared()
	if err != nil {
		return err
	}
	s.ledger, err = o.OpenLedger(ctx, ledger.Options{Key: secret.derive("ledger"), MustExist: must && !s.accept, Logger: s.log, Committed: s.committed, Now: s.now})
	switch {
	case errors.Is(err, ledger.ErrLost):
		return &Error{Kind: Unavailable, Err: err, Detail: fmt.Sprintf("the ledger is empty, and %s has the tables or the marks of holdouts that it knew. Restore the database from a backup, or name the right one. "+
			"If there is none, --accept-lost-ledger starts with an empty ledger: holdouts that it does not know cannot be asked any more, and their tables stay refused", s.dir)}
	case errors.Is(err, ledger.ErrWrongKey):
		return &Error{Kind: Unavailable, Err: err, Detail: "the server key is not the one that this ledger was made with: all replicas need the same key. " +
			"Give this one what the others have (--server-key, --server-key-command, or server.key in its data directory)"}
	case err != nil:
		return fmt.Errorf("holdout: %w", err)
	}
	return nil
}

// expectShared says whether there must be a ledger: marks of this replica or tables speak of one.
func (s *Service) expectShared() (bool, error) {
	marks, err := os.ReadDir(s.path(marksDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("holdout: %w", err)
	}
	known, err := s.unmarked()
	return len(marks) > 0 || len(known) > 0, err
}

// givenSecret is the server's key as it was given, or as the data directory has it.
func (s *Service) givenSecret() (serverSecret, error) {
	if s.serverKey == nil {
		return readServerSecret(s.path(serverKeyFile))
	}
	text, err := s.serverKey()
	if err != nil {
		return serverSecret{}, fmt.Errorf("holdout: server key: %w", err)
	}
	return parseServerSecret("the server key that was given", text)
}

// take opens a holdout's tables, or finds them open. One that another server has deleted or replaced is closed.
func (s *Service) take(ctx context.Context, id string) (*opened, func(), error) {
	if s.shared && s.tables.has(id) {
		books, err := s.ledger.Books(ctx, id)
		switch {
		case err == nil && books.Deleted:
			s.accounts.of(id).forget()
			s.accounts.forget(id)
			s.clear(ctx, id)
		case errors.Is(err, ledger.ErrUnavailable):
			return nil, nil, s.ledgerError(err)
		}
	}
	return s.tables.take(ctx, id)
}

// errNoTables is the cause of the refusal of a holdout whose tables are not at this replica.
var errNoTables = errors.New("holdout: the tables are not here")

// noTables says which directory to bring. The next request looks again.
func (s *Service) noTables(id string, err error) *Error {
	dir := s.holdoutPath(id)
	s.log.Error("the tables of a holdout are not at this server: it gives no new answers here", "holdout", id, "dir", dir, "error", err)
	return &Error{Kind: Unavailable, Err: fmt.Errorf("%w: %w", errNoTables, err), Members: map[string]any{"holdout": id},
		Detail: fmt.Sprintf("the tables of this holdout are not at this server: copy the directory holdouts/%s of a server that has it, or keep the tables on storage that all servers see. They are looked for again at the next request. Recorded answers still replay", id)}
}

// noParts says of a holdout whose source keeps parts in a directory that they are not in this server's. The next request looks again.
func (s *Service) noParts(id string, err error) *Error {
	s.log.Error("the parts of a holdout are not where this server's source keeps parts: it gives no new answers here", "holdout", id, "error", err)
	return &Error{Kind: SourceUnavailable, Err: fmt.Errorf("%w: %w", errNoTables, err), Members: map[string]any{"holdout": id},
		Detail: "the parts of this holdout are not where this server's source keeps parts: all servers of a ledger need the same directory of parts (--source NAME=file:///DIR?parts=DIR, on storage that all of them see). They are looked for again at the next request. Recorded answers still replay"}
}

// sweepAbandoned removes what a crash has left where several replicas make tables, when nobody can be making it any more.
func (s *Service) sweepAbandoned() error {
	if s.making == s.path(temporaryDir) {
		return nil
	}
	entries, err := os.ReadDir(s.making)
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(s.making, e.Name())
		if abandoned(path) {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("holdout: leftovers: %w", err)
			}
		}
	}
	return nil
}

// abandoned reports whether a file or directory was not changed for so long that nobody works on it.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > abandonedAfter
}

// follow tells those who wait for news of a holdout of what other servers have recorded, until the service closes.
func (s *Service) follow(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	seen := map[string]int64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, id := range s.news.awaited() {
			books, err := s.ledger.Books(ctx, id)
			if last, known := seen[id]; err == nil && known && last == books.Seq {
				continue
			}
			seen[id] = books.Seq // 0 where it cannot be read: whoever waits will hear why
			s.news.tell(id)
		}
	}
}
