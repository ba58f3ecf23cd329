package queries

// What members that several types share mean.

const (
	rangeDoc = "[low, high]: values are clamped to it; the narrower it is, the narrower the interval"
)

const (
	whereDoc  = "a condition: only rows for which it holds count; under gaussian it costs one more question"
	weightDoc = "what has one vote: unit or row; default: unit. With row every row counts once, but no unit counts for more than largest_unit rows, which is on the card. Where units have several rows, under gaussian it costs one more question"
)

const conditionNull = "a comparison with a null does not hold"

const sharesDoc = "All shares are one vector, whose noise does not grow with their number. With where they are shares of the rows for which the condition holds. Shares for which no tokens are left are null."

const valuesDoc = "the categories, as a list of texts; default: the 100 most frequent values of the training part. All other values are one category, other"

const numberLabelDoc = "the truth: a number"
