// Command folder measures a folder of Parquet files as a source: it looks at the table, divides it, and sums ten batches of questions, and says what each took in time, processor time
// and memory, of this process and of its children together.
//
//	python3 bench/folder.py /tmp/rows/t 1e8
//	go run ./bench/folder /tmp/rows t
//
// With a file it measures an upload of it, by stages, that is divided piece by piece or, with "at-once", at once:
//
//	python3 bench/folder.py /tmp/rows.parquet 2e7 10
//	go run ./bench/folder /tmp/rows.parquet piecewise
//	go run ./bench/folder /tmp/rows.parquet piecewise 'features=public&label=bool0'
//	go run ./bench/folder /tmp/training.parquet,/tmp/holdout.parquet piecewise
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/files"
)

const decode = "decode"

func main() {
	if len(os.Args) > 1 && os.Args[1] == decode {
		os.Exit(ingest.ChildMain())
	}
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "folder DIR TABLE | folder FILE.parquet[,FILE.parquet] piecewise [SETTINGS] | folder FILE.parquet[,FILE.parquet] at-once [SETTINGS]; settings are unit, label and features")
		os.Exit(2)
	}
	measure := run
	if strings.HasSuffix(os.Args[1], ".parquet") {
		var set holdout.Settings
		if len(os.Args) == 4 {
			v, err := url.ParseQuery(os.Args[3])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
			set.Unit, set.Label, set.Features = v.Get("unit"), v.Get("label"), v.Get("features")
		}
		measure = func(ctx context.Context, file, way string) error { return upload(ctx, file, way, set) }
	}
	if err := measure(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, table string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	parts := filepath.Join(dir, "parts")
	s, err := files.New(files.Options{Dir: dir, Parts: parts, Argv: []string{self, decode}})
	if err != nil {
		return err
	}
	defer func() { os.RemoveAll(parts) }() // nothing can be done about what is left
	go watch()
	var snapshot sources.Snapshot
	rows := func() int64 { return snapshot.Rows }
	if err := measured("look", rows, func() error { snapshot, err = s.Look(ctx, table); return err }); err != nil {
		return err
	}
	fmt.Printf("%d rows, %d columns\n", snapshot.Rows, len(snapshot.Schema.Fields))
	if err := measured("units", rows, func() error {
		return s.Units(ctx, snapshot, sources.Keys{}, func(sources.Units) error { return nil })
	}); err != nil {
		return err
	}
	var infos []sources.PartInfo
	if err := measured("divide", rows, func() error { infos, err = divide(ctx, s, snapshot); return err }); err != nil {
		return err
	}
	part, err := s.Open(ctx, infos[1], 1)
	if err != nil {
		return err
	}
	rows = func() int64 { return infos[1].Rows }
	for i, batch := range batches(snapshot.Schema) {
		if err := measured(fmt.Sprintf("question %d (%d functions)", i+1, len(batch.Functions)), rows, func() error {
			_, err := part.Moments(ctx, batch, 0, part.Units())
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// sent is the upload of a table in one file, or of a training part and a holdout part in two.
func sent(paths []string) (up holdout.Upload, done func(), err error) {
	var all []*os.File
	done = func() {
		for _, f := range all {
			f.Close() // read only
		}
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			done()
			return nil, nil, err
		}
		all = append(all, f)
	}
	if len(all) == 1 {
		return holdout.SingleUpload(all[0]), done, nil
	}
	next := 0
	return func() (string, io.Reader, error) {
		if next == len(all) {
			return "", nil, io.EOF
		}
		next++
		return []string{"training", "holdout", "check"}[(next-1)%3], all[next-1], nil
	}, done, nil
}

// upload makes a holdout of a file, of half of its rows, and asks it ten questions.
func upload(ctx context.Context, file, way string, set holdout.Settings) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	paths := strings.Split(file, ",")
	dir, err := os.MkdirTemp(filepath.Dir(paths[0]), "data-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // nothing can be done about what is left
	limits := holdout.Limits{AtOnce: 1, UploadBytes: 1 << 40}
	if way == "at-once" {
		limits.AtOnce = 1 << 40
	}
	s, err := holdout.Open(ctx, holdout.Options{Dir: dir, Decoder: []string{self, decode}, Limits: limits})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	up, done, err := sent(paths)
	if err != nil {
		return err
	}
	defer done()
	go watch()
	admin := holdout.Principal{KeyID: "bench", Scope: holdout.Admin}
	var begun holdout.Begun
	rows := int64(1)
	count := func() int64 { return rows }
	set.Name, set.Mechanism, set.Questions = "large", "gaussian", 1000
	if set.Holdout = 0.5; len(paths) > 1 {
		set.Holdout, set.Split = 0, "given"
	}
	if err := measured("upload", count, func() error { begun, err = s.Upload(ctx, admin, set, up, ""); return err }); err != nil {
		return err
	}
	id := begun.Card.ID
	if begun.Registration != nil {
		now := *begun.Registration
		rows = now.Rows
		for !now.Stage.Ended() {
			stage := now.Stage
			if err := measured(string(stage), count, func() error {
				for err == nil && now.Stage == stage {
					time.Sleep(20 * time.Millisecond)
					now, err = s.Registration(ctx, admin, now.ID)
				}
				return err
			}); err != nil {
				return err
			}
		}
		if now.Problem != nil {
			return now.Problem
		}
		id = now.Holdout
	}
	card, err := s.Card(ctx, admin, id)
	if err != nil {
		return err
	}
	if set.Features != "" {
		rows = card.Rows.Holdout + card.Rows.Check
		if err := measured("features", count, func() error {
			f, err := s.Features(ctx, admin, id)
			if err != nil {
				return err
			}
			return f.Close()
		}); err != nil {
			return err
		}
	}
	rows = card.Units.Holdout
	for i := range 10 {
		if err := measured(fmt.Sprintf("question %d", i+1), count, func() error {
			_, err := s.Ask(ctx, admin, id, fmt.Appendf(nil, `{"type":"mean","of":"number4","range":[0,125],"where":"bool0 && number9 > %d"}`, i), "")
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// divide gives every second row to the holdout, numbered in steps that scatter them.
func divide(ctx context.Context, s *files.Source, snapshot sources.Snapshot) ([]sources.PartInfo, error) {
	specs := []sources.PartSpec{{Name: "training", Units: (snapshot.Rows + 1) / 2}, {Name: "holdout", Units: snapshot.Rows / 2}}
	scatter := func(k, n int64) int64 { return int64(uint64(k) * 1_000_000_007 % uint64(n)) } // a permutation, as the prime divides no n here
	return s.Divide(ctx, snapshot, sources.Keys{}, specs, func(u sources.Units, to []sources.Place) error {
		places := u.Keys.Column(0).Numbers
		for i := range to {
			place := int64(places[i])
			part := int(place % 2)
			to[i] = sources.Place{Part: part, Number: scatter(place/2, specs[part].Units)}
		}
		return nil
	}, nil)
}

// batches are ten questions: of one predicate, of means, of texts, of 100 at once.
func batches(schema dataset.Schema) (all []rowfn.Batch) {
	var bools, numbers, texts []*rowfn.Node
	for _, f := range schema.Fields {
		switch f.Kind {
		case dataset.Bool:
			bools = append(bools, rowfn.Column(f.Name, rowfn.Condition))
		case dataset.Number:
			numbers = append(numbers, rowfn.Column(f.Name, rowfn.Number))
		case dataset.Text:
			texts = append(texts, rowfn.Column(f.Name, rowfn.Text))
		}
	}
	for i := range 10 {
		x, t := numbers[i%len(numbers)], rowfn.Compare(rowfn.OpEq, texts[i%len(texts)], rowfn.TextConst("category 3"))
		b := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.And(bools[i%len(bools)], rowfn.CompareTo(rowfn.OpGreater, x, 40)), Lo: 0, Hi: 1}, {Value: x, Lo: 0, Hi: 125, Where: t}}}
		if i == 9 {
			for k := range 98 {
				b.Functions = append(b.Functions, rowfn.Function{Value: rowfn.CompareTo(rowfn.OpGreater, numbers[k%len(numbers)], float64(k)), Lo: 0, Hi: 1, Where: bools[k%len(bools)]})
			}
		}
		all = append(all, b)
	}
	return all
}

// peak of what is held at once by this process and its children, in kB, since it was last taken.
var peakAnonymous, peakFile, peakAll atomic.Int64

func watch() {
	for range time.Tick(20 * time.Millisecond) {
		var anonymous, file int64
		for _, pid := range append(children(), os.Getpid()) {
			a, f := memory(pid)
			anonymous, file = anonymous+a, file+f
		}
		for of, now := range map[*atomic.Int64]int64{&peakAnonymous: anonymous, &peakFile: file, &peakAll: anonymous + file} {
			if now > of.Load() {
				of.Store(now)
			}
		}
	}
}

func children() (pids []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, t := range tasks {
		text, _ := os.ReadFile(t)
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func memory(pid int) (anonymous, file int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "RssAnon:":
			anonymous = n
		case "RssFile:", "RssShmem:":
			file += n
		}
	}
	return anonymous, file
}

func measured(what string, rows func() int64, f func() error) error {
	for _, p := range []*atomic.Int64{&peakAnonymous, &peakFile, &peakAll} {
		p.Store(0)
	}
	begun, cpu := time.Now(), processor()
	err := f()
	wall, used := time.Since(begun), processor()-cpu
	fmt.Printf("%-28s %8.1f s  %8.1f s cpu  %7.1f ns cpu a row  memory %5d MB, of it anonymous %5d MB, of files %5d MB\n", what, wall.Seconds(), used.Seconds(),
		float64(used.Nanoseconds())/float64(max(rows(), 1)), peakAll.Load()>>10, peakAnonymous.Load()>>10, peakFile.Load()>>10)
	return err
}

// processor is the time of this process and of its children that have ended.
func processor() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}
