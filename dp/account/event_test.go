package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// TestDPAccounting: over a grid of events the accountants say what Google's dp_accounting says, to a millionth, and at a delta of
// 1e-8 to three. testdata/grid.py made the numbers; there an event is in the form of ReadEvent.
func TestDPAccounting(t *testing.T) {
	data, err := os.ReadFile("testdata/dp_accounting.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Version string
		Entries []struct {
			Accountant     string
			Event          json.RawMessage
			Delta, Epsilon float64
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	seen, largest := map[string]int{}, map[string]float64{}
	for _, entry := range file.Entries {
		event, err := ReadEvent(entry.Event)
		if err != nil {
			t.Fatal(err)
		}
		seen[entry.Accountant]++
		var empty Accountant
		switch entry.Accountant {
		case "renyi":
			empty = NewRenyi()
		case "renyi whole":
			empty = NewRenyi(wholeOrders()...)
		case "losses":
			empty = Losses{}
		case "optimal grid":
			e := event.(Times)
			one := e.Event.(Approximate)
			optimalOnGrid(t, Pure{one.Epsilon, one.Delta, e.Times}, entry.Delta, entry.Epsilon)
			continue
		}
		account, err := empty.With(event)
		if err != nil {
			t.Fatal(err)
		}
		got := account.Epsilon(entry.Delta)
		off := math.Abs(got-entry.Epsilon) / max(math.Abs(entry.Epsilon), 1e-9)
		name, allowed := entry.Accountant, 1e-6
		if name == "losses" && entry.Delta < 1e-7 { // masses are rounded up here, and not there
			name, allowed = "losses at 1e-8", 3e-6
		}
		largest[name] = max(largest[name], off)
		if !(off <= allowed) {
			t.Errorf("%s, %s, delta %v: epsilon %.10g, %s has %.10g", entry.Accountant, entry.Event, entry.Delta, got, file.Version, entry.Epsilon)
		}
	}
	t.Logf("largest relative differences: %v", largest)
	if seen["renyi"] < 100 || seen["renyi whole"] < 80 || seen["losses"] < 40 || seen["optimal grid"] < 4 {
		t.Errorf("%v entries", seen)
	}
}

func wholeOrders() (orders []float64) {
	for i := 2; i <= 64; i++ {
		orders = append(orders, float64(i))
	}
	return append(orders, 128, 256, 512, 1024)
}

// anyEvent draws an event that is one, with others inside up to a depth.
func anyEvent(t *rapid.T, depth int) Event {
	kinds := 5
	if depth > 0 {
		kinds = 9
	}
	positive := func(label string) float64 { return rapid.Float64Range(1e-3, 50).Draw(t, label) }
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return Gaussian{positive("multiplier")}
	case 1:
		return Laplace{positive("multiplier")}
	case 2:
		return Approximate{rapid.Float64Range(0, 3).Draw(t, "epsilon"), rapid.Float64Range(0, .1).Draw(t, "delta")}
	case 3:
		return Choice{positive("epsilon")}
	case 4:
		return Concentrated{positive("rho")}
	case 5:
		return Poisson{rapid.Float64Range(1e-3, 1).Draw(t, "rate"), anyEvent(t, depth-1)}
	case 6:
		rows := rapid.IntRange(1, 1000).Draw(t, "rows")
		return FixedSize{rapid.IntRange(1, rows).Draw(t, "taken"), rows, anyEvent(t, depth-1)}
	case 7:
		return Times{anyEvent(t, depth-1), rapid.IntRange(0, 100).Draw(t, "times")}
	}
	all := All{}
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		all.Events = append(all.Events, anyEvent(t, depth-1))
	}
	return all
}

// TestEventsAreData: what is written is read again as it was.
func TestEventsAreData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t, 3)
		text, err := WriteEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadEvent(text)
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("%#v became %s and then %#v, %v", e, text, again, err)
		}
	})
	for text, what := range map[string]string{
		``:                                    "nothing",
		`{}`:                                  "no kind",
		`{"kind":"gaussian"}`:                 "no multiplier",
		`{"kind":"gaussian","multiplier":-1}`: "a negative multiplier",
		`{"kind":"gaussian","multiplier":5e-324}`:                                             "a multiplier that is next to none",
		`{"kind":"laplace","multiplier":1e300}`:                                               "a multiplier without end",
		`{"kind":"gaussian","multiplier":1,"epsilon":1}`:                                      "a member of another kind",
		`{"kind":"gaussian","multiplier":1,"event":{"kind":"choice","epsilon":1}}`:            "an event within a Gaussian",
		`{"kind":"gaussian","multiplier":1,"sigma":1}`:                                        "an unknown member",
		`{"kind":"gaussian","multiplier":1} 2`:                                                "something behind",
		`{"kind":"poisson","rate":0.1}`:                                                       "a sample of nothing",
		`{"kind":"poisson","rate":1.5,"event":{"kind":"gaussian","multiplier":1}}`:            "a rate above 1",
		`{"kind":"fixed size","taken":3,"rows":2,"event":{"kind":"gaussian","multiplier":1}}`: "more than all rows",
		`{"kind":"times","times":-1,"event":{"kind":"gaussian","multiplier":1}}`:              "a negative number of times",
		`{"kind":"approximate","epsilon":1,"delta":1}`:                                        "delta 1",
		`{"kind":"approximate","epsilon":1}`:                                                  "no delta",
		`{"kind":"times","event":{"kind":"gaussian","multiplier":1}}`:                         "no number of times, which is not 0",
		`{"kind":"times","times":null,"event":{"kind":"gaussian","multiplier":1}}`:            "a number of times that is none",
		`{"kind":"all"}`: "no events",
		`{"kind":"choice","epsilon":1,"Epsilon":0.001}`: "a member in two ways",
		`{"kind":"choice","epsilon":1}}`:                "a brace behind",
		`{"kind":"poisson","rate":0.5,"event":null}`:    "a sample of null",
	} {
		if e, err := ReadEvent([]byte(text)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v, %v", what, e, err)
		}
	}
	deep := `{"kind":"gaussian","multiplier":1}`
	for range maxDepth + 1 {
		deep = fmt.Sprintf(`{"kind":"times","times":1,"event":%s}`, deep)
	}
	if _, err := ReadEvent([]byte(deep)); !errors.Is(err, ErrEvent) {
		t.Errorf("too deep: %v", err)
	}
	if _, err := (Basic{}).With(Times{Times{Times{Choice{1}, MaxTimes}, 2}, 1}); !errors.Is(err, ErrEvent) {
		t.Errorf("too many times: %v", err)
	}
	if _, err := (Basic{}).With(All{[]Event{nil}}); !errors.Is(err, ErrEvent) {
		t.Errorf("no event: %v", err)
	}
}

// accountants are all of them, empty.
func accountants() map[string]Accountant {
	return map[string]Accountant{"basic": Basic{}, "advanced": Advanced{}, "zCDP": ZCDP(0), "GDP": GDP(0), "Rényi": Renyi{}, "losses": Losses{}}
}

// TestAccountantsAgree: of whatever two accountants can account for, none says less than the distribution of losses, which is the exact one up to its
// steps; each says no less of more; and an account that could not take an event is as it was.
func TestAccountantsAgree(t *testing.T) {
	r := rand.New(noise.Seeded(5))
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	for range 15 {
		var e Event = All{[]Event{
			Times{Gaussian{between(2, 20)}, r.IntN(3)},
			Times{Laplace{between(2, 20)}, r.IntN(3)},
			Times{Approximate{between(.01, .4), 1e-7 * float64(r.IntN(2))}, r.IntN(3)},
			Times{Poisson{between(.01, .9), Gaussian{between(2, 20)}}, r.IntN(2)},
		}}
		if r.IntN(2) == 0 {
			e = e.(All).Events[r.IntN(4)] // of one kind, which more accountants take
		}
		delta := math.Exp(-between(3, 12))
		least := must1(Losses{}.With(e)).Epsilon(delta)
		for name, empty := range accountants() {
			account, err := empty.With(e)
			if err != nil {
				if !errors.Is(err, ErrUnknown) {
					t.Fatal(err)
				}
				continue
			}
			eps := account.Epsilon(delta)
			if eps < least-2*PLDStep {
				t.Errorf("%s says epsilon %v of %#v at delta %v, the losses have %v", name, eps, e, delta, least)
			}
			more := must1(account.With(e))
			if twice := more.Epsilon(delta); twice < eps*(1-1e-9)-2*PLDStep {
				t.Errorf("%s: epsilon %v once, %v twice", name, eps, twice)
			}
			if account.Epsilon(delta) != eps {
				t.Errorf("%s: an account was changed by With", name)
			}
			if back := account.Delta(eps + 1e-9); !math.IsInf(eps, 1) && back > delta*(1+1e-6)+1e-12 {
				t.Errorf("%s: epsilon %v at delta %v, and delta %v at that", name, eps, delta, back)
			}
		}
	}
}

// TestWhatAccountantsTake: each kind of event is taken by those that have a proof for it, and by no other.
func TestWhatAccountantsTake(t *testing.T) {
	sampled := Poisson{.1, Gaussian{2}}
	for _, c := range []struct {
		event Event
		by    []string
	}{
		{Gaussian{1}, []string{"GDP", "Rényi", "losses", "zCDP"}},
		{Laplace{1}, []string{"Rényi", "advanced", "basic", "losses", "zCDP"}},
		{Approximate{1, 0}, []string{"Rényi", "advanced", "basic", "losses", "zCDP"}},
		{Approximate{1, .1}, []string{"advanced", "basic", "losses"}},
		{Choice{1}, []string{"Rényi", "advanced", "basic", "losses", "zCDP"}},
		{Concentrated{1}, []string{"Rényi", "zCDP"}},
		{sampled, []string{"Rényi", "losses"}},
		{Poisson{.1, All{[]Event{Gaussian{2}, Laplace{2}}}}, nil},
		{Poisson{.1, Laplace{2}}, []string{"advanced", "basic"}},
		{FixedSize{1, 10, Gaussian{2}}, []string{"Rényi"}},
		{FixedSize{1, 10, Choice{2}}, []string{"advanced", "basic"}},
		{Poisson{.1, Poisson{.1, Choice{1}}}, nil},
		{All{[]Event{sampled, FixedSize{1, 10, Gaussian{2}}}}, nil},
		{All{[]Event{Poisson{.1, Choice{1}}, FixedSize{1, 10, Choice{2}}}}, nil},
	} {
		by := map[string]bool{}
		for _, name := range c.by {
			by[name] = true
		}
		for name, empty := range accountants() {
			before := empty.Epsilon(1e-6)
			account, err := empty.With(c.event)
			if (err == nil) != by[name] || err != nil && (!errors.Is(err, ErrUnknown) || account != nil) {
				t.Errorf("%s and %#v: %v", name, c.event, err)
			}
			if after := empty.Epsilon(1e-6); before != 0 || after != 0 {
				t.Errorf("%s: an empty account has epsilon %v, %v", name, before, after)
			}
		}
	}
}

// TestExtremes: of events at the ends of what an event can be, alone and as often as can be, every accountant that takes them says numbers: an epsilon from
// 0 to infinity that falls in delta, and a delta from 0 to 1 that falls in epsilon.
func TestExtremes(t *testing.T) {
	const least = 5e-324
	one := []Event{Gaussian{MinSize}, Gaussian{1e-4}, Gaussian{MaxSize}, Laplace{MinSize}, Laplace{MaxSize}, Approximate{}, Approximate{MaxSize, 0}, Approximate{800, .5}, Approximate{0, 1 - 0x1p-53}, Approximate{least, least}, Choice{MinSize}, Choice{MaxSize},
		Concentrated{MinSize}, Concentrated{MaxSize}}
	var all []Event
	for _, e := range one {
		all = append(all, e, Times{e, MaxTimes}, Poisson{least, e}, Poisson{1, e}, FixedSize{1, math.MaxInt, e}, FixedSize{math.MaxInt, math.MaxInt, e})
	}
	for _, e := range append(all, All{}, Times{Gaussian{1}, 0}) {
		for name, empty := range accountants() {
			account, err := empty.With(e)
			if err != nil {
				continue // it has no proof for it, or the losses span too much
			}
			before := math.Inf(1)
			for _, delta := range []float64{0, least, 1e-9, .5, 1 - 0x1p-53, 1} {
				eps := account.Epsilon(delta)
				if !(eps >= 0 && eps <= before) {
					t.Errorf("%s of %#v: epsilon %v at delta %v, %v before", name, e, eps, delta, before)
				}
				before = eps
			}
			before = 1
			for _, eps := range []float64{0, least, 1, 700, 1e300, math.Inf(1)} {
				delta := account.Delta(eps)
				if !(delta >= 0 && delta <= before) {
					t.Errorf("%s of %#v: delta %v at epsilon %v, %v before", name, e, delta, eps, before)
				}
				before = delta
			}
		}
	}
}

// TestAdvanced: for releases that are alike it is what Pure says; for two kinds the sums of the theorem, by hand; below the sum of deltas nothing holds,
// and few large epsilons add up plainly.
func TestAdvanced(t *testing.T) {
	alike := must1(Advanced{}.With(Times{Approximate{.05, 0}, 400}))
	near(t, "alike", alike.Epsilon(1e-6), Pure{.05, 0, 400}.Advanced(1e-6), 1e-12)
	two := must1(Advanced{}.With(All{[]Event{Times{Approximate{.1, 1e-9}, 50}, Times{Approximate{.02, 0}, 300}}}))
	squares := 50*.01 + 300*.0004
	slack := 1 - (1-1e-5)/math.Pow(1-1e-9, 50)
	want := 50*.1*math.Tanh(.05) + 300*.02*math.Tanh(.01) + math.Sqrt(2*squares*math.Log(1/slack))
	near(t, "two kinds", two.Epsilon(1e-5), want, 1e-9)
	if eps := two.Epsilon(4e-8); !math.IsInf(eps, 1) {
		t.Errorf("below the deltas: %v", eps)
	}
	few := must1(Advanced{}.With(Times{Choice{3}, 2}))
	if eps := few.Epsilon(1e-6); eps != 6 {
		t.Errorf("two choices of epsilon 3: %v", eps)
	}
	if eps := few.Epsilon(0); eps != 6 {
		t.Errorf("at delta 0: %v", eps)
	}
}

// TestFixedSize: the integrals of forward differences are the alternating sums of their definition, where those do not cancel; the bound is no less than
// the divergence of the pair of neighbours that Poisson sampling has, which is one of those that are bounded; sampling helps, and a sample of everything is
// none.
func TestFixedSize(t *testing.T) {
	for _, multiplier := range []float64{.5, .8, 1.2} {
		s := fixedSize{.1, multiplier, map[int]float64{}}
		for l := 2; l <= 10; l += 2 {
			sum, coefficient := 0., 1.
			for i := range l + 1 {
				sign := 1.
				if (l-i)%2 == 1 {
					sign = -1
				}
				sum += sign * coefficient * math.Exp(float64(i)*float64(i-1)/(2*multiplier*multiplier))
				coefficient *= float64(l-i) / float64(i+1)
			}
			near(t, fmt.Sprintf("B(%d) at %v", l, multiplier), math.Exp(s.logB(l)), sum, 1e-7)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		taken, multiplier := rapid.IntRange(1, 999).Draw(t, "taken"), rapid.Float64Range(.3, 20).Draw(t, "multiplier")
		order := rapid.Float64Range(1.1, 300).Draw(t, "order")
		s := fixedSize{float64(taken) / 1000, multiplier, map[int]float64{}}
		got, lower, upper := s.divergence(order), SubsampledDivergence(s.rate, multiplier, order), order/(2*multiplier*multiplier)
		if got < lower*(1-1e-9) || got > upper*(1+1e-12) {
			t.Fatalf("a sample of %d of 1000 at %v, order %v: %v, at least %v and at most %v", taken, multiplier, order, got, lower, upper)
		}
	})
	// With next to no noise one of the two bounds is the lesser throughout, and no integral over millions of steps is made.
	for _, multiplier := range []float64{.19, .21} {
		s := fixedSize{.1, multiplier, map[int]float64{}}
		for j := 3; j < 20; j++ {
			if first, second := 2*math.Ln2+(s.logB(j-j%2)+s.logB(j+j%2))/2, math.Ln2+float64(j)*float64(j-1)/(2*multiplier*multiplier); first < second {
				t.Errorf("at a multiplier of %v and order %d the first bound is %v, the second %v", multiplier, j, first, second)
			}
		}
	}
	if got, most := (fixedSize{.1, 1e-6, map[int]float64{}}).divergence(256), 256/2e-12; !(got > 0 && got <= most) {
		t.Errorf("at a multiplier of 1e-6 it is %v, want at most %v", got, most)
	}
	if got := (fixedSize{rate: 1, multiplier: 2}).divergence(3); got != 3./8 {
		t.Errorf("a sample of everything: %v", got)
	}
}

// TestSampled: amplification against the definition: randomized response on a sample of a row has exactly these odds. A row is taken with probability q,
// and else the answer is as without it.
func TestSampled(t *testing.T) {
	const eps, q = 1.3, .2
	truth := 1 / (1 + math.Exp(-eps))
	with := q*truth + (1-q)*(1-truth)
	near(t, "odds", math.Log(with/(1-truth)), Approximate{eps, 0}.Sampled(q).Epsilon, 1e-12)
	if got := (Approximate{1, .1}).Sampled(.5); got.Delta != .05 {
		t.Errorf("delta %v", got.Delta)
	}
}

// TestGroup: a chain of k neighbours is what the formulas bound: exactly so for Gaussians, and for k randomized responses one after the other.
func TestGroup(t *testing.T) {
	near(t, "zCDP", float64(GaussianZCDP(1, 2).Group(3)), float64(GaussianZCDP(3, 2)), 1e-15)
	near(t, "GDP", float64(GaussianGDP(1, 2).Group(3)), float64(GaussianGDP(3, 2)), 1e-15)
	// Tables D0, D1, D2 of a mechanism that is (ln 2, 0.1)-private: each step has p' = 2 p + 0.1, so two of them 4 p + 0.3.
	g := Approximate{math.Ln2, .1}.Group(2)
	near(t, "epsilon", g.Epsilon, 2*math.Ln2, 1e-15)
	near(t, "delta", g.Delta, .3, 1e-12)
	if g := (Approximate{0, .1}).Group(3); math.Abs(g.Delta-.3) > 1e-15 || g.Epsilon != 0 {
		t.Errorf("epsilon 0: %v", g)
	}
	if g := (Approximate{800, 1e-9}).Group(2); g.Epsilon != 1600 || g.Delta != 1 {
		t.Errorf("a large epsilon: %v", g)
	}
	if g := (Approximate{800, 1e-9}).Group(1); g != (Approximate{800, 1e-9}) {
		t.Errorf("a group of one: %v", g)
	}
	one := NewRDP(4, 8, 64)
	one.Gaussian(2, 1)
	orders, spent := one.Group(1).Orders()
	for i, a := range orders {
		if want := []float64{2, 4, 32}[i]; a != want || spent[i] < a*float64(GaussianZCDP(2, 2)) {
			t.Errorf("order %v spends %v", a, spent[i])
		}
	}
	if same := one.Group(0); len(same.orders) != 3 || same.spent[0] != one.spent[0] {
		t.Errorf("a group of one: %v", same)
	}
}
