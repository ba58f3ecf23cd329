package queries

// What members that several types share mean.

const (
	rangeDoc = "[low, high]: values are clamped to it; the narrower it is, the narrower the interval"
)

const (
	whereDoc  = "a condition: only rows for which it holds count; costs one more question, under guess_and_check none"
	weightDoc = "what has one vote: unit or row; default: unit. With row a unit of m rows has min(m, c) votes, where c is the card's largest_unit, so that the mean of y is E[mean of y in the unit · min(m, c)]/E[min(m, c)]. Where units have several rows, row costs one more question, under guess_and_check none"
)

const conditionNull = "a comparison with a null does not hold"

const shareCost = "All shares are released as one vector, and its noise does not grow with their number: at most four questions under gaussian, one for each share under " +
	"other mechanisms. With where the vector has one more share, that of the rows for which the condition holds; the others are divided by it; under guess_and_check it is not asked for. Shares for which no tokens are left are null."

const valuesDoc = "the categories, as a list of texts; default: the 100 most frequent values of the training part. All other values are one category, other"

const numberLabelDoc = "the truth: a number"
