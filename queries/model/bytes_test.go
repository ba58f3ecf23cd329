package model

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestBytes: what a model takes in memory is at most what Bytes says, and at least a fifth of it.
func TestBytes(t *testing.T) {
	var weights, texts, splits strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&weights, `,"a column %d":%d.5`, i, i)
		fmt.Fprintf(&texts, `,"a text %d":%d.5`, i, i)
	}
	one := "0"
	for range 12 {
		one = `["x",1.5],` + one + "," + one
	}
	for i := range 900 {
		fmt.Fprintf(&splits, `,[["s",["some text %d","another %d"]],0,1]`, i, i)
	}
	chain := []float64{}
	for i := range 40_000 {
		chain = append(chain, 1, 0)
		if i%500 == 499 {
			chain = append(chain, 0)
		}
	}
	numbers := make([]float64, 40_000)
	for name, body := range map[string]string{
		"linear":  `{"linear":{"weights":{` + weights.String()[1:] + `}}}`,
		"texts":   `{"linear":{"weights":{"s":{` + texts.String()[1:] + `}}}}`,
		"trees":   `{"trees":{"trees":[[` + one + `],[` + one + `],[` + one + `]]}}`,
		"splits":  `{"trees":{"trees":[` + splits.String()[1:] + `]}}`,
		"vectors": `{"kernel":{"weights":{"x":[1]},"intercepts":[0],"vectors":` + packed("f32", numbers...) + `,"coefficients":` + packed("f32", numbers...) + `}}`,
		"arrays":  `{"trees":{"trees":{"reads":[["x"]],"nodes":` + packed("u8", chain...) + `,"thresholds":` + packed("f32", numbers...) + `,"leaves":` + packed("f32", append(numbers, make([]float64, 80)...)...) + `}}}`,
	} {
		m, err := Parse([]byte(body))
		if err != nil {
			t.Errorf("%s: %.300s", name, err)
			continue
		}
		before := heap()
		held := make([]*Model, 8)
		for i := range held {
			if held[i], err = Parse([]byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		got := int64(heap()-before) / int64(len(held))
		runtime.KeepAlive(held)
		if said := m.Bytes(); got > said || got < said/5 {
			t.Errorf("%s: takes %d bytes, says %d", name, got, said)
		} else {
			t.Logf("%s: takes %d bytes, says %d", name, got, said)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
