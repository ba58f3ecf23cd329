package experiments

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot"
)

// Experiment is one of All.
type Experiment struct {
	Name  string
	Short string // one line for a list
	// Run measures. On an error, that of a cancelled context included, the result has what was finished until then.
	Run func(ctx context.Context, o Options) (Result, error)
}

// All experiments, in the order of a list.
var All = []Experiment{
	{"coverage", "how often any interval misses its target, for every analyst and mechanism", Coverage},
	{"adaptivity", "how many adaptive questions a holdout of n units answers within a tolerance", Adaptivity},
}

// Options of an experiment.
type Options struct {
	Seed        uint64
	Repetitions int  // 0 is the experiment's own number
	Quick       bool // a smaller grid
	Progress    func(done, total int)
}

// Row is one measured number.
type Row struct {
	Condition   string  `json:"condition"` // who asks
	Method      string  `json:"method"`    // mechanism
	N           int64   `json:"n"`
	K           int64   `json:"k"`
	Confidence  float64 `json:"confidence,omitempty"`
	Set         string  `json:"set"` // what is measured
	Mean        float64 `json:"mean"`
	SD          float64 `json:"sd"`
	Low         float64 `json:"low"` // 95% interval of the mean
	High        float64 `json:"high"`
	Repetitions int     `json:"repetitions"`
}

// Fit is an exponent: the slope of ln y on ln x, with a 95% interval.
type Fit struct {
	Method   string  `json:"method"`
	Of       string  `json:"of"` // y
	Exponent float64 `json:"exponent"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Points   int     `json:"points"`
}

// Result is what an experiment found.
type Result struct {
	Experiment string `json:"experiment"`
	Seed       uint64 `json:"seed"`
	Quick      bool   `json:"quick"`
	Complete   bool   `json:"complete"` // false after an interruption
	Rows       []Row  `json:"rows"`
	Fits       []Fit  `json:"fits,omitempty"`

	Summary [][]string                 `json:"-"` // a table for a person, headings first
	Figure  func() (*plot.Plot, error) `json:"-"` // nil where nothing was finished
}

// parallel calls work for each index from 0, on all cores, until all is done or ctx is.
func parallel(ctx context.Context, count int, done func(), work func(ctx context.Context, index int) error) error {
	parent := ctx
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range count {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := work(ctx, i); err != nil {
				return err
			}
			done()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return parent.Err() // that of ctx is set by Wait
}
