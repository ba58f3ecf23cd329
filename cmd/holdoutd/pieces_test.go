package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// TestDownloadInPieces downloads a training part of several pieces, goes on where a download was cut off, and begins a piece anew of which something else is there. It would notice a file that is put together of two, a
// piece that is taken twice or left out, and a whole file that is fetched again.
func TestDownloadInPieces(t *testing.T) {
	const rows, columns = 100_000, 250 // a piece has 2^24 cells
	random := rand.New(rand.NewPCG(20261123, 3))
	all := make([]dataset.Column, columns)
	for i := range all {
		all[i] = dataset.Column{Field: dataset.Field{Name: fmt.Sprint("b", i), Kind: dataset.Bool, Source: "BOOLEAN"}, Bools: make([]uint8, rows)}
		for row := range rows {
			all[i].Bools[row] = uint8(random.Uint64() & 1)
		}
	}
	table, err := dataset.FromColumns(all...)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := ingest.Export(&text, table); err != nil {
		t.Fatal(err)
	}
	lake := t.TempDir()
	if err := os.WriteFile(filepath.Join(lake, "wide.parquet"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startStation(t, client.Settings{}, "--source", "lake=file://"+lake)
	call := func(want int, args ...string) {
		t.Helper()
		if out, errs, code := s.call(t, nil, args...); code != want {
			t.Fatalf("holdoutd %v: exit code %d, want %d\n%s%s", args, code, want, out, errs)
		}
	}
	call(0, "register", "lake", "wide.parquet", "--name", "wide", "--questions", "10", "--holdout", "0.1")
	call(2, "download", "training", "wide")
	call(0, "download", "training", "wide", "--out", "training")
	folder := filepath.Join(s.dir, "training")
	pieces := steps(t, folder, "training-*-of-00002.parquet")
	if len(pieces) != 2 {
		t.Fatalf("the pieces are %v, want 2", pieces)
	}
	got := 0
	whole := map[string][]byte{}
	for _, name := range pieces {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole[name] = file
		columns := filepath.Join(t.TempDir(), "columns")
		if _, err := ingest.Run(t.Context(), []string{binary, decodeCommand}, name, columns, ingest.Limits{}); err != nil {
			t.Fatal(err)
		}
		piece, err := dataset.Open(columns)
		if err != nil {
			t.Fatal(err)
		}
		got += piece.Rows()
		if err := piece.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got != rows*9/10 {
		t.Errorf("the pieces have %d rows, want %d", got, rows*9/10)
	}
	same := func(what string) {
		t.Helper()
		for name, want := range whole {
			if file, err := os.ReadFile(name); err != nil || !bytes.Equal(file, want) {
				t.Errorf("%s: %s has %d bytes, want %d, which were there before: %v", what, filepath.Base(name), len(file), len(want), err)
			}
		}
		if left := steps(t, folder, "*.part"); len(left) > 0 {
			t.Errorf("%s: left are %v", what, left)
		}
	}
	cut := func(name string, keep []byte) {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name+".part", keep, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, keep := range map[string][]byte{
		"cut off in the middle": whole[pieces[1]][:len(whole[pieces[1]])/2],
		"cut off at once":       {},
		"cut off at the end":    whole[pieces[1]],
		"more than there is":    append(bytes.Clone(whole[pieces[1]]), "and more"...),
	} {
		cut(pieces[1], keep)
		call(0, "download", "training", "wide", "--out", "training")
		same(what)
	}
	cut(pieces[1], bytes.Repeat([]byte("x"), 1000)) // of something else
	call(1, "download", "training", "wide", "--out", "training")
	call(0, "download", "training", "wide", "--out", "training")
	same("of something else")

	c := s.Client
	card, err := c.Holdouts(t.Context())
	if err != nil || len(card) != 1 {
		t.Fatal(card, err)
	}
	p, err := c.TrainingPiece(t.Context(), card[0].ID, 1, 4242)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(p)
	if err != nil || p.Close() != nil || p.From != 4242 || !bytes.Equal(rest, whole[pieces[1]][4242:]) {
		t.Errorf("the rest of a piece: %d bytes from %d, %v", len(rest), p.From, err)
	}
	if _, err := c.TrainingPiece(t.Context(), card[0].ID, 2, 0); err == nil {
		t.Error("there is a third piece of two")
	}
}
