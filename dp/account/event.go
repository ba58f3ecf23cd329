package account

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Event is a release as data: what an accountant needs to know of it, and nothing of what was released. It is what a ledger can keep, so that an account
// can be made later, or again by a better accountant. Kinds and their parameters never change their meaning.
//
// Multipliers are noise over sensitivity, both by the same relation of neighbours; [Poisson] fixes it to added or removed rows, [FixedSize] to replaced ones.
type Event interface {
	kind() string
	check() error
}

// The kinds of events.
type (
	// Gaussian is a release with Gaussian noise of deviation Multiplier times the sensitivity.
	Gaussian struct {
		Multiplier float64
	}
	// Laplace is a release with Laplace noise of scale Multiplier times the sensitivity.
	Laplace struct {
		Multiplier float64
	}
	// Approximate is a release of which no more is known than that it is (Epsilon, Delta)-private.
	Approximate struct {
		Epsilon float64
		Delta   float64
	}
	// Choice is one by the exponential mechanism: Epsilon-private, with losses that have a range of Epsilon (Durfee and Rogers, arXiv 1905.04273). Other
	// choices, such as permute-and-flip, are Approximate: of their losses no more is proved than that they are at most Epsilon either way.
	Choice struct {
		Epsilon float64
	}
	// Concentrated is a release that is Rho-zCDP.
	Concentrated struct {
		Rho float64
	}
	// Poisson is an event on a sample that takes each row by itself with probability Rate.
	Poisson struct {
		Rate  float64
		Event Event
	}
	// FixedSize is an event on a sample of Taken of Rows rows, all such samples alike.
	FixedSize struct {
		Taken, Rows int
		Event       Event
	}
	// All are several events, one after the other.
	All struct{ Events []Event }
	// Times is one event again and again.
	Times struct {
		Event Event
		Times int
	}
)

func (Gaussian) kind() string     { return "gaussian" }
func (Laplace) kind() string      { return "laplace" }
func (Approximate) kind() string  { return "approximate" }
func (Choice) kind() string       { return "choice" }
func (Concentrated) kind() string { return "concentrated" }
func (Poisson) kind() string      { return "poisson" }
func (FixedSize) kind() string    { return "fixed size" }
func (All) kind() string          { return "all" }
func (Times) kind() string        { return "times" }

// Errors of events and accountants, wrapped.
var (
	ErrEvent = errors.New("account: bad event")
	// ErrUnknown: the accountant has no proof for this kind of event. Another one may have.
	ErrUnknown = errors.New("account: this accountant cannot account for the event")
)

// Limits of events, within which no accountant overflows. MaxTimes bounds Times, and what Times within Times come to. Multipliers, epsilons and rhos are
// from MinSize to MaxSize: nothing beyond is worth an account.
const (
	MaxTimes = 1 << 40
	MinSize  = 1e-9
	MaxSize  = 1e9
)

func sized(kind, what string, x float64) error {
	if !(x >= MinSize && x <= MaxSize) {
		return fmt.Errorf("%w: %s: a %s of %v, want %v to %v", ErrEvent, kind, what, x, MinSize, MaxSize)
	}
	return nil
}

func (e Gaussian) check() error     { return sized(e.kind(), "multiplier", e.Multiplier) }
func (e Laplace) check() error      { return sized(e.kind(), "multiplier", e.Multiplier) }
func (e Choice) check() error       { return sized(e.kind(), "epsilon", e.Epsilon) }
func (e Concentrated) check() error { return sized(e.kind(), "rho", e.Rho) }

func (e Approximate) check() error {
	if !(e.Epsilon >= 0 && e.Epsilon <= MaxSize && e.Delta >= 0 && e.Delta < 1) {
		return fmt.Errorf("%w: (%v, %v), want an epsilon from 0 to %v and a delta in [0,1)", ErrEvent, e.Epsilon, e.Delta, MaxSize)
	}
	return nil
}

func (e Poisson) check() error {
	if !(e.Rate > 0 && e.Rate <= 1) {
		return fmt.Errorf("%w: a rate of %v is not in (0,1]", ErrEvent, e.Rate)
	}
	return checked(e.Event)
}

func (e FixedSize) check() error {
	if e.Taken < 1 || e.Taken > e.Rows {
		return fmt.Errorf("%w: a sample of %d of %d rows", ErrEvent, e.Taken, e.Rows)
	}
	return checked(e.Event)
}

func (e All) check() error {
	for _, each := range e.Events {
		if err := checked(each); err != nil {
			return err
		}
	}
	return nil
}

func (e Times) check() error {
	if e.Times < 0 || e.Times > MaxTimes {
		return fmt.Errorf("%w: %d times, want 0 to %d", ErrEvent, e.Times, MaxTimes)
	}
	return checked(e.Event)
}

func checked(e Event) error {
	if e == nil {
		return fmt.Errorf("%w: there is none", ErrEvent)
	}
	return e.check()
}

// walk calls leaf for each event that is not made of others by All and Times, with how often it happens.
func walk(e Event, times int, leaf func(e Event, times int) error) error {
	switch e := e.(type) {
	case All:
		for _, each := range e.Events {
			if err := walk(each, times, leaf); err != nil {
				return err
			}
		}
		return nil
	case Times:
		if e.Times > 0 && times > MaxTimes/e.Times {
			return fmt.Errorf("%w: more than %d times together", ErrEvent, MaxTimes)
		}
		return walk(e.Event, times*e.Times, leaf)
	}
	if times == 0 {
		return nil
	}
	return leaf(e, times)
}

// gaussian is the one Gaussian release that several of the same sample are worth: squares of 1/multiplier add up. ok is false where one of them has other noise.
func gaussian(e Event) (multiplier float64, ok bool) {
	squares, ok := 0., true
	err := walk(e, 1, func(e Event, times int) error {
		g, is := e.(Gaussian)
		ok = ok && is
		squares += float64(times) / (g.Multiplier * g.Multiplier)
		return nil
	})
	return 1 / math.Sqrt(squares), ok && err == nil && squares > 0
}

// form is an event as JSON: its kind, and exactly the members that the kind has.
type form struct {
	Kind       string            `json:"kind"`
	Multiplier *float64          `json:"multiplier,omitempty"`
	Epsilon    *float64          `json:"epsilon,omitempty"`
	Delta      *float64          `json:"delta,omitempty"`
	Rho        *float64          `json:"rho,omitempty"`
	Rate       *float64          `json:"rate,omitempty"`
	Taken      *int              `json:"taken,omitempty"`
	Rows       *int              `json:"rows,omitempty"`
	Times      *int              `json:"times,omitempty"`
	Event      json.RawMessage   `json:"event,omitempty"`
	Events     []json.RawMessage `json:"events,omitzero"`
}

// WriteEvent is an event as JSON: an object with its kind and that kind's members, in lower case; see ReadEvent.
func WriteEvent(e Event) ([]byte, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	f := form{Kind: e.kind()}
	inner := func(e Event) (err error) {
		f.Event, err = WriteEvent(e)
		return err
	}
	var err error
	switch e := e.(type) {
	case Gaussian:
		f.Multiplier = &e.Multiplier
	case Laplace:
		f.Multiplier = &e.Multiplier
	case Approximate:
		f.Epsilon, f.Delta = &e.Epsilon, &e.Delta
	case Choice:
		f.Epsilon = &e.Epsilon
	case Concentrated:
		f.Rho = &e.Rho
	case Poisson:
		f.Rate, err = &e.Rate, inner(e.Event)
	case FixedSize:
		f.Taken, f.Rows, err = &e.Taken, &e.Rows, inner(e.Event)
	case Times:
		f.Times, err = &e.Times, inner(e.Event)
	case All:
		f.Events = []json.RawMessage{}
		for _, each := range e.Events {
			text, err := WriteEvent(each)
			if err != nil {
				return nil, err
			}
			f.Events = append(f.Events, text)
		}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(f)
}

// maxDepth bounds events within events.
const maxDepth = 32

// ReadEvent reads what WriteEvent wrote, such as {"kind":"poisson","rate":0.01,"event":{"kind":"gaussian","multiplier":1.1}}. The kinds are gaussian and
// laplace (multiplier), approximate (epsilon, delta), choice (epsilon), concentrated (rho), poisson (rate, event), fixed size (taken, rows, event), all
// (events) and times (times, event). All members of the kind are there, and no others: one that is left away would be read as a release that costs nothing.
// Errors wrap ErrEvent.
func ReadEvent(data []byte) (Event, error) {
	e, err := read(data, 0)
	if err != nil {
		return nil, err
	}
	return e, checked(e)
}

func read(data []byte, depth int) (Event, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: more than %d events within one another", ErrEvent, maxDepth)
	}
	f := form{Multiplier: new(float64), Epsilon: new(float64), Delta: new(float64), Rho: new(float64), Rate: new(float64), Taken: new(int), Rows: new(int), Times: new(int)}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("%w: there is something behind it", ErrEvent)
	}
	if err := sameMembers(data, f.Kind); err != nil {
		return nil, err
	}
	var inner Event
	if f.Event != nil {
		var err error
		if inner, err = read(f.Event, depth+1); err != nil {
			return nil, err
		}
	}
	switch f.Kind {
	case "gaussian":
		return Gaussian{*f.Multiplier}, nil
	case "laplace":
		return Laplace{*f.Multiplier}, nil
	case "approximate":
		return Approximate{*f.Epsilon, *f.Delta}, nil
	case "choice":
		return Choice{*f.Epsilon}, nil
	case "concentrated":
		return Concentrated{*f.Rho}, nil
	case "poisson":
		return Poisson{*f.Rate, inner}, nil
	case "fixed size":
		return FixedSize{*f.Taken, *f.Rows, inner}, nil
	case "times":
		return Times{inner, *f.Times}, nil
	}
	all := All{}
	for _, each := range f.Events {
		one, err := read(each, depth+1)
		if err != nil {
			return nil, err
		}
		all.Events = append(all.Events, one)
	}
	return all, nil
}

// members of each kind.
var members = map[string][]string{
	"gaussian": {"multiplier"}, "laplace": {"multiplier"}, "approximate": {"delta", "epsilon"}, "choice": {"epsilon"}, "concentrated": {"rho"},
	"poisson": {"event", "rate"}, "fixed size": {"event", "rows", "taken"}, "times": {"event", "times"}, "all": {"events"},
}

// sameMembers refuses a kind that there is not, and an object that has not the members of its kind, each with a value.
func sameMembers(data []byte, kind string) error {
	want, ok := members[kind]
	if !ok {
		return fmt.Errorf("%w: kind %q", ErrEvent, kind)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return fmt.Errorf("%w: %w", ErrEvent, err)
	}
	delete(given, "kind")
	if names := slices.Sorted(maps.Keys(given)); !slices.Equal(names, want) {
		return fmt.Errorf("%w: %s with the members %v, want %v", ErrEvent, kind, names, want)
	}
	for name, value := range given {
		if string(value) == "null" {
			return fmt.Errorf("%w: %s without a value of %q", ErrEvent, kind, name)
		}
	}
	return nil
}
