package bounds

import (
	"math"
)

// Splitting is the half-width of k answers that are each the exact mean of a fresh slice of floor(n/k) units: Hoeffding's
// inequality, united over the k slices. It is +Inf where a slice would be empty.
func Splitting(n, k int64, beta float64) (Bound, error) {
	if err := check(n, k, beta); err != nil {
		return Bound{}, err
	}
	slice := n / k
	if slice == 0 {
		return Bound{HalfWidth: math.Inf(1)}, nil
	}
	return Bound{HalfWidth: math.Sqrt(math.Log(2*float64(k)/beta) / (2 * float64(slice)))}, nil
}

// QuestionsWithin is the largest number of questions whose half-width, that of [LastExact], is at most w; 0 if there is none.
func QuestionsWithin(n int64, beta, w float64) (int64, error) {
	return LargestWithin(w, func(k int64) (float64, error) {
		b, err := LastExact(n, k, beta)
		return b.HalfWidth, err
	})
}

// LargestWithin is the largest number of questions whose half-width, which grows with them, is at most w; at most
// MaxQuestions, and 0 if there is none.
func LargestWithin(w float64, halfWidth func(k int64) (float64, error)) (int64, error) {
	lo, hi := int64(0), int64(1)
	atLo, atHi := 0.0, 0.0 // logarithms of the half-widths there
	for {
		got, err := halfWidth(hi)
		if err != nil {
			return 0, err
		}
		if atHi = math.Log(got / w); !(atHi <= 0) {
			break
		}
		next := 16.0 * float64(hi)
		if slope := (atHi - atLo) / math.Log(float64(hi)/float64(lo)); lo > 0 && slope > 0 { // far below: leap, to a quarter of the way
			next = max(next, min(float64(hi)*math.Exp(-atHi/slope)/4, MaxQuestions))
		}
		if lo, atLo = hi, atHi; lo == MaxQuestions {
			return lo, nil
		}
		hi = int64(min(next, MaxQuestions))
	}
	if lo == 0 {
		return 0, nil
	}
	// Half-widths are nearly powers of the number of questions: interpolate, one beyond the guess so that the other end follows,
	// and halve every third time in case they are not.
	for turn := 1; hi-lo > 1; turn++ {
		mid := lo + (hi-lo)/2
		if slope := (atHi - atLo) / math.Log(float64(hi)/float64(lo)); turn%3 != 0 && slope > 0 && !math.IsInf(slope, 0) {
			guess := int64(float64(lo) * math.Exp(-atLo/slope))
			if turn%3 == 1 {
				guess++
			}
			mid = min(max(guess, lo+1), hi-1)
		}
		got, err := halfWidth(mid)
		if err != nil {
			return 0, err
		}
		if at := math.Log(got / w); at <= 0 {
			lo, atLo = mid, at
		} else {
			hi, atHi = mid, at
		}
	}
	return lo, nil
}
