package api

import "github.com/danielgtaylor/huma/v2"

// components says what each object of the document is. The Go client's comments are made of these words and of the members' (internal/clientgen).
var components = map[string]string{
	"Accuracies":    "the accuracies of one classifier of a simulation",
	"Answer":        "what is recorded of an answer. Its bytes never change",
	"AnswerItem":    "one number of an answer that is many, with an interval of its own",
	"AnswerPage":    "a page of the answers given so far, oldest first",
	"AnswerPart":    "the released mean of one row function, in [0,1]",
	"AskReply":      "an answer with what is left of the budget",
	"Asker":         "who asked a question first",
	"BatchItem":     "one item of a batch: an answer, or the reason why there is none",
	"BatchReply":    "the reply to a batch",
	"Budget":        "what is left of a guarantee. Meters are questions, tokens of mechanisms that have them, and rounds where questions are asked in rounds",
	"Card":          "what everyone with a key may know about a holdout. Nothing on it depends on holdout rows, but for the numbers of rows and units and, when stratified, those of the strata",
	"Column":        "a column as the training part shows it",
	"Cost":          "what a query debits",
	"Counts":        "the sizes of the parts",
	"CreatedKey":    "what is known of an API key, and its secret, which is shown this once",
	"Explanation":   "what is known of a query without touching a holdout row",
	"FinalReport":   "the final report of a holdout, which closed it",
	"Foreseen":      "what a promise about the holdout is worth, before it is checked: its bound in the query's own units, and the half-widths with it and without",
	"Guarantee":     "the mechanism with its numbers, fixed at creation",
	"Holdouts":      "a list of cards",
	"Interval":      "an interval in the query's own units. It holds the true value, together with all other intervals of the holdout, with its confidence",
	"KeptModel":     "a model that questions can name by its digest",
	"GrantInfo":     "a slice of a holdout's budget for one key, with what is spent of it",
	"GrantMeter":    "one count of a grant",
	"Grants":        "a list of grants",
	"KeyInfo":       "what is known of an API key; its secret is not kept",
	"KeySubject":    "the subject of an OpenID Connect issuer that a key is bound to",
	"Keys":          "a list of keys, without their secrets",
	"LedgerPlace":   "where an answer is in the ledger",
	"Measure":       "in what the numbers of an answer are measured",
	"Message":       "a message of JSON-RPC 2.0, as the Model Context Protocol has it",
	"Meter":         "one count of a budget: left of what there was",
	"Held":          "what is kept for questions that were sent to a source and are not answered",
	"MethodPlan":    "what one method promises",
	"NewGrant":      "what a grant is made of",
	"NewKey":        "what a key is made with",
	"Overlap":       "what the rows of an upload have in common with an earlier holdout",
	"PastAnswer":    "an answer in the history, with its query and what is known beside it",
	"Plan":          "a comparison of the methods. It repeats what was asked, with the defaults filled in",
	"PlannedReport": "one answer of a report before it is made: its width if the holdout is as the parts are that it would be compared with",
	"PlanRequest":   "what a plan is asked for: n units, and a number of questions or a half-width in units of a row function's [0,1]",
	"Problem":       "the body of every error reply (RFC 9457). It may have more members, which are those of its code",
	"Promised":      "a promise about the holdout: its bound in the query's own units, and whether it held",
	"Reference":     "what a part that was handed out says to a query: the number that explain says",
	"ReferenceItem": "one number of a reference that is many",
	"ReportAnswer":  "an answer of a final report, with its query",
	"ReportAsker":   "who asked before a report, and for how many answers",
	"ReportPlan":    "how wide the answers of a final report would be now",
	"Round":         "one step of a simulation: the classifier has one column more",
	"Session":       "who is signed in to the pages of this server",
	"Spender":       "what one key has spent of a holdout",
	"Spending":      "what keys have spent of a holdout",
	"SessionKey":    "the key that began a session, or came with the request",
	"Settings":      "the choices made at creation. An absent one is left to the server",
	"Simulation":    "feature selection, played once: by a holdout that tells its own numbers, and through Thresholdout",
	"Skipped":       "a column of the upload that is not part of the holdout",
	"Spent":         "what was spent before a final report",
	"Status":        "whether the server lives, or can answer",
	"TextShape":     "what is public of the texts of a column",
	"Version":       "what runs",
	"Violation":     "one thing that is wrong with a request",
	"Watched":       "an expression of a query whose values may count as others than a reader takes them for, with the shares of the training part",
	"Warning":       "something that the owner should know",

	"Cell":             "one cell of a column, with how many rows are in it",
	"ColumnRequest":    "what is to be released of one column",
	"ColumnStatistics": "what was released of one column",
	"Statistic":        "a released number, with an interval for the table's own",
	"NewRelease":       "what a release is made of",
	"PrivateRelease":   "a private release of statistics, as it is recorded, the same bytes for ever",
	"PrivateReleases":  "the private releases of a holdout, with what they have spent",
	"Quantile":         "a released quantile",

	"Workload": "what a list of questions costs under each mechanism, and how wide its intervals are in its own units",

	"WorkloadItem": "one kind of question of a workload",

	"WorkloadPlan": "what one mechanism has for a workload",

	"WorkloadPrice": "what one mechanism has for one kind of question",

	"ForeseenOutcome": "one way in which an answer can come out, with its price and how wide its interval then is",
}

// describe gives the components their descriptions; one without is a fault of this package. The members of Settings are described where
// they are read, as parameters of an upload.
func describe(schemas map[string]*huma.Schema) {
	for name, s := range schemas {
		if s.Description = components[name]; s.Description == "" {
			panic("api: components lacks a description of " + name)
		}
	}
	for _, p := range settings {
		schemas["Settings"].Properties[p.name].Description = p.doc
	}
}
