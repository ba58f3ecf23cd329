package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/thresholdout"
)

const createHoldout = "create-holdout"

// A setting is one flat parameter of an upload.
type setting struct {
	name string
	doc  string
	kind string // "string", "integer", "number": of the OpenAPI document
	set  func(s *holdout.Settings, value string) bool
	zero bool // a number can be 0, which then is not the same as none
}

var settings = []setting{
	text("name", "what people call the holdout", func(s *holdout.Settings) *string { return &s.Name }),
	decimalNumber("holdout", "the fraction of units that is kept secret, in (0,1]; above 1 and whole: their count; 1.0 leaves no training part", func(s *holdout.Settings) *float64 { return &s.Holdout }),
	fractionOrNone("check", "the fraction of units in the check part, from 0 on and below 1; above 1 and whole: their count. Nobody is given its rows: answers about models are compared with them. 0 makes none; default: 0.2 where label is given, else 0. With split=given you upload it", func(s *holdout.Settings) **float64 { return &s.Check }),
	text("unit", "what is independent of the others: a column whose rows with the same value belong together, or day(column); default: each row", func(s *holdout.Settings) *string { return &s.Unit }),
	integer("largest_unit", "with unit: the most rows that a unit can have; an upload with a larger unit is refused. Default: the size of the training part's largest unit; with weight row a larger unit then counts as one of that size", func(s *holdout.Settings) *int64 { return &s.LargestUnit }),
	text("label", "the column that is predicted; it is on the card, and the label of queries that name none", func(s *holdout.Settings) *string { return &s.Label }),
	text("features", "secret, or public: all columns of the holdout rows but the label can be downloaded, so that models can be judged by their predictions; default: secret", func(s *holdout.Settings) *string { return &s.Features }),
	text("stratify", "a column whose values both parts get in proportion; its counts become public", func(s *holdout.Settings) *string { return &s.Stratify }),
	text("split", "hash: a random split by a secret key; time:COLUMN: the training part is earlier; given: you upload the parts training and holdout and, if you like, check; default: hash", func(s *holdout.Settings) *string { return &s.Split }),
	text("mechanism", mechanismsDoc(), func(s *holdout.Settings) *string { return &s.Mechanism }),
	text("form", taken("form", "gaussian or laplace; default: gaussian"), func(s *holdout.Settings) *string { return &s.Form }),
	text("preset", taken("preset", "science2015: threshold 4/sqrt(n) and noise 1/sqrt(n)"), func(s *holdout.Settings) *string { return &s.Preset }),
	integer("questions", "how many questions may be asked; each mean that is released counts as one", func(s *holdout.Settings) *int64 { return &s.Questions }),
	integer("rounds", taken("rounds", "in how many requests the questions are asked. You choose those of a request before you see its answers, so intervals are narrower. Unused questions of a round are lost. 1 is one batch; default: one question after the other"), func(s *holdout.Settings) *int64 { return &s.Rounds }),
	integer("tokens", taken("tokens", "how many guesses may be wrong, and under gaussian how many promises may be broken; each one costs a token"), func(s *holdout.Settings) *int64 { return &s.Tokens }),
	decimalNumber("confidence", "the probability that all intervals together hold, for example 0.95", func(s *holdout.Settings) *float64 { return &s.Confidence }),
	decimalNumber("half_width", taken("half_width", "the half-width that every answer should have"), func(s *holdout.Settings) *float64 { return &s.HalfWidth }),
	decimalNumber("threshold", taken("threshold", "of thresholdout, how far the training mean may be from the holdout mean; of ladder, the step by which the board moves; in units of a row function's [0,1]"), func(s *holdout.Settings) *float64 { return &s.Threshold }),
	decimalNumber("sigma", taken("sigma", "the scale of the noise, in units of a row function's [0,1]"), func(s *holdout.Settings) *float64 { return &s.Sigma }),
	decimalNumber("capped", taken("capped", "the share of the probability of error that pays for vectors, selections and narrower intervals near 0 and 1, above 0 and at most 0.9. If you ask mostly for histograms, gradients or the best of many, take 0.5; default: 0.1"), func(s *holdout.Settings) *float64 { return &s.Capped }),
	decimalNumber("sealed", taken("sealed", "the share of the held-out units, at most 0.9, that no question reads. The final report reads these alone where that is narrower, and nothing widens it. 0.5 makes other answers some 1.3 times as wide"), func(s *holdout.Settings) *float64 { return &s.Sealed }),
	text("cells", taken("cells", `the columns that questions are about, as a JSON object: for each column the listed values, [true,false] or texts, or the edges that cut its numbers. List null to give it a cell of its own; other values share one. Choose them without a look at held-out rows. Questions that tell rows of a cell apart are refused`), func(s *holdout.Settings) *string { return &s.Cells }),
	text("overlap", "refuse, or accepted: the table is taken though another holdout of this server, also a deleted one, holds out or has shown many of its rows. No interval covers both then, and the card says so for good; default: refuse", func(s *holdout.Settings) *string { return &s.Overlap }),
	text("source", "the name of a database of the operator, such as a ClickHouse. It has the held-out rows and computes the questions, with the same answers", func(s *holdout.Settings) *string { return &s.Source }),
	text("path", "NAME/PATH of a table that is there already, in a source of the operator: a Parquet file, a folder of them, or a table of ClickHouse or Trino. Send no body", func(s *holdout.Settings) *string { return &s.Path }),
	text("succeeds", "the id of a retired holdout that this one comes after, for example of last quarter's rows. Both cards name it, and this one says in what the two differ", func(s *holdout.Settings) *string { return &s.Succeeds }),
	text("bounds", taken("bounds", "any, or published: only bounds of the literature; default: any"), func(s *holdout.Settings) *string { return &s.Bounds }),
}

// mechanismsDoc says what each mechanism does.
func mechanismsDoc() string {
	var b strings.Builder
	for _, k := range thresholdout.Kinds() {
		allowed := ""
		if k.Unprotected {
			allowed = " (if the server allows it)"
		}
		fmt.Fprintf(&b, "%s%s: %s. ", k.Name, allowed, k.Says)
	}
	return b.String() + "Default: auto"
}

// taken says of a parameter which mechanisms take it.
func taken(param, doc string) string {
	return doc + ". Of " + strings.Join(thresholdout.Takers(param), ", ")
}

func text(name, doc string, field func(*holdout.Settings) *string) setting {
	return setting{name: name, doc: doc, kind: "string", set: func(s *holdout.Settings, v string) bool {
		*field(s) = v
		return true
	}}
}

var (
	decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$|^-?\.[0-9]+([eE][+-]?[0-9]+)?$`)
	whole   = regexp.MustCompile(`^-?[0-9]+$`)
)

// decimalNumber reads decimal numbers only: strconv also knows hexadecimal ones, infinities and NaN.
func decimalNumber(name, doc string, field func(*holdout.Settings) *float64) setting {
	return setting{name: name, doc: doc, kind: "number", set: func(s *holdout.Settings, v string) bool {
		f, err := strconv.ParseFloat(v, 64)
		*field(s) = f
		return err == nil && decimal.MatchString(v)
	}}
}

// fractionOrNone is a decimal number that can be 0.
func fractionOrNone(name, doc string, field func(*holdout.Settings) **float64) setting {
	s := decimalNumber(name, doc, func(s *holdout.Settings) *float64 {
		*field(s) = new(float64)
		return *field(s)
	})
	s.zero = true
	return s
}

func integer(name, doc string, field func(*holdout.Settings) *int64) setting {
	return setting{name: name, doc: doc, kind: "integer", set: func(s *holdout.Settings, v string) bool {
		i, err := strconv.ParseInt(v, 10, 64)
		*field(s) = i
		return err == nil && whole.MatchString(v)
	}}
}

// dryRun is the parameter of an upload of which nothing is made.
const dryRun = "dry_run"

// readUpload reads the parameters of an upload: its settings, and whether it is a dry run.
func readUpload(rawQuery string) (set holdout.Settings, dry bool, err error) {
	values, err := url.ParseQuery(rawQuery)
	if given := values[dryRun]; err == nil && len(given) > 0 {
		if len(given) > 1 || given[0] != "true" && given[0] != "false" {
			p := problem(classes[holdout.Invalid], "%s: must be true or false, once", dryRun)
			p.Errors = []Violation{{Parameter: dryRun, Detail: "must be true or false, once"}}
			return set, false, p
		}
		dry = given[0] == "true"
		values.Del(dryRun)
		rawQuery = values.Encode()
	}
	set, err = readSettings(rawQuery)
	return set, dry, err
}

// readSettings reads the parameters of an upload strictly: each known, once, not empty, and of its kind. A zero is
// refused too where it would mean "not given".
func readSettings(rawQuery string) (holdout.Settings, error) {
	var s holdout.Settings
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return s, problem(classes[holdout.Malformed], "the parameters after ? are badly escaped")
	}
	names := make([]string, len(settings), len(settings)+1)
	for i, p := range settings {
		names[i] = p.name
	}
	names = append(names, dryRun)
	var found []Violation
	for name := range values {
		if !slices.Contains(names, name) {
			found = append(found, Violation{Parameter: name, Detail: "unknown parameter; there are " + strings.Join(names, ", "), Suggestion: nearest.Name(name, names)})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.Parameter, b.Parameter) })
	for _, p := range settings {
		given := values[p.name]
		switch {
		case len(given) == 0:
		case len(given) > 1:
			found = append(found, Violation{Parameter: p.name, Detail: "is given more than once"})
		case given[0] == "":
			found = append(found, Violation{Parameter: p.name, Detail: "is empty; leave it out for the default"})
		case !p.set(&s, given[0]):
			found = append(found, Violation{Parameter: p.name, Detail: "must be " + kindNames[p.kind]})
		case p.kind != "string" && !p.zero && isZero(given[0]):
			found = append(found, Violation{Parameter: p.name, Detail: "must not be zero; leave it out for the default"})
		}
	}
	if len(found) > 0 {
		detail := found[0].Parameter + ": " + found[0].Detail
		if found[0].Suggestion != "" {
			detail += "; did you mean " + found[0].Suggestion + "?"
		}
		p := problem(classes[holdout.Invalid], "%s", detail)
		p.Errors = found
		return s, p
	}
	return s, nil
}

var kindNames = map[string]string{"integer": "a whole number", "number": "a number"}

func isZero(number string) bool {
	f, _ := strconv.ParseFloat(number, 64)
	return f == 0
}

// schema is what the document says of a setting's value: as much as readSettings refuses.
func (p setting) schema() *huma.Schema {
	one, longest := 1, holdout.MaxNameLength
	s := &huma.Schema{Type: p.kind}
	switch {
	case p.name == "name":
		s.MinLength, s.MaxLength, s.Pattern = &one, &longest, `^[^\x00-\x1f\x7f]*$`
	case p.kind == "string":
		s.MinLength = &one
	case p.zero:
		s.Minimum, s.Format = number(0), "double"
	case p.kind == "integer":
		s.Minimum, s.Format = number(1), "int64"
	default:
		s.ExclusiveMinimum, s.Format = number(0), "double"
	}
	return s
}

func (a *API) registerUpload() {
	parameters := append(uploadParameters(), &huma.Param{
		Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: "string"},
		Description: "1 to 255 visible ASCII characters; the same key for another table or other settings is 422",
	})
	part := &huma.Schema{Type: "string", Format: "binary"}
	a.raw(huma.Operation{
		OperationID: createHoldout, Method: http.MethodPost, Path: "/v1/holdouts", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Upload a table and make a holdout of it",
		Description: "The body is the Parquet file, streamed (`curl -T f.parquet -X POST`, `requests.post(data=open(f, 'rb'), params={…})`). " +
			"As multipart/form-data it is the part `table`, or with split=given the parts `training` and `holdout`, and perhaps `check`. With path= there is none. Before the first question the same table may be created again with other settings, and the new holdout replaces the old one; " +
			"once its parts or an explanation were shown, only with the same split. After the first question it is refused (409 `holdout-exists`, whose member `reason` says why). Admin only.",
		Parameters: parameters, Middlewares: huma.Middlewares{a.mustBeAdmin},
		RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{
			parquetType: {Schema: part},
			"multipart/form-data": {Schema: &huma.Schema{
				Type: "object", Properties: map[string]*huma.Schema{"table": part, "training": part, "holdout": part, "check": part},
			}},
		}},
		Responses: map[string]*huma.Response{"200": {
			Description: "The card of a dry run: of a draft, without an id",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(holdout.Card{})}},
		}, "201": {
			Description: "The card of the new holdout",
			Headers: map[string]*huma.Param{
				"Location":            {Description: "the path of the holdout", Schema: &huma.Schema{Type: "string"}},
				"Idempotent-Replayed": {Description: "true where the holdout was made by an earlier request with this Idempotency-Key", Schema: &huma.Schema{Type: "string"}},
			},
			Content: map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(holdout.Card{})}},
		}},
	}, a.create)
}

// create reads nothing of the body before everything else about the request is known to be right, so that a client that
// sent Expect: 100-continue need not send it.
func (a *API) create(c *gin.Context) error {
	set, dry, err := readUpload(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(c.Request.Header)
	if err != nil {
		return err
	}
	if limit := a.asked.UploadBytes; c.Request.ContentLength > limit+multipartSlack {
		return bodyProblem(&http.MaxBytesError{Limit: limit})
	}
	body := newUploadBody(c, a.limits, a.asked.UploadBytes)
	parts := body.parts
	if set.Path != "" {
		parts = body.none
	}
	up, err := parts(c.Request)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(c.Request.Context(), a.asked.Wait)
	defer cancel()
	select {
	case a.uploads <- struct{}{}:
		defer func() { <-a.uploads }()
	case <-wait.Done():
		return &holdout.Error{Kind: holdout.Busy, RetryAfter: a.asked.Wait,
			Detail: fmt.Sprintf("%d uploads are under way, and this one's turn did not come in %v; send it again later", cap(a.uploads), a.asked.Wait)}
	}
	a.metrics.uploading.Inc()
	defer a.metrics.uploading.Dec()
	var card holdout.Card
	var replayed bool
	if dry {
		card, err = a.service.DryRun(c.Request.Context(), caller(c.Request.Context()), set, up)
	} else {
		card, replayed, err = a.service.Create(c.Request.Context(), caller(c.Request.Context()), set, up, key)
	}
	if err != nil {
		if body.failure != nil {
			return body.failure // what went wrong with the body explains what went wrong with the file
		}
		return err
	}
	if replayed {
		c.Header("Idempotent-Replayed", "true")
	}
	reply, err := marshal(card)
	if err != nil {
		return err
	}
	if dry {
		c.Data(http.StatusOK, "application/json", reply)
		return nil
	}
	c.Header("Location", "/v1/holdouts/"+card.ID)
	c.Data(http.StatusCreated, "application/json", reply)
	return nil
}

// multipartSlack is what boundaries and part headers may add to the file.
const multipartSlack = 64 << 10

// An uploadBody is the body of an upload, which may take long but must go on: each read has UploadIdle to bring
// something, all of them together UploadTime.
type uploadBody struct {
	body    io.Reader
	control *http.ResponseController
	idle    time.Duration
	until   time.Time
	failure *Problem // why reading stopped before the end
}

func newUploadBody(c *gin.Context, l Limits, most int64) *uploadBody {
	return &uploadBody{
		body:    http.MaxBytesReader(c.Writer, c.Request.Body, most+multipartSlack),
		control: http.NewResponseController(c.Writer),
		idle:    l.UploadIdle,
		until:   time.Now().Add(l.UploadTime),
	}
}

func (u *uploadBody) Read(b []byte) (int, error) {
	deadline := time.Now().Add(u.idle)
	if deadline.After(u.until) {
		deadline = u.until
	}
	u.control.SetReadDeadline(deadline)
	n, err := u.body.Read(b)
	switch {
	case err == io.EOF:
		// The server goes on reading to see whether the client is still there; that must not end at our deadline.
		u.control.SetReadDeadline(time.Time{})
	case err != nil && u.failure == nil:
		u.failure = bodyProblem(err)
	}
	return n, err
}

// parts tells from the headers whether the body is a file or holds files.
func (u *uploadBody) parts(r *http.Request) (holdout.Upload, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, problem(unsupportedMedia, "the body must not be compressed; Parquet is by itself")
	}
	header := r.Header.Get("Content-Type")
	if header == "" {
		return holdout.SingleUpload(u), nil
	}
	media, parameters, err := mime.ParseMediaType(header)
	switch {
	case err != nil:
		return nil, problem(unsupportedMedia, "the header Content-Type cannot be read")
	case media == "multipart/form-data" && parameters["boundary"] == "":
		return nil, problem(unsupportedMedia, "multipart/form-data needs a boundary")
	case media == "multipart/form-data":
		return u.multipart(multipart.NewReader(u, parameters["boundary"])), nil
	case media == "application/json" || strings.HasPrefix(media, "text/") || strings.HasPrefix(media, "multipart/"):
		return nil, problem(unsupportedMedia, "the body must be a Parquet file (%s), or multipart/form-data with the part table, or training and holdout, and perhaps check", parquetType)
	}
	return holdout.SingleUpload(u), nil
}

// none is the upload of a table that is there already.
func (u *uploadBody) none(*http.Request) (holdout.Upload, error) {
	if n, _ := io.ReadFull(u, make([]byte, 1)); n > 0 {
		return nil, invalid("path", "", "names the table; send no body beside it")
	}
	return func() (string, io.Reader, error) { return "", nil, io.EOF }, nil
}

// multipart yields the parts table, training, holdout and check in the order that they come, each once.
func (u *uploadBody) multipart(parts *multipart.Reader) holdout.Upload {
	seen := map[string]bool{}
	fail := func(p *Problem) (string, io.Reader, error) {
		u.failure = p
		return "", nil, p
	}
	return func() (string, io.Reader, error) {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			io.Copy(io.Discard, u) // what follows the last boundary; MaxBytesReader bounds it
			return "", nil, io.EOF
		}
		if err != nil {
			if u.failure != nil {
				return fail(u.failure)
			}
			return fail(problem(classes[holdout.Malformed], "the multipart body cannot be read"))
		}
		name := part.FormName()
		switch {
		case name != "table" && name != "training" && name != "holdout" && name != "check":
			return fail(invalid(name, "", "unknown part; there are table, or training, holdout and check; settings are parameters of the URL"))
		case seen[name]:
			return fail(invalid(name, "", "the part %s comes twice", name))
		}
		seen[name] = true
		return name, part, nil
	}
}
