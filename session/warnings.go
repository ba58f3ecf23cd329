package session

// Warning is something that a reader should know: of a card, of an explanation, or of an answer. Code is stable: "dependent-rows", …
type Warning struct {
	Code   string  `json:"code" doc:"stable, to compare with, such as dependent-rows"`
	Detail string  `json:"detail" doc:"a sentence for a person"`
	Column string  `json:"column,omitempty" doc:"the column that it is about"`
	Unit   string  `json:"unit,omitempty" doc:"the unit setting that would mend it"`
	Effect float64 `json:"design_effect,omitempty" doc:"the factor by which the variance of a mean grows, since rows depend on each other"`
}
