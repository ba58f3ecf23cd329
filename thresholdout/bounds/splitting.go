package bounds

import "math"

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

// QuestionsWithin is the largest number of questions whose scheduled half-width is at most w; 0 if there is none.
func QuestionsWithin(n int64, beta, w float64) (int64, error) {
	return largestWithin(w, func(k int64) (float64, error) {
		b, err := AdaptiveHoeffdingScheduled(n, k, beta)
		return b.HalfWidth, err
	})
}

// largestWithin is the largest number of questions whose half-width, which grows with them, is at most w; at most
// MaxQuestions, and 0 if there is none.
func largestWithin(w float64, halfWidth func(k int64) (float64, error)) (int64, error) {
	fits := func(k int64) (bool, error) {
		got, err := halfWidth(k)
		return got <= w, err
	}
	lo, hi := int64(0), int64(1)
	for {
		ok, err := fits(hi)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if lo = hi; lo == MaxQuestions {
			return lo, nil
		}
		hi = min(2*hi, MaxQuestions)
	}
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		ok, err := fits(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}
