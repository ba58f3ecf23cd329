package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// writer writes the members of a backup.
type writer struct {
	tar    *tar.Writer
	layers []io.Closer // from the innermost: tar, zstd, age
	now    time.Time
	files  []File
	wrote  func(n int) // hears of the bytes of members
}

// newWriter begins a backup.
func newWriter(out io.Writer, recipients []age.Recipient, now time.Time) (*writer, error) {
	sealed, err := age.Encrypt(out, recipients...)
	if err != nil {
		return nil, fmt.Errorf("backup: encrypt: %w", err)
	}
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("backup: compress: %w", err)
	}
	archive := tar.NewWriter(packed)
	return &writer{tar: archive, layers: []io.Closer{archive, packed, sealed}, now: now, wrote: func(int) {}}, nil
}

// member writes a file of so many bytes; r must have them, and no more.
func (w *writer) member(path string, size int64, r io.Reader) error {
	if rank(path) < 0 {
		return fmt.Errorf("backup: %q is not a path of a backup", path)
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Size: size, Mode: 0o600, ModTime: w.now}); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(counted{io.MultiWriter(w.tar, sum), w.wrote}, io.LimitReader(r, size+1))
	switch {
	case n != size && (err == nil || n > size):
		return fmt.Errorf("backup: %s has another size than when it was opened: %d bytes, not %d", path, n, size)
	case err != nil:
		return fmt.Errorf("backup: %s: %w", path, err)
	}
	w.files = append(w.files, File{Path: path, Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// object writes a member of JSON.
func (w *writer) object(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	return w.member(path, int64(len(text)), bytes.NewReader(text))
}

// close ends all layers. Without it the backup is one that was cut off.
func (w *writer) close() error {
	for _, layer := range w.layers {
		if err := layer.Close(); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	return nil
}

// counted tells how much was written.
type counted struct {
	io.Writer
	wrote func(n int)
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.wrote(n)
	return n, err
}
