package certify

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// Certified accuracy against radius as the papers draw it: at the noises, draws and error probabilities of Cohen et al. (arXiv 1902.02918, section 4, their code's
// defaults) and of PixelDP (arXiv 1802.03471, its code's settings for MNIST). Other than theirs are the network, which is small, and MNIST's number of digits; and for MNIST
// a tenth of Cohen's draws. PixelDP adds noise behind its first layer; here it is on the pixels.
const (
	cohenAlpha      = 0.001
	cohenDraws      = 100_000
	cohenMNISTDraws = 10_000
	cohenQuickDraws = 1000

	pixelDPEpsilon    = 1.
	pixelDPDelta      = 0.05
	pixelDPAlpha      = 0.05
	pixelDPDraws      = 2000
	pixelDPQuickDraws = 500
)

// Noises of Cohen et al., and PixelDP's attack bounds L: noise that makes a score (epsilon, delta)-private under moves of L.
var (
	cohenScales   = []float64{0.12, 0.25, 0.5, 1}
	pixelDPBounds = []float64{0.03, 0.1, 0.3, 1}
)

const (
	cohen   = "Cohen et al."
	pixelDP = "PixelDP"
)

// setting is one of a paper's.
type setting struct {
	paper string
	name  string // as in published.json
	noise certify.Noise
	draws int
	alpha float64 // of a certificate
	way   way
}

// settings of a set of digits, the noise growing within a paper.
func settings(set digitSet, quick bool) (all []setting) {
	draws, scales, bounds := set.cohenDraws, cohenScales, pixelDPBounds
	if quick {
		draws, scales, bounds = cohenQuickDraws, scales[1:3], bounds[1:2]
	}
	for _, s := range scales {
		all = append(all, setting{cohen, fmt.Sprintf("sigma %v", s), certify.Noise{Scale: s}, draws, cohenAlpha, way{false, certify.Smoothing, certify.ClopperPearson}})
	}
	for _, l := range bounds {
		scale := l * math.Sqrt(2*math.Log(1.25/pixelDPDelta)) / pixelDPEpsilon
		all = append(all, setting{pixelDP, fmt.Sprintf("L %v", l), certify.Noise{Scale: scale}, pixelDraws(quick), pixelDPAlpha, way{false, certify.PixelDP, certify.ClopperPearson}})
	}
	return all
}

// pixelDraws is how many draws PixelDP's settings have.
func pixelDraws(quick bool) int {
	if quick {
		return pixelDPQuickDraws
	}
	return pixelDPDraws
}

// digitSet is where digits are from.
type digitSet struct {
	name       string
	model      model
	training   int // digits to learn from, in each run
	cohenDraws int
	// split draws digits to learn from, and others; equal seeds draw alike.
	split func(seed uint64, size int) (training, others learn.Data, err error)
}

// mnistFlag names a directory with MNIST, which is no part of the program.
const mnistFlag = "mnist"

// digitSets are the program's own digits, and MNIST's where a directory is named.
func digitSets(ctx context.Context, o run.Options) ([]digitSet, error) {
	own := digitSet{"digits", model{"perceptron", perceptron(tables.DigitPixels), learn.Plain{Epochs: 1, Rate: 0.05, Momentum: 0.9}}, trainingDigits, cohenDraws, tables.SplitDigits}
	dir := o.Text(mnistFlag)
	if dir == "" {
		return []digitSet{own}, nil
	}
	training, others, err := tables.MNIST(ctx, dir)
	if err != nil {
		return nil, err
	}
	split := func(seed uint64, size int) (learn.Data, learn.Data, error) {
		r := rand.New(rand.NewPCG(seed, 0))
		return training.Subset(r.Perm(training.Len())[:size]), others.Subset(r.Perm(others.Len())), nil
	}
	return []digitSet{own, {"MNIST", model{"perceptron", perceptron(tables.MNISTPixels), learn.Plain{Epochs: 1, Rate: 0.01, Momentum: 0.9}}, 1500, cohenMNISTDraws, split}}, nil
}

// Sizes of this part of the experiment. A run has digits, a training and draws of its own: so that runs are independent, and their spread is all that there is.
const (
	publishedRuns   = 20
	quickRuns       = 24
	digitsEach      = 10 // that a run certifies, and attacks
	quickDigitsEach = 40 // that a quick run certifies, whose draws are few: it attacks the first of them
	publishedEpochs = 50
	quickTraining   = 300
	quickEpochs     = 20
)

// undefendedSetting of a set is the model that learns without noise, and predicts without.
const undefendedSetting = "undefended"

// attackedScale is Cohen's noise at which smoothed predictions are attacked beyond their radius, too.
const attackedScale = 0.5

// trial is what came of a run at one setting.
type trial struct {
	Radius    []float64 `json:"radius"` // of each digit: certified where the prediction is right, else 0; of an undefended model the smallest attack that succeeds
	Abstained int       `json:"abstained"`
	Largest   float64   `json:"largest"`  // radius, of right and wrong predictions
	Attacked  int       `json:"attacked"` // certified predictions, of the first digits
	Broken    int       `json:"broken"`   // of them, where another label is certified inside the radius
	Smallest  []float64 `json:"smallest"` // at attackedScale: of each of the first digits the smallest attack that succeeds, 0 where the prediction is wrong
}

// certifiedEach is how many digits a run certifies.
func certifiedEach(quick bool) int {
	if quick {
		return quickDigitsEach
	}
	return digitsEach
}

// publishedWork is a run.
type publishedWork struct {
	set   digitSet
	quick bool
	seed  uint64 // of the digits, the same for all settings
}

func (w publishedWork) digits() (training, others learn.Data, err error) {
	size := w.set.training
	if w.quick {
		size = quickTraining
	}
	training, others, err = w.set.split(w.seed, size)
	if err != nil {
		return training, others, err
	}
	first := make([]int, certifiedEach(w.quick))
	for i := range first {
		first[i] = i
	}
	return training, others.Subset(first), nil
}

// learn trains the set's network, in each epoch on the digits with fresh noise, or as they are where there is none.
func (w publishedWork) learn(ctx context.Context, training learn.Data, n certify.Noise, seed uint64) (*learn.Network, error) {
	s := noise.Seeded(seed)
	network, epochs := w.set.model.network(s), publishedEpochs
	if w.quick {
		epochs = quickEpochs
	}
	for epoch := range uint64(epochs) {
		noisy := training
		if n.Scale > 0 {
			noisy = noisyCopies(training, 1, n, seeds.Of(seed, 1, epoch))
		}
		if err := network.Train(ctx, noisy, w.set.model.plain, s); err != nil {
			return nil, err
		}
	}
	return network, nil
}

// at plays a run at one setting.
func (w publishedWork) at(ctx context.Context, at setting, seed uint64) (trial, error) {
	var out trial
	training, others, err := w.digits()
	if err != nil {
		return out, err
	}
	network, err := w.learn(ctx, training, at.noise, seed)
	if err != nil {
		return out, err
	}
	certificates := certify.Options{Noise: at.noise, Select: certify.DefaultSelect, Samples: at.draws, Alpha: at.alpha, Method: at.way.method, Bound: at.way.bound}
	smoother, err := certify.New(inBatches(network), certificates)
	if err != nil {
		return out, err
	}
	sure := digitWork{condition: condition{w.set.model, at.noise}, network: network, draws: insideDraws, alpha: sureAlpha}.options(judge(false), insideDraws)
	judging, err := certify.New(inBatches(network), sure)
	if err != nil {
		return out, err
	}
	attack, moved := newPGD(network, at.noise, seeds.Of(seed, 2)), make([]float64, others.Dim)
	var tally certify.Tally
	for i, label := range others.Y {
		if err := smoother.Tally(&tally, others.Row(i), seeds.Of(seed, 3, uint64(i))); err != nil {
			return out, err
		}
		c, err := certificates.Certify(&tally)
		if err != nil {
			return out, err
		}
		if at.noise.Scale == attackedScale && i < digitsEach {
			a := assault{Prediction: most(tally.Sums), Radius: c.Radius}
			if err := w.search(&a, network, at, others.Row(i), seeds.Of(seed, 5, uint64(i))); err != nil {
				return out, err
			}
			if a.Prediction != label {
				a.Smallest = 0
			}
			out.Smallest = append(out.Smallest, a.Smallest)
		}
		right := 0.
		switch {
		case c.Prediction == certify.Abstain:
			out.Abstained++
		case c.Prediction == label:
			right = c.Radius
		}
		out.Radius, out.Largest = append(out.Radius, right), max(out.Largest, c.Radius)
		if c.Prediction == certify.Abstain || i >= digitsEach {
			continue
		}
		out.Attacked++
		broken := false
		for try := range insideTries {
			attack.move(moved, others.Row(i), c.Prediction, inside*c.Radius)
			after, err := judging.Certify(moved, seeds.Of(seed, 4, uint64(i), uint64(try)))
			if err != nil {
				return out, err
			}
			broken = broken || after.Prediction != certify.Abstain && after.Prediction != c.Prediction
		}
		if broken {
			out.Broken++
		}
	}
	return out, nil
}

// search looks for the smallest attack beyond the radius that changes what is predicted most often.
func (w publishedWork) search(a *assault, network *learn.Network, at setting, x []float64, seed uint64) error {
	draws := min(searchDraws, at.draws)
	s, err := certify.New(inBatches(network), certify.Options{Noise: at.noise, Samples: draws})
	if err != nil {
		return err
	}
	attack, moved, tries := newPGD(network, at.noise, seed), make([]float64, len(x)), uint64(0)
	var tally certify.Tally
	a.Smallest, err = smallest(a.Radius, max(2*a.Radius, firstAttack*at.noise.Scale), largestAttack*at.noise.Scale, func(size float64) (bool, error) {
		attack.move(moved, x, a.Prediction, size)
		tries++
		err := s.Tally(&tally, moved, seeds.Of(seed, tries))
		return most(tally.Sums) != a.Prediction, err
	})
	return err
}

// sureAlpha is the probability with which the label after an attack is taken for another than it is: nothing beside a certificate's.
const sureAlpha = 1e-6

// undefended attacks the model that learns and predicts without noise.
func (w publishedWork) undefended(ctx context.Context, seed uint64) (trial, error) {
	var out trial
	training, others, err := w.digits()
	if err != nil {
		return out, err
	}
	network, err := w.learn(ctx, training, certify.Noise{}, seed)
	if err != nil {
		return out, err
	}
	for i, label := range others.Y[:digitsEach] {
		b, err := subject{family: certify.Gaussian}.attack(network, others.Row(i), label, seeds.Of(seed, 2, uint64(i)))
		if err != nil {
			return out, err
		}
		if b.Against.Prediction != label {
			b.Against.Smallest = 0
		}
		out.Radius = append(out.Radius, b.Against.Smallest)
	}
	return out, nil
}

// batchRows is how many draws go through a network together: as many as gonum multiplies in the calling goroutine.
const batchRows = 64

// inBatches is the network's labels, for one goroutine.
func inBatches(network *learn.Network) certify.Classifier {
	pass, dim, classes := network.NewPass(batchRows), network.Dim(), network.Classes()
	return certify.Classifier{Classes: classes, Labels: func(dst []int, x []float64) error {
		for from := 0; from < len(dst); from += batchRows {
			some := dst[from:min(from+batchRows, len(dst))]
			scores := pass.Scores(x[from*dim : (from+len(some))*dim])
			for i := range some {
				some[i] = learn.Predict(scores[i*classes : (i+1)*classes])
			}
		}
		return nil
	}}
}

// published are the trials of all sets: of each setting, and last of the undefended model.
type published struct {
	set    digitSet
	all    []setting
	trials [][]trial // by setting, then by run; the undefended model's are the last
}

// playPublished plays all settings of both sets.
func playPublished(ctx context.Context, o run.Options, runs int) (found []published, err error) {
	sets, err := digitSets(ctx, o)
	if err != nil {
		return nil, err
	}
	for s, set := range sets {
		all := settings(set, o.Quick)
		cells := len(all) + 1
		trials, finished, err := run.Repeat(ctx, o, "published settings, "+set.name, cells*runs, func(ctx context.Context, i int) (trial, error) {
			at, r := i%cells, i/cells
			w := publishedWork{set, o.Quick, seeds.Of(o.Seed, 7, uint64(s), uint64(r))}
			seed := seeds.Of(o.Seed, 7, uint64(s), uint64(r), uint64(at)+1)
			if at == len(all) {
				return w.undefended(ctx, seed)
			}
			return w.at(ctx, all[at], seed)
		})
		if err != nil {
			return found, err
		}
		found = append(found, published{set, all, run.Dealt(trials, finished, cells)})
	}
	return found, nil
}

//go:embed published.json
var publishedText []byte

// publishedStored is what published.py found at one setting.
type publishedStored struct {
	Quick    bool         `json:"quick"`
	Set      string       `json:"set"`
	Paper    string       `json:"paper"`
	Setting  string       `json:"setting"`
	Runs     int          `json:"runs"`
	Each     int          `json:"each"` // digits of a run
	Draws    int          `json:"draws"`
	Ceiling  float64      `json:"ceiling"` // radius if all draws agree
	Radius   run.Stored   `json:"radius"`
	Accuracy []run.Stored `json:"accuracy"` // at publishedSizes
}

func publishedReference(quick bool, set string, at setting) (publishedStored, error) {
	var all []publishedStored
	if err := json.Unmarshal(publishedText, &all); err != nil {
		return publishedStored{}, fmt.Errorf("experiments: published.json: %w", err)
	}
	for _, p := range all {
		if p.Quick == quick && p.Set == set && p.Paper == at.paper && p.Setting == at.name && p.Draws == at.draws && p.Each == certifiedEach(quick) && len(p.Accuracy) == len(publishedSizes) {
			p.Radius.Repetitions = p.Runs
			for i := range p.Accuracy {
				p.Accuracy[i].Repetitions = p.Runs
			}
			return p, nil
		}
	}
	return publishedStored{}, fmt.Errorf("experiments: published.json has no %s, %s, %s with %d draws", set, at.paper, at.name, at.draws)
}
