package analysts

import (
	"fmt"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Rival is a mechanism with the strongest attack on it that we know.
type Rival struct {
	Name    string // of the mechanism
	Attack  string
	Largest bool // what limits it is the largest of k errors of one scale, not the attack's last answer alone
	// Spec asks for a holdout of n units that answers k questions, all of them from the holdout: noise is planned for them at the default confidence.
	Spec func(n, k int64) thresholdout.Spec
	// Play is the attack on a holdout with this guarantee.
	Play func(p thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error
}

// Rivals are the mechanisms that answer any question.
var Rivals = []Rival{
	{"naive", "single-adaptive", false,
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Naive, N: n, Questions: k}
		},
		func(thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error {
			return SingleAdaptive(LogOdds)
		}},
	{"split", "single-adaptive", true,
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Split, N: n, Questions: k}
		},
		func(thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error {
			return SingleAdaptive(LogOdds)
		}},
	{"gaussian", "single-adaptive, discounted", true,
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, Questions: k}
		},
		func(p thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error {
			return SingleAdaptive(Discounted(p, ScheduledNoise(p)))
		}},
	{"thresholdout", "knows training, discounted", true,
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.Thresholdout, N: n, Training: n, Questions: k, Tokens: k}
		},
		func(p thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error {
			return KnowsTraining(Discounted(p, ConstantNoise(p)))
		}},
	{"guess_and_check", "knows training", false,
		func(n, k int64) thresholdout.Spec {
			return thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: k, Tokens: k}
		},
		func(p thresholdout.Guarantee) func(Oracle, uint64, int64, int64) error {
			return KnowsTraining(Discounted(p, ConstantNoise(p)))
		}},
}

// Game is one run of the attack with k questions.
func (r Rival) Game(n, k int64, seed uint64) (Game, error) {
	p, err := thresholdout.Plan(r.Spec(n, k))
	if err != nil {
		return Game{}, fmt.Errorf("experiments: %s, n %d, k %d: %w", r.Name, n, k, err)
	}
	game, err := Play(Analyst{Name: r.Attack, Play: r.Play(p)}, NewHoldout(p, run.SeedOf(seed, 1)), run.SeedOf(seed, 2), n, p.Training)
	if err != nil {
		return Game{}, fmt.Errorf("experiments: %s, n %d, k %d: %w", r.Name, n, k, err)
	}
	return game, nil
}
