package thresholdout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// StateVersion is the version of the stored form of a state.
const StateVersion = 1

// State is what a guarantee remembers between questions: what is spent, and what its mechanism remembers beside. The zero State is that of
// a new holdout. States are comparable, and equal states have equal JSON.
type State struct {
	Questions int64 // answered so far
	Tokens    int64 // spent so far; also the epoch of the threshold noise

	// Rounds are those that are over, and InRound is how many questions the present one has had.
	Rounds  int64
	InRound int64

	Closing Closing
	Retired bool // all is spent, and the rows may be had

	Memory Memory
}

// Closing is the final report of a holdout (closing.go); the zero Closing is none.
type Closing struct {
	Before int64 `json:"before"`           // questions that were spent before it
	Size   int64 `json:"size"`             // its questions, all that it has, asked or not yet
	Sealed bool  `json:"sealed,omitempty"` // it is read by the sealed units alone
}

// Spent is what a state has spent. A round is paid by its first question.
func (s State) Spent() Amounts {
	a := Amounts{Questions: s.Questions, Tokens: s.Tokens, Rounds: s.Rounds}
	if s.InRound > 0 {
		a.Rounds++
	}
	return a
}

// storedState is the stored form of a State.
type storedState struct {
	Version   int             `json:"version"`
	Questions int64           `json:"questions"`
	Tokens    int64           `json:"tokens,omitempty"`
	Rounds    int64           `json:"rounds,omitempty"`
	InRound   int64           `json:"in_round,omitempty"`
	Closing   *Closing        `json:"closing,omitempty"`
	Retired   bool            `json:"retired,omitempty"`
	Memory    json.RawMessage `json:"memory,omitempty"`
}

// MarshalJSON writes the stored form; [Guarantee.ReadState] reads it.
func (s State) MarshalJSON() ([]byte, error) {
	stored := storedState{Version: StateVersion, Questions: s.Questions, Tokens: s.Tokens, Rounds: s.Rounds, InRound: s.InRound, Retired: s.Retired}
	if s.Closing != (Closing{}) {
		stored.Closing = &s.Closing
	}
	if s.Memory != nil {
		memory, err := json.Marshal(s.Memory)
		if err != nil {
			return nil, fmt.Errorf("thresholdout: memory: %w", err)
		}
		stored.Memory = memory
	}
	return json.Marshal(stored)
}

// UnmarshalJSON refuses: what a mechanism remembers can be read by its guarantee alone.
func (s *State) UnmarshalJSON([]byte) error {
	return errors.New("thresholdout: a state is read by Guarantee.ReadState")
}

// ReadState reads a stored state of this guarantee. It refuses a version that it does not know, and what no state of the guarantee is.
func (g Guarantee) ReadState(text []byte) (State, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return State{}, fmt.Errorf("thresholdout: state: %w", err)
	}
	if version.Version != StateVersion {
		return State{}, &VersionError{What: "the mechanism's state", Got: version.Version, Known: StateVersion}
	}
	var stored storedState
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&stored); err != nil {
		return State{}, fmt.Errorf("thresholdout: state: %w", err)
	}
	s := State{Questions: stored.Questions, Tokens: stored.Tokens, Rounds: stored.Rounds, InRound: stored.InRound, Retired: stored.Retired}
	if stored.Closing != nil {
		s.Closing = *stored.Closing
	}
	if err := g.holds(s); err != nil {
		return State{}, err
	}
	if stored.Memory == nil {
		return s, nil
	}
	m, ok := g.own.(Remembers)
	if !ok {
		return State{}, fmt.Errorf("thresholdout: a state with a memory, which the mechanism %s does not have", g.Mechanism)
	}
	var err error
	if s.Memory, err = m.ReadMemory(stored.Memory); err != nil {
		return State{}, fmt.Errorf("thresholdout: memory of %s: %w", g.Mechanism, err)
	}
	return s, nil
}

// holds refuses a state that spent more than the guarantee has.
func (g Guarantee) holds(s State) error {
	spent, limits := s.Spent(), g.Limits()
	if s.Retired && spent != limits {
		return fmt.Errorf("thresholdout: a retired state with %+v spent, of %+v", spent, limits)
	}
	for _, name := range meterNames {
		if spent.Of(name) < 0 || spent.Of(name) > limits.Of(name) {
			return fmt.Errorf("thresholdout: a state with %d %s spent, of %d", spent.Of(name), name, limits.Of(name))
		}
	}
	if s.Rounds < 0 || s.InRound < 0 || s.InRound > s.Questions || g.Rounds == 0 && s.InRound > 0 {
		return fmt.Errorf("thresholdout: a state with %d questions in a round, of %d", s.InRound, s.Questions)
	}
	if c := s.Closing; c != (Closing{}) && (!g.Closes() || c.Before < 0 || c.Size < 1 || c.Before > s.Questions || c.Size > g.Questions-c.Before || c.Sealed && g.Sealed() == 0) {
		return fmt.Errorf("thresholdout: a state with a final report of %d questions after %d, of %d", c.Size, c.Before, s.Questions)
	}
	return nil
}
