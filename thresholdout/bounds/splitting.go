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
	fits := func(k int64) (bool, error) {
		b, err := AdaptiveHoeffdingScheduled(n, k, beta)
		return b.HalfWidth <= w, err
	}
	if ok, err := fits(1); err != nil || !ok {
		return 0, err
	}
	lo, hi := int64(1), int64(2)
	for hi < MaxQuestions {
		ok, err := fits(hi)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		lo, hi = hi, 2*hi
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
