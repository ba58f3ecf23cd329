package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/queries/model"
)

// maxModelBytes bounds what is read of a model's file: the largest model that is taken is a few megabytes of JSON.
const maxModelBytes = 64 << 20

// certifyFlags are what the command was told.
type certifyFlags struct {
	model, noise, units, method, bound, of string
	url                                    string   // of a predictor, instead of a model
	classes, columns                       []string // of that predictor
	scale, alpha                           float64
	samples, rows                          int
	together                               bool
	fixed                                  []string
	threshold                              float64
	label                                  string
	sizes                                  []float64
	seed                                   uint64
	format                                 string
}

func certifyCommand() *cobra.Command {
	var f certifyFlags
	cmd := &cobra.Command{
		Use:   "certify FILE.parquet (--model MODEL.json | --url PREDICTOR)",
		Short: "Say how far a row can be moved without a model's prediction changing",
		Long: `Smooths a model by noise on the numbers that it reads, and says for every row of a Parquet file what the smoothed model
predicts and within which radius no change of these numbers makes it predict otherwise. It abstains where it can certify
nothing. The model is any of docs/MODELS.md, in JSON, that reads columns as they are: linear, softmax, trees, a small
network; docs/CERTIFY.md says what a certificate promises and how to choose the noise.

--url names a predictor of your own instead: it is posted {"columns": [...], "rows": [[...], ...]}, at most 1,000 noisy rows at once,
and answers {"labels": [...]}. --classes names all labels that it may answer with.

Gaussian noise certifies against changes in the L2 norm, Laplace noise in the L1 norm. Texts, truth values, nulls and the columns
named by --fixed are taken to stay as they are.`,
		Example: `  holdoutd certify patients.parquet --model model.json
  holdoutd certify patients.parquet --model model.json --label diagnosis --scale 0.5 --sizes 0,0.25,0.5
  holdoutd certify patients.parquet --url http://127.0.0.1:8000/predict --classes no,yes --label diagnosis
  holdoutd certify digits.parquet --model model.json --units raw --scale 4 --format csv > radii.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "", "file of the model, JSON")
	flags.StringVar(&f.url, "url", "", "address of a predictor that answers over HTTP, instead of a model")
	flags.StringSliceVar(&f.classes, "classes", nil, "all labels of the predictor at --url")
	flags.StringSliceVar(&f.columns, "columns", nil, "columns that are sent to the predictor at --url (default: all but that of --label)")
	flags.StringVar(&f.noise, "noise", "gaussian", "noise on each number: gaussian (L2 norm) or laplace (L1 norm)")
	flags.Float64Var(&f.scale, "scale", 0.25, "standard deviation of gaussian noise, scale of laplace noise: more certifies further and predicts less")
	flags.StringVar(&f.units, "units", "sd", "unit of --scale, --sizes and radii: sd (each column's standard deviation in the file) or raw (the columns' own)")
	flags.StringVar(&f.method, "certificate", "", "smoothing, two-sided, pixeldp or renyi (default: smoothing for two classes, two-sided for more)")
	flags.StringVar(&f.of, "of", "labels", "what is expected under noise: labels (the predicted class) or scores (its probability)")
	flags.StringVar(&f.bound, "bound", "", "clopper-pearson, hoeffding or empirical-bernstein (default: clopper-pearson for labels, empirical-bernstein for scores)")
	flags.IntVar(&f.samples, "samples", certify.DefaultSamples, "draws of noise for each row")
	flags.Float64Var(&f.alpha, "alpha", certify.DefaultAlpha, "probability that a row's certificate is wrong")
	flags.BoolVar(&f.together, "together", false, "--alpha is for all rows together")
	flags.IntVar(&f.rows, "rows", 0, "certify the first rows only (default: all)")
	flags.StringSliceVar(&f.fixed, "fixed", nil, "columns that nobody can change")
	flags.Float64Var(&f.threshold, "threshold", 0.5, "a model with one output that has no threshold of its own predicts 1 above it (must be named where the output is no probability)")
	flags.StringVar(&f.label, "label", "", "column of true labels: says certified accuracy too")
	flags.Float64SliceVar(&f.sizes, "sizes", []float64{0, 0.1, 0.25, 0.5, 1}, "attack sizes to say certified accuracy at")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the noise, which whoever made the rows must not have known (default: drawn, and printed)")
	flags.StringVar(&f.format, "format", "table", "table, csv or json")
	return cmd
}

func (f *certifyFlags) run(cmd *cobra.Command, file string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	var m *model.Model
	if f.url == "" {
		if m, err = readModel(f.model); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	table, closeTable, err := decodeTable(ctx, file)
	if err != nil {
		return err
	}
	defer closeTable()
	var s *subject
	if m == nil {
		s, err = f.remoteSubject(ctx, table)
	} else {
		s, err = f.subject(m, table, cmd.Flags().Changed("threshold"))
	}
	if err != nil {
		return err
	}
	if err := f.complete(&o, s, cmd.Flags().Changed("seed")); err != nil {
		return err
	}
	report, finish := progress(cmd.ErrOrStderr(), "certify")
	done, finished := 0, make([]bool, s.rows)
	certificates, err := certify.Batch(ctx, s.classifier, o, s, f.seed, func(row int, _ certify.Certificate) {
		done++
		finished[row] = true
		report("rows", done, s.rows)
	})
	finish()
	if err != nil && !errors.Is(err, context.Canceled) {
		return plainCertify(err)
	}
	unsmoothed, failed := s.unsmoothed(finished)
	if failed != nil {
		return plainCertify(failed)
	}
	result := f.result(filepath.Base(file), o, s, certificates, unsmoothed, finished)
	if printing := result.print(cmd.OutOrStdout(), f.format); printing != nil {
		return printing
	}
	if err != nil {
		return fmt.Errorf("interrupted: %s of %s rows are finished, the same --seed %d certifies them the same", thousands(int64(done)), thousands(int64(s.rows)), f.seed)
	}
	return nil
}

// options are what flags say of a certificate before the model and the table are known.
func (f *certifyFlags) options() (o certify.Options, err error) {
	o = certify.Options{Noise: certify.Noise{Scale: f.scale}, Samples: f.samples, Alpha: f.alpha}
	oneOf := func(flag, value string, known ...string) {
		for _, k := range known {
			if value == k {
				return
			}
		}
		if err == nil {
			err = misuse("--%s is %s, not %q", flag, strings.Join(known[:len(known)-1], ", ")+" or "+known[len(known)-1], value)
		}
	}
	oneOf("noise", f.noise, "gaussian", "laplace")
	oneOf("units", f.units, "sd", "raw")
	oneOf("of", f.of, "labels", "scores")
	oneOf("format", f.format, "table", "csv", "json")
	if f.method != "" {
		oneOf("certificate", f.method, "smoothing", "two-sided", "pixeldp", "renyi")
	}
	if f.bound == "" {
		f.bound = certify.ClopperPearson.String()
		if f.of == "scores" {
			f.bound = certify.EmpiricalBernstein.String()
		}
	}
	oneOf("bound", f.bound, "clopper-pearson", "hoeffding", "empirical-bernstein")
	switch {
	case err != nil:
		return o, err
	case f.model == "" && f.url == "":
		return o, misuse("name the model: --model model.json, or a predictor: --url http://127.0.0.1:8000/predict")
	case f.model != "" && f.url != "":
		return o, misuse("--model and --url are two predictors: name one")
	case f.url == "" && (f.classes != nil || f.columns != nil):
		return o, misuse("--classes and --columns are of a predictor at --url; a model has its own")
	case f.samples < 2 || f.samples > certify.MaxSamples:
		return o, misuse("--samples is a number from 2 to %s", thousands(certify.MaxSamples))
	case !(f.alpha > 0 && f.alpha < 0.5):
		return o, misuse("--alpha is a probability between 0 and 0.5, such as 0.001")
	case !(f.scale > 0) || f.scale > maxScale:
		return o, misuse("--scale is a positive number")
	case f.rows < 0:
		return o, misuse("--rows is a positive number")
	case f.of == "scores" && f.bound == "clopper-pearson":
		return o, misuse("--bound clopper-pearson counts labels; for --of scores it is hoeffding or empirical-bernstein")
	case f.noise == "laplace" && f.method == "renyi":
		return o, misuse("--certificate renyi is for --noise gaussian")
	}
	for _, size := range f.sizes {
		if !(size >= 0) {
			return o, misuse("--sizes are numbers from 0 up, not %v", size)
		}
	}
	if o.Noise.Family, err = certify.ParseFamily(f.noise); err != nil {
		return o, err
	}
	o.Bound, err = certify.ParseBound(f.bound)
	return o, err
}

// maxScale keeps noisy numbers far from where they overflow.
const maxScale = 1e100

// complete sets what depends on the model and the table: certificate, alpha of a row, widths of the noise, seed.
func (f *certifyFlags) complete(o *certify.Options, s *subject, seeded bool) error {
	if f.method == "" {
		f.method = certify.TwoSided.String()
		if len(s.names) == 2 {
			f.method = certify.Smoothing.String()
		}
	}
	var err error
	if o.Method, err = certify.ParseMethod(f.method); err != nil {
		return err
	}
	if f.together {
		o.Alpha /= float64(s.rows)
	}
	if f.units == "sd" {
		if o.Noise.Widths, err = s.deviations(); err != nil {
			return err
		}
	}
	if !seeded {
		f.seed = rand.Uint64() >> 11 // every JSON reader holds 53 bits
	}
	return nil
}

// plainCertify leaves out the package's name.
func plainCertify(err error) error {
	if errors.Is(err, certify.ErrScores) {
		return fmt.Errorf("%w; --of labels needs no probabilities", err)
	}
	if errors.Is(err, certify.ErrLabel) {
		return fmt.Errorf("%w: the model's scores are too large for numbers", err)
	}
	if errors.Is(err, certify.ErrOptions) {
		return errors.New(strings.TrimPrefix(err.Error(), certify.ErrOptions.Error()+": "))
	}
	return err
}

func readModel(path string) (*model.Model, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the model %s: %w", path, unwrapPath(err))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxModelBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the model %s: %w", path, unwrapPath(err))
	}
	if len(text) > maxModelBytes {
		return nil, fmt.Errorf("the model %s has more than %d MiB", path, maxModelBytes>>20)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil && members["features"] != nil {
		return nil, fmt.Errorf("%s computes features of the columns, through which noise on a column cannot be followed: certify a model of the columns themselves", path)
	}
	m, err := model.Parse(text)
	var wrong *model.Error
	if errors.As(err, &wrong) {
		var lines []string
		for _, v := range wrong.Violations {
			line := strings.TrimPrefix(v.Pointer+" ", " ") + v.Detail
			if v.Meant != "" {
				line += "; did you mean " + v.Meant + "?"
			}
			lines = append(lines, line)
		}
		return nil, fmt.Errorf("%s is not a model (docs/MODELS.md): %s", path, strings.Join(lines, "; "))
	}
	return m, err
}

// decodeTable reads a Parquet file as the server does, in a process with limits of its own.
func decodeTable(ctx context.Context, path string) (*dataset.Table, func(), error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", path, unwrapPath(err))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("this program's own file cannot be found, which is needed to decode Parquet: %w", err)
	}
	dir, err := os.MkdirTemp("", "holdoutd-certify-")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	remove := func() { os.RemoveAll(dir) }
	columns := filepath.Join(dir, "table")
	if _, err := ingest.Run(ctx, []string{self, decodeCommand}, path, columns, ingest.Limits{}); err != nil {
		remove()
		var refused *ingest.Error
		if errors.As(err, &refused) && refused.Kind != ingest.Internal {
			return nil, nil, fmt.Errorf("%s: %s", path, refused.Detail)
		}
		return nil, nil, err
	}
	table, err := dataset.Open(columns)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return table, func() {
		table.Close()
		remove()
	}, nil
}
