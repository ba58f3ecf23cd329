package moments

// Plan is the check of the next question about a holdout of n units, k questions in all: [PlanWith] at Deviations(k).
func Plan(t Training, n, questions int64) (Check, error) {
	return PlanWith(t, n, Deviations(questions))
}

// PlanWeighted is the check of the next question about a holdout of n units, k questions in all: [PlanWeightedWith] at Deviations(k).
func PlanWeighted(t WeightedTraining, n, questions int64) (WeightedCheck, error) {
	return PlanWeightedWith(t, n, Deviations(questions))
}
