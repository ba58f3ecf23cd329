package api

import (
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// encodings are the ways in which the body of a query may be compressed: predictions row by row are a number for each row of the holdout, and shrink to a third.
var encodings = []string{"gzip", "zstd"}

// zstdWindow is the largest window of a zstd body, in bytes: what RFC 8878 asks a decoder for. A body within the limits needs no larger one.
const zstdWindow = 8 << 20

// encodingOf is how a request's body is compressed; "" if it is not.
func encodingOf(r *http.Request) string {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
	if encoding == "identity" {
		return ""
	}
	return encoding
}

// encodingError is a body that is not what its encoding says.
type encodingError struct {
	encoding string
	err      error
}

func (e *encodingError) Error() string { return "api: " + e.encoding + ": " + e.err.Error() }

func (e *encodingError) Unwrap() error { return e.err }

// readDecoded reads a body of at most limit bytes, counted as it is sent and as it is decoded: a small body that becomes a large one ends at the limit, and
// takes no more memory than one that came as it is. Where it is too large the error is an *[http.MaxBytesError], as that of r is.
func readDecoded(encoding string, r io.Reader, limit int64) ([]byte, error) {
	var decoded io.Reader
	switch encoding {
	case "":
		return io.ReadAll(r)
	case "gzip":
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return nil, decodingError(encoding, err)
		}
		decoded = unzipped
	case "zstd":
		frames, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, decodingError(encoding, err)
		}
		defer frames.Close()
		decoded = frames
	default:
		return nil, &encodingError{encoding, errors.New("unknown")} // acceptsJSON refuses it before
	}
	body, err := io.ReadAll(io.LimitReader(decoded, limit+1))
	switch {
	case err != nil:
		return nil, decodingError(encoding, err)
	case int64(len(body)) > limit:
		return nil, &http.MaxBytesError{Limit: limit}
	}
	return body, nil
}

// decodingError leaves what is wrong with the sending of a body as it is: its length, and its time.
func decodingError(encoding string, err error) error {
	var large *http.MaxBytesError
	var network net.Error
	if errors.As(err, &large) || errors.As(err, &network) {
		return err
	}
	return &encodingError{encoding, err}
}
