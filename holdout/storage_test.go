package holdout

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestStorageErrors: what the machine does is never the file's fault, nor an unnamed one of the server.
func TestStorageErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]Kind{
		syscall.ENOSPC: DiskFull, syscall.EDQUOT: DiskFull, syscall.EROFS: Unavailable, syscall.EIO: Unavailable, syscall.EMFILE: Unavailable,
		syscall.ENFILE: Unavailable, syscall.EAGAIN: Unavailable, syscall.ENOMEM: Unavailable, syscall.EACCES: Unavailable, syscall.ENOENT: Unavailable,
		syscall.EINVAL: Internal,
	} {
		err := fmt.Errorf("holdout: upload: %w", &os.PathError{Op: "write", Path: "tmp/x", Err: errno})
		if got := storageError(err); KindOf(got) != want || !errors.Is(got, errno) {
			t.Errorf("%v: kind %d, want %d: %v", errno, KindOf(got), want, got)
		}
	}
	refused := fail(BadUpload, "no rows")
	if err := storageError(errors.Join(refused, syscall.ENOSPC)); KindOf(err) != BadUpload {
		t.Errorf("a refusal that has a kind: %v", err)
	}
}

// TestDirectoriesGone: without the directories that uploads need the server is not ready and says so; it is when they are back.
func TestDirectoriesGone(t *testing.T) {
	s := open(t, t.TempDir())
	table := parquet(t, visits(t, 300, 1))
	upload := func() error {
		_, _, err := s.Create(t.Context(), admin, Settings{Name: "visits", Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(table)), "")
		return err
	}
	for _, name := range []string{temporaryDir, holdoutsDir} {
		must(t, os.Rename(s.path(name), s.path(name+".away")))
		wantKind(t, "ready without "+name, s.Ready(t.Context()), Unavailable)
		wantKind(t, "an upload without "+name, upload(), Unavailable)
		must(t, os.Rename(s.path(name+".away"), s.path(name)))
		must(t, s.Ready(t.Context()))
	}
	must(t, upload())
}

// TestServerKeyGoneLive: nothing is sealed with a key that the next start will not find.
func TestServerKeyGoneLive(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{}, visits(t, 300, 1))
	upload := func() error {
		_, _, err := s.Create(t.Context(), admin, Settings{Name: "visits"}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 2)))), "")
		return err
	}
	key := s.path(serverKeyFile)
	must(t, os.Rename(key, key+".away"))
	wantKind(t, "an upload without server.key", upload(), Unavailable)
	ask(t, s, card.ID, mean(1)) // this holdout's secrets are sealed already
	must(t, os.WriteFile(key, bytes.Repeat([]byte("0"), 64), secretMode))
	wantKind(t, "an upload with another server.key", upload(), Unavailable)
	must(t, os.Rename(key+".away", key))
	must(t, upload())
}
