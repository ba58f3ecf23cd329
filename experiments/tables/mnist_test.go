package tables

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed is a file of MNIST's format with these bytes behind a header of so many.
func packed(t *testing.T, header, items int, text []byte) []byte {
	t.Helper()
	head := make([]byte, header)
	binary.BigEndian.PutUint32(head[4:], uint32(items))
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(append(head, text...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDownload: digits come from the first mirror that has the right files, stay in the directory, and are taken class by class. Another file under a name is refused,
// wherever it is.
func TestDownload(t *testing.T) {
	const count = 30 // three of each class, in turn
	labels, images := make([]byte, count), make([]byte, count*MNISTPixels)
	for i := range labels {
		labels[i], images[i*MNISTPixels] = byte(i%DigitClasses), byte(i)
	}
	files := map[string][]byte{"train-labels-idx1-ubyte.gz": packed(t, 8, count, labels), "train-images-idx3-ubyte.gz": packed(t, 16, count, images)}
	a, asked := archive{digests: map[string]string{}}, 0
	for name, text := range files {
		sum := sha256.Sum256(text)
		a.digests[name] = hex.EncodeToString(sum[:])
	}
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page that asks to log in")) }))
	defer wrong.Close()
	right := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = w.Write(files[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	defer right.Close()
	dir := filepath.Join(t.TempDir(), "mnist")
	a.mirrors = []string{wrong.URL + "/"}
	if _, err := a.digits(t.Context(), dir, "train", 2); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Fatalf("a mirror with other files: %v", err)
	}
	a.mirrors = append(a.mirrors, right.URL+"/")
	for range 2 { // the second time from the directory
		d, err := a.digits(t.Context(), dir, "train", 2)
		if err != nil {
			t.Fatal(err)
		}
		for i, class := range d.Y {
			if want := (i/2 + DigitClasses*(i%2)); class != i/2 || math.Round(d.Row(i)[0]*255) != float64(want) {
				t.Errorf("digit %d is a %d, number %v of the file, want %d", i, class, d.Row(i)[0]*255, want)
			}
		}
		if len(d.Y) != 20 || asked != 2 {
			t.Errorf("%d digits, %d downloads", len(d.Y), asked)
		}
	}
	if _, err := a.digits(t.Context(), dir, "train", 4); err == nil || !strings.Contains(err.Error(), "4 are needed") {
		t.Errorf("more digits than there are: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "train-labels-idx1-ubyte.gz"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.digits(t.Context(), dir, "train", 2); err == nil || !strings.Contains(err.Error(), "not the published file") {
		t.Errorf("another file in the directory: %v", err)
	}
}

// TestMNIST: the published files have 200 digits to learn from and 50 for tests of each class, whose sums are known.
func TestMNIST(t *testing.T) {
	dir := os.Getenv("HOLDOUTD_MNIST")
	if dir == "" {
		t.Skip("HOLDOUTD_MNIST names no directory with MNIST's four files")
	}
	training, others, err := MNIST(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(x []float64) (sum float64) {
		for _, v := range x {
			sum += math.Round(v * 255)
		}
		return sum
	}
	if training.Len() != 2000 || others.Len() != 500 || sum(training.X) != 52668175 || sum(others.X) != 12335785 {
		t.Errorf("%d and %d digits, whose pixels sum to %v and %v", training.Len(), others.Len(), sum(training.X), sum(others.X))
	}
	if i := 3*mnistOthers + 7; others.Y[i] != 3 || sum(others.Row(i)) != 17979 {
		t.Errorf("the eighth 3 of the tests is a %d whose pixels sum to %v", others.Y[i], sum(others.Row(i)))
	}
}
