package holdout

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/internal/machine"
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
	for kind, want := range map[ingest.Kind]Kind{ingest.DiskFull: DiskFull, ingest.Unavailable: Unavailable, ingest.Limit: BadUpload, ingest.TooLarge: TooLarge, ingest.Internal: Internal} {
		if err := uploadError(partTable, &ingest.Error{Kind: kind, Detail: "why"}); KindOf(err) != want {
			t.Errorf("%v while a file is decoded: %v", kind, err)
		}
	}
	refused := fail(BadUpload, "no rows")
	if err := storageError(errors.Join(refused, syscall.ENOSPC)); KindOf(err) != BadUpload {
		t.Errorf("a refusal that has a kind: %v", err)
	}
}

// TestDecodeMemory: the server and the process that decodes an upload fit together into all the memory that there is, and where none is left an upload is
// refused before it is read. It would notice a process that may take the same memory in every container, and a limit that the process is not told.
func TestDecodeMemory(t *testing.T) {
	for mib := int64(64); mib < 64<<10; mib += 64 {
		all, server := mib<<20, max(mib>>1<<20, minMemory)
		if child := decodeMemory(all, server); child > ingest.DefaultMemoryBytes || child < ingest.DefaultMemoryBytes && server+child+all/16 != all {
			t.Errorf("of %d MiB the server takes %d and the process that decodes %d", mib, server>>20, child>>20)
		}
	}
	all := machine.Memory()
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.Memory = all - all/16 - 10<<20 })
	unread := func() (string, io.Reader, error) {
		t.Error("an upload is read that cannot be decoded")
		return "", nil, io.EOF
	}
	_, _, err := s.Create(t.Context(), admin, Settings{Name: "visits", Mechanism: "gaussian"}, unread, "")
	wantKind(t, "an upload without memory to decode it", err, Unavailable)
	if err == nil || !strings.Contains(err.Error(), "--memory leaves 10 MiB, and 64 are needed") {
		t.Error(err)
	}
	s = open(t, t.TempDir())
	s.decodeMemory = ingest.LeastMemoryBytes
	if _, _, err := s.Create(t.Context(), admin, Settings{Name: "visits", Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 1)))), ""); err != nil {
		t.Errorf("a small table, with the least memory: %v", err)
	}
	file, err := os.ReadFile("../dataset/ingest/testdata/many-long-texts.parquet")
	must(t, err)
	_, _, err = s.Create(t.Context(), admin, Settings{Name: "texts", Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(file)), "")
	wantKind(t, "a file that needs more memory", err, BadUpload)
	if err == nil || !strings.Contains(err.Error(), "more memory than the 64 MiB that are allowed") {
		t.Error(err)
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
