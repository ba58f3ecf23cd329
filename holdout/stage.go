package holdout

import "context"

// A Tracer is told when the stages of requests begin and end: how long they take is for the operator alone, since it can depend on rows
// (docs/SECURITY.md). It is told nothing else but public facts, and it cannot change what happens. Its methods may be called from many
// goroutines.
type Tracer interface {
	// Stage begins a stage of a request about a holdout, with so many distinct queries. Work of the stage has the returned context; end ends it.
	Stage(ctx context.Context, stage, holdout string, questions int) (within context.Context, end func())
}

// Stages of a question, as a [Tracer] hears of them. Docs/ARCHITECTURE.md says what they are.
const (
	StageAdmit  = "admit"
	StageScan   = "scan"
	StageCommit = "commit"
	StageLedger = "ledger" // within commit: one update of the ledger, until it is durable
)

// stage tells the tracer, if there is one.
func (s *Service) stage(ctx context.Context, stage, holdout string, questions int) (within context.Context, end func()) {
	if s.tracer == nil {
		return ctx, func() {}
	}
	return s.tracer.Stage(ctx, stage, holdout, questions)
}
