package thresholdout

// Mechanism is a planned mechanism: its numbers, and how it answers. It embeds [Head], and its other exported fields, as JSON, are its
// part of the stored guarantee.
//
// All methods are pure. What the budget allows is checked before they are called, and what an answer spends is counted after it: a
// mechanism sees a state that pays and sums that fit the guarantee.
type Mechanism interface {
	// Common is what every guarantee says; it comes with the embedded [Head].
	Common() Head
	// Release answers one question. Beside the answer it returns what the mechanism remembers from now on: s.Memory where nothing
	// changed. An error must depend on the state, the question and the training part alone.
	Release(s State, in Input, from Noise) (Output, Memory, error)
	// Preview is the interval of the next answer if it were this value; nil where none is known. Of a mechanism that compares it is that
	// of an answer that agrees with training.
	Preview(s State, value float64) *Interval
	// Promise is what is said beforehand of the answer in this state; false for a mechanism without intervals.
	Promise(s State) (Promise, bool)
}

// Input is what one answer reads: the exact means of one row function over the holdout's units, or the slice of them that the question
// has, and over the training part for mechanisms that compare.
type Input struct {
	Training, Holdout Mean
	Binary            bool   // by its form the row function has no value but 0 and 1
	Guess             *Guess // of mechanisms that take one: the analyst's own, or nil
	Promise           *Borne // of mechanisms that check them: what the question promises, or nil
}

// What a mechanism may be able to do beside. Each is asked for by its interface.
type (
	// Compares is a mechanism that compares the training part with the holdout: it needs a training part, and Input.Training.
	Compares interface{ ComparesWithTraining() }

	// Levels is a mechanism whose answers can be read at other levels than the guarantee's (level.go). ok is false where none is
	// known. s is the state before the answer.
	Levels interface {
		At(s State, o Output, level float64) (low, high float64, ok bool)
	}

	// Vectors is a mechanism that releases several means as one.
	Vectors interface {
		// VectorPrice is how many questions a vector costs whose variances over the units have, for any table, at most the sum variance.
		VectorPrice(count int, variance float64) int64
		ReleaseVector(s State, means []Mean, variance float64, from Noise) ([]Output, error)
		// PreviewVector is the half-width of each mean before it is cut off at 0 and 1, and the bound that says so.
		PreviewVector(s State, count int, variance float64) (halfWidth float64, bound string, err error)
		// AsNumbers reports whether the mechanism releases such means better one by one: at the same price, and no wider. It is a function of public facts.
		AsNumbers(s State, count int, variance float64) bool
		// FreshVector is Fresh.Fresh for each answer of a vector.
		FreshVector(begun, s State, count int, variance float64) (units int64, sigma float64, ok bool)
		// VectorAt is Levels.At for one answer of a vector.
		VectorAt(s State, o Output, count int, variance, level float64) (low, high float64, ok bool)
	}

	// Selections is a mechanism that says which of several means is the largest, for one question or, with less regret, for more.
	Selections interface {
		ReleaseSelection(s State, means []Mean, price int64, from Noise) (Choice, error)
		// PreviewSelection is the regret of the next selection among so many, and the bound that says so.
		PreviewSelection(s State, count int, price int64) (regret float64, bound string)
	}

	// Slices is a mechanism that gives every question units of its own, which must therefore be alike.
	Slices interface {
		// Slice is the range of holdout units that the next answer reads.
		Slice(s State) (from, to int64)
	}

	// Guesses is a mechanism that checks guesses: the training mean's, or the analyst's own.
	Guesses interface {
		// Expected is the value and the interval of the next answer if its guess passes, from public facts alone; err is a
		// [*WidthError] if its half-width cannot pass.
		Expected(s State, training Mean, g *Guess) (value float64, _ *Interval, err error)
	}

	// Submissions is a mechanism whose questions are submissions to a board: Input.Holdout is the mean loss of one, row by row.
	Submissions interface {
		// Submit says what the board shows after the submission, and what the mechanism remembers.
		Submit(s State, loss Mean) (Standing, Memory)
	}

	// Celled is a mechanism whose answers are true of row functions alone that are constant on each of so many declared cells, and of means over units in which every row
	// has the same vote. Whoever plays it must refuse every other question: package rowfn/cells says which are.
	Celled interface{ DeclaredCells() int64 }

	// Fresh is a mechanism that can answer with the holdout mean of units of which nothing had been told before, and known noise:
	// plain p-values are of such answers. begun is the state before the request, s the one before the answer.
	Fresh interface {
		Fresh(begun, s State) (units int64, sigma float64, ok bool)
	}

	// Remembers is a mechanism whose state is more than the counters.
	Remembers interface {
		// ReadMemory reads what the mechanism remembers from the JSON that encoding/json made of it.
		ReadMemory(text []byte) (Memory, error)
	}
)

// Memory is what a mechanism remembers between questions beside what is spent: a small comparable value, or nil at first. Its JSON
// is a function of its value.
type Memory any

// Promise is what a guarantee says beforehand of one answer.
type Promise struct {
	HalfWidth float64            // around a mean of one half, where intervals are widest; before it is cut off at 0 and 1
	Sigma     float64            // the noise of all answers, or the largest; 0 without
	Parts     map[string]float64 // of HalfWidth, which they add up to
}
