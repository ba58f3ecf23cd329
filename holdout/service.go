package holdout

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
)

// Options are what a Service is opened with.
type Options struct {
	Dir        string       // the data directory, made (0700) if it is not there
	AllowNaive bool         // accept the mechanism "naive"
	Logger     *slog.Logger // nil: no log
	Decoder    []string     // argv of the decoding child process, such as {self, "decode-parquet"}
	Limits     Limits       // zero fields take those of DefaultLimits
	Version    string       // of the program, for the log
}

// Limits bound what one request may ask for.
type Limits struct {
	UploadBytes  int64 // of all parts of one upload together
	BatchQueries int   // of one batch
	QueryBytes   int   // of the JSON of one query
	Holdouts     int   // of one server
}

// DefaultLimits are those of a server started without flags.
var DefaultLimits = Limits{
	UploadBytes:  16 << 30, // beyond it a disk fills before a decoder's limits say so
	BatchQueries: 10_000,   // a million-row pass at 2 ns a row and query stays below half a minute
	QueryBytes:   256 << 10,
	Holdouts:     10_000,
}

// Service is the heart of the server: it keeps holdouts and answers questions. Its methods may be called from many
// goroutines.
type Service struct{}

// Upload yields the parts of an upload in order: ("table", r) once, or ("training", r) and ("holdout", r); io.EOF
// ends it. A body is read before the next call.
type Upload func() (part string, body io.Reader, err error)

// SingleUpload is the upload of one table.
func SingleUpload(r io.Reader) Upload {
	done := false
	return func() (string, io.Reader, error) {
		if done {
			return "", nil, io.EOF
		}
		done = true
		return "table", r, nil
	}
}

var errNotOpen = fail(Unavailable, "the service is not open")

// Open opens a data directory.
func Open(ctx context.Context, o Options) (*Service, error) { return nil, errNotOpen }

// Close ends the service.
func (s *Service) Close() error { return nil }

// Ready says whether answers can be given.
func (s *Service) Ready(ctx context.Context) error { return errNotOpen }

// Create makes a holdout of an upload.
func (s *Service) Create(ctx context.Context, p Principal, set Settings, up Upload, idempotencyKey string) (card Card, replayed bool, err error) {
	return card, false, errNotOpen
}

// List returns the cards of all holdouts.
func (s *Service) List(ctx context.Context, p Principal) ([]Card, error) { return nil, errNotOpen }

// Card returns the card of a holdout with its budget.
func (s *Service) Card(ctx context.Context, p Principal, id string) (Card, error) {
	return Card{}, errNotOpen
}

// Delete removes a holdout's rows and keys.
func (s *Service) Delete(ctx context.Context, p Principal, id string) error { return errNotOpen }

// Training opens the training part as Parquet.
func (s *Service) Training(ctx context.Context, p Principal, id string) (*os.File, error) {
	return nil, errNotOpen
}

// Ask answers one query.
func (s *Service) Ask(ctx context.Context, p Principal, id string, query []byte, idempotencyKey string) (Answer, error) {
	return Answer{}, errNotOpen
}

// AskBatch answers many queries.
func (s *Service) AskBatch(ctx context.Context, p Principal, id string, queries []json.RawMessage, partial bool, idempotencyKey string) (BatchAnswer, error) {
	return BatchAnswer{}, errNotOpen
}

// Explain says what a query would cost.
func (s *Service) Explain(ctx context.Context, p Principal, id string, query []byte) (Explanation, error) {
	return Explanation{}, errNotOpen
}

// Answers returns a page of the history.
func (s *Service) Answers(ctx context.Context, p Principal, id string, after int64, limit int) (AnswerPage, error) {
	return AnswerPage{}, errNotOpen
}

// Budget returns what is left.
func (s *Service) Budget(ctx context.Context, p Principal, id string) (Budget, error) {
	return Budget{}, errNotOpen
}

// Export writes the ledger of a holdout.
func (s *Service) Export(ctx context.Context, p Principal, id string, w io.Writer) error {
	return errNotOpen
}

// Authenticate returns the principal of a bearer key.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	return Principal{}, errNotOpen
}

// CreateKey makes a key.
func (s *Service) CreateKey(ctx context.Context, p Principal, name string, scope Scope) (KeyInfo, string, error) {
	return KeyInfo{}, "", errNotOpen
}

// Keys lists the keys.
func (s *Service) Keys(ctx context.Context, p Principal) ([]KeyInfo, error) { return nil, errNotOpen }

// RevokeKey ends a key.
func (s *Service) RevokeKey(ctx context.Context, p Principal, id string) error { return errNotOpen }
