package api

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

func contextDeadline(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func TestReadSettings(t *testing.T) {
	got, err := readSettings("name=a%20b&holdout=1e-1&unit=day(date)&questions=12&tokens=3&confidence=.9&threshold=0.25&bounds=published&split=time:date&sigma=2.&key=a%2Cb&key=c")
	want := holdout.Settings{
		Name: "a b", Holdout: 0.1, Unit: "day(date)", Questions: 12, Tokens: 3, Confidence: 0.9, Threshold: 0.25, Bounds: "published", Split: "time:date", Sigma: 2, Key: []string{"a,b", "c"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, wrong := range []string{
		"holdout=0x1p-1", "holdout=Inf", "holdout=nan", "holdout=1_000", "holdout=0,5", "holdout=", "holdout=0", "holdout=+1", "holdout= 1", "holdout=1e999",
		"questions=1e3", "questions=0", "questions=9223372036854775808", "questions=0x10", "Questions=1", "name=", "name=a&name=b", "nmae=a", "name=a;b=c", "key=", "key=a&key=",
	} {
		if s, err := readSettings(wrong); err == nil {
			t.Errorf("%s: got %+v", wrong, s)
		}
	}
}

// TestEverySettingIsAParameter catches a setting of the service that no client could choose.
func TestEverySettingIsAParameter(t *testing.T) {
	known := map[string]bool{}
	for _, s := range settings {
		known[s.name] = true
	}
	fields := reflect.VisibleFields(reflect.TypeFor[holdout.Settings]())
	for _, f := range fields {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !known[name] {
			t.Errorf("there is no parameter %q", name)
		}
	}
	if len(fields) != len(settings) {
		t.Errorf("%d parameters for %d settings", len(settings), len(fields))
	}
}

func TestNearest(t *testing.T) {
	names := []string{"name", "questions", "tokens", "holdout"}
	for given, want := range map[string]string{
		"quetsions": "questions", "Tokens": "tokens", "hold_out": "holdout", "nam": "name", "zebra": "", "": "", "q": "",
	} {
		if got := nearest.Name(given, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestSplitBatchLeavesQueriesAsTheyCame(t *testing.T) {
	queries, partial, err := splitBatch([]byte(` { "partial" : true , "queries" : [ {"a" : 1, "a":2} , 7 ] } `), 2)
	want := []json.RawMessage{json.RawMessage(`{"a" : 1, "a":2}`), json.RawMessage(`7`)}
	if err != nil || !partial || !reflect.DeepEqual(queries, want) {
		t.Errorf("%s %v %v", queries, partial, err)
	}
}
