package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on a terminal, and a line every tenth elsewhere, for each part of what takes long. Both say how much time is left.
func progress(out io.Writer, name string) (report func(part string, done, total int), finish func()) {
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return progressBars(file, name)
		}
	}
	var p pace
	tenth := 0
	return func(part string, done, total int) {
		if p.step(part, done, total, time.Now()) {
			tenth = 0
		}
		if now := 10 * done / total; now > tenth {
			tenth = now
			fmt.Fprintf(out, "%s, %s: %d of %d%s\n", name, part, done, total, p.text())
		}
	}, func() {}
}

func progressBars(out io.Writer, name string) (report func(part string, done, total int), finish func()) {
	bars := mpb.New(mpb.WithOutput(out))
	var bar *mpb.Bar
	var p pace
	end := func() {
		if bar != nil {
			bar.EnableTriggerComplete()
			bar.Abort(false) // no more after an interruption; nothing for a bar that is full
		}
	}
	return func(part string, done, total int) {
			if p.step(part, done, total, time.Now()) {
				end()
				var left atomic.Value // bars are drawn by a goroutine of their own
				left.Store("")
				p.show = func(text string) { left.Store(text) }
				bar = bars.AddBar(0, mpb.PrependDecorators(decor.Name(name+", "+part+" ")),
					mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "), decor.Elapsed(decor.ET_STYLE_GO),
						decor.Any(func(decor.Statistics) string { return left.Load().(string) })))
			}
			p.show(p.text())
			bar.SetTotal(int64(total), false)
			bar.SetCurrent(int64(done))
		}, func() {
			end()
			bars.Wait()
		}
}

// pace is how fast a part of the work goes. What was done before it was first looked at, in an earlier session, took it no time.
type pace struct {
	part        string
	start       time.Time
	before      int // done at the start
	done, total int
	now         time.Time
	show        func(text string)
}

// step takes what is done; it says whether another part begins.
func (p *pace) step(part string, done, total int, now time.Time) (begins bool) {
	if begins = part != p.part; begins {
		*p = pace{part: part, start: now, before: done}
	}
	p.done, p.total, p.now = done, total, now
	return begins
}

// text says how much time is left: nothing before two pieces are known of, and at the end.
func (p *pace) text() string {
	if p.done <= p.before || p.done == p.total {
		return ""
	}
	left := time.Duration(float64(p.now.Sub(p.start)) / float64(p.done-p.before) * float64(p.total-p.done))
	return ", about " + max(time.Second, left.Round(time.Second)).String() + " left"
}
