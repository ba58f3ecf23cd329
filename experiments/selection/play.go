package selection

import (
	"math"
	"sync"
)

// A Round is one step of a played experiment: the classifier has one column more, and the analyst asks how good it is.
type Round struct {
	Columns  int        `json:"columns" doc:"of the classifier"`
	Standard Accuracies `json:"standard" doc:"where the holdout tells its own numbers"`
	Through  Accuracies `json:"thresholdout" doc:"where Thresholdout tells them"`
}

// Accuracies are those of one classifier, as shares of rows, to four digits.
type Accuracies struct {
	Training float64 `json:"training" doc:"in the training part"`
	Told     float64 `json:"told" doc:"in the holdout, as told: what the analyst believes"`
	Fresh    float64 `json:"fresh" doc:"in fresh data: what is true"`
}

// PlayedSize is the number of rows and of columns of [Play]: the picture is that of the published size, and a play takes a tenth of a second.
const PlayedSize = 4000

// PlayedRounds are the rounds of [Play]: the published figure's largest classifier has a twentieth of the columns.
const PlayedRounds = PlayedSize / 20

var players = sync.Pool{New: func() any { return NewSampler(playedShape(false)) }}

func playedShape(withSignal bool) Shape {
	s := NewShape(PlayedSize, PlayedSize, withSignal)
	s.Ks = make([]int, PlayedRounds)
	for i := range s.Ks {
		s.Ks[i] = i + 1
	}
	return s
}

// Play is one repetition of both methods from one seed: the columns of training part and holdout are the same for both. The classifier grows by
// one column each round. What the analyst sees is drawn exactly, instead of the data.
func Play(seed uint64, withSignal bool) []Round {
	s := players.Get().(*Sampler)
	defer players.Put(s)
	s.size = playedShape(withSignal)
	standard, through := s.Standard(seed), s.Thresholdout(seed)
	rounds := make([]Round, PlayedRounds)
	for i := range rounds {
		rounds[i] = Round{i + 1, standard.at(i), through.at(i)}
	}
	return rounds
}

func (p Path) at(i int) Accuracies {
	return Accuracies{fourDigits(p.Training[i]), fourDigits(p.Told[i]), fourDigits(p.Fresh[i])}
}

func fourDigits(x float64) float64 { return math.Round(1e4*x) / 1e4 }
