package api

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestLateSource: a source that does not answer in time is source-unavailable, as docs/SOURCES.md has it. It would notice a reply that calls it a timeout of the server, and does not say that nothing was debited.
func TestLateSource(t *testing.T) {
	late := fmt.Errorf("clickhouse: after the deadline: %w", context.DeadlineExceeded)
	if p := problemOf(&holdout.Error{Kind: holdout.SourceUnavailable, Detail: "the source took too long", Err: late}); p.Status != 503 || p.Code != "source-unavailable" || p.Detail != "the source took too long" {
		t.Errorf("%d %s: %s", p.Status, p.Code, p.Detail)
	}
	if p := problemOf(late); p.Status != 503 || p.Code != "timeout" {
		t.Errorf("the server's own deadline: %d %s", p.Status, p.Code)
	}
}
