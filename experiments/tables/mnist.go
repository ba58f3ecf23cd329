package tables

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/holdoutd/holdoutd/dp/learn"
)

// MNIST's digits (Y. LeCun, C. Cortes) are CC BY-SA 3.0, and so no part of this repository. They are read from a directory with the four files as they are
// published; one that is missing is downloaded into it. Every file has to have the digest of the published one.

// MNISTPixels are those of a digit, 28 by 28.
const MNISTPixels = 784

// Of each class so many digits of the first file are for training, and of the second for tests: the first ones.
const (
	mnistTraining = 200
	mnistOthers   = 50
)

// archive is where files are published, and their digests.
type archive struct {
	mirrors []string
	digests map[string]string // SHA-256 by name
}

var mnist = archive{
	mirrors: []string{"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"},
	digests: map[string]string{
		"train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
		"train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
		"t10k-images-idx3-ubyte.gz":  "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
		"t10k-labels-idx1-ubyte.gz":  "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
	},
}

// Limits of a file: those of MNIST have 10 MB, and 47 MB unpacked.
const (
	maxArchive  = 16 << 20
	maxUnpacked = 64 << 20
	maxDownload = 5 * time.Minute
)

// MNIST reads the digits to learn from and those for tests, class by class, with pixels in [0,1], from a directory. What is missing there is downloaded.
func MNIST(ctx context.Context, dir string) (training, others learn.Data, err error) {
	if training, err = mnist.digits(ctx, dir, "train", mnistTraining); err == nil {
		others, err = mnist.digits(ctx, dir, "t10k", mnistOthers)
	}
	return training, others, err
}

// digits are the first of each class in a pair of files.
func (a archive) digits(ctx context.Context, dir, part string, each int) (d learn.Data, err error) {
	images, err := a.unpacked(ctx, dir, part+"-images-idx3-ubyte.gz", 16)
	if err != nil {
		return d, err
	}
	labels, err := a.unpacked(ctx, dir, part+"-labels-idx1-ubyte.gz", 8)
	if err != nil {
		return d, err
	}
	if len(images) != MNISTPixels*len(labels) {
		return d, fmt.Errorf("experiments: mnist: %d labels of %d bytes of images", len(labels), len(images))
	}
	d.Dim, d.Classes = MNISTPixels, DigitClasses
	for class := range DigitClasses {
		found := 0
		for i := 0; i < len(labels) && found < each; i++ {
			if int(labels[i]) != class {
				continue
			}
			for _, v := range images[i*MNISTPixels : (i+1)*MNISTPixels] {
				d.X = append(d.X, float64(v)/255)
			}
			d.Y, found = append(d.Y, class), found+1
		}
		if found < each {
			return d, fmt.Errorf("experiments: mnist: %d digits of class %d in %s, %d are needed", found, class, part, each)
		}
	}
	return d, nil
}

// unpacked is what a file holds behind its header, which says how many items there are.
func (a archive) unpacked(ctx context.Context, dir, name string, header int) ([]byte, error) {
	packed, err := a.file(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("experiments: mnist: %s: %w", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("experiments: mnist: %s: %w", name, err)
	}
	if len(text) < header || int(binary.BigEndian.Uint32(text[4:])) > len(text)-header {
		return nil, fmt.Errorf("experiments: mnist: %s: cut short after %d bytes", name, len(text))
	}
	return text[header:], nil
}

// file is the file of a directory, or of the first mirror that has it.
func (a archive) file(ctx context.Context, dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		if a.is(name, text) {
			return text, nil
		}
		return nil, fmt.Errorf("experiments: mnist: %s is not the published file: its SHA-256 is not %s; remove it, and it is downloaded", path, a.digests[name])
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("experiments: mnist: %w", err)
	}
	var failed []error
	for _, mirror := range a.mirrors {
		text, err := download(ctx, mirror+name)
		switch {
		case err != nil:
			failed = append(failed, err)
		case !a.is(name, text):
			failed = append(failed, fmt.Errorf("%s: its SHA-256 is not %s", mirror+name, a.digests[name]))
		default:
			return text, keep(dir, path, text)
		}
	}
	return nil, fmt.Errorf("experiments: mnist: %s is neither in %s nor to be downloaded: %w", name, dir, errors.Join(failed...))
}

func (a archive) is(name string, text []byte) bool {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]) == a.digests[name]
}

func download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxDownload)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, reply.Status)
	}
	return io.ReadAll(io.LimitReader(reply.Body, maxArchive))
}

// keep writes a file so that it is there as a whole or not at all.
func keep(dir, path string, text []byte) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(path+".part", text, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		return fmt.Errorf("experiments: mnist: %w", err)
	}
	return nil
}
