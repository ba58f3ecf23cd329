package soak

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Sample is what one process said of itself at one time.
type Sample struct {
	Server int                // which of them
	Life   int                // how often it had been started
	At     time.Duration      // since the run began
	Values map[string]float64 // by the name of the measure
}

// A Measure is something that must not grow with time.
type Measure struct {
	Name   string  // of the report
	Metric string  // of /metrics
	Unit   float64 // what one of the report's units is in the metric's
	Slack  float64 // growth over the run that is let pass, in the report's units: what a cache or a collector moves by itself
}

// Measures are those of a process. Slack is one twentieth of the level where that is more. The server keeps what parts said to answers of the history, up
// to 16 MiB (holdout.maxReferences), which takes some 65,000 answers to fill; the collector lets a heap grow to twice what is live. So a run of minutes
// finds a leak of some hundred bytes an answer, and one of hours a leak of a few bytes.
var Measures = []Measure{
	{"memory, MiB", "process_resident_memory_bytes", 1 << 20, 48},
	{"heap, MiB", "go_memstats_heap_alloc_bytes", 1 << 20, 32},
	{"goroutines", "go_goroutines", 1, 8},
	{"open files", "process_open_fds", 1, 8},
}

const (
	trendBlocks   = 20   // means of consecutive samples are nearly independent where samples are not
	leastBlocks   = 8    // fewer say nothing of a slope
	trendWarm     = 0.25 // of a process's life is left out: caches fill
	trendAlarm    = 1e-3 // the probability that a level measure is said to grow, by each of the two one-sided limits
	relativeSlack = 0.05
)

// A Trend is the slope of a measure, and what follows from it.
type Trend struct {
	Measure string  `json:"measure"`
	Server  int     `json:"server"`
	Level   float64 `json:"level"`   // the mean
	Growth  float64 `json:"growth"`  // by the fitted line, over the time that is looked at
	Error   float64 `json:"error"`   // the standard error of growth
	Slack   float64 `json:"slack"`   // growth that is let pass
	Seconds float64 `json:"seconds"` // that are looked at
	Verdict string  `json:"verdict"` // flat, grows, or undecided
}

// Verdicts of a trend. With the confidence 1 - trendAlarm, growth is below the slack (flat) or above it (grows).
const (
	Flat      = "flat"
	Grows     = "grows"
	Undecided = "undecided: too short or too noisy"
)

// trendOf fits a line to the samples of one measure in the longest life of one process. Samples of a process are not independent, because a
// collector makes teeth: they are averaged in blocks first, and the line is fitted to the blocks' means by least squares. The limits of the
// slope are Student's.
func trendOf(m Measure, server int, samples []Sample) Trend {
	samples = longestLife(server, samples)
	t := Trend{Measure: m.Name, Server: server, Verdict: Undecided}
	warm := int(trendWarm * float64(len(samples)))
	samples = samples[warm:]
	blocks := min(trendBlocks, len(samples)/2)
	if blocks < leastBlocks {
		return t
	}
	x, y := make([]float64, blocks), make([]float64, blocks)
	for b := range blocks {
		from, to := b*len(samples)/blocks, (b+1)*len(samples)/blocks
		for _, s := range samples[from:to] {
			x[b] += s.At.Seconds() / float64(to-from)
			y[b] += s.Values[m.Metric] / m.Unit / float64(to-from)
		}
		t.Level += y[b] / float64(blocks)
	}
	t.Seconds = (samples[len(samples)-1].At - samples[0].At).Seconds()
	slope, err := line(x, y)
	t.Growth, t.Error = slope*t.Seconds, err*t.Seconds
	t.Slack = max(m.Slack, relativeSlack*t.Level)
	reach := distuv.StudentsT{Sigma: 1, Nu: float64(blocks - 2)}.Quantile(1-trendAlarm) * t.Error
	switch {
	case t.Growth-reach > t.Slack:
		t.Verdict = Grows
	case t.Growth+reach <= t.Slack:
		t.Verdict = Flat
	}
	return t
}

// longestLife keeps one server's samples between two of its starts: the life with the most of them.
func longestLife(server int, samples []Sample) (longest []Sample) {
	lives := map[int][]Sample{}
	for _, s := range samples {
		if s.Server != server {
			continue
		}
		lives[s.Life] = append(lives[s.Life], s)
		if len(lives[s.Life]) > len(longest) {
			longest = lives[s.Life]
		}
	}
	return longest
}

// line is the slope of the least-squares line through points, and its standard error.
func line(x, y []float64) (slope, standardError float64) {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var xx, xy, rest float64
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	slope = xy / xx
	for i := range x {
		r := y[i] - my - slope*(x[i]-mx)
		rest += r * r
	}
	return slope, math.Sqrt(rest / (n - 2) / xx)
}
