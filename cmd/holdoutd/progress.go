package main

import (
	"fmt"
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on a terminal, and a line every tenth elsewhere, for each part of what takes long.
func progress(out io.Writer, name string) (report func(part string, done, total int), finish func()) {
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return progressBars(file, name)
		}
	}
	last, tenth := "", 0
	return func(part string, done, total int) {
		if part != last {
			last, tenth = part, 0
		}
		if now := 10 * done / total; now > tenth {
			tenth = now
			fmt.Fprintf(out, "%s, %s: %d of %d\n", name, part, done, total)
		}
	}, func() {}
}

func progressBars(out io.Writer, name string) (report func(part string, done, total int), finish func()) {
	bars := mpb.New(mpb.WithOutput(out))
	var bar *mpb.Bar
	var last string
	end := func() {
		if bar != nil {
			bar.EnableTriggerComplete()
			bar.Abort(false) // no more after an interruption; nothing for a bar that is full
		}
	}
	return func(part string, done, total int) {
			if bar == nil || part != last {
				end()
				last = part
				bar = bars.AddBar(0, mpb.PrependDecorators(decor.Name(name+", "+part+" ")),
					mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "), decor.Elapsed(decor.ET_STYLE_GO)))
			}
			bar.SetTotal(int64(total), false)
			bar.SetCurrent(int64(done))
		}, func() {
			end()
			bars.Wait()
		}
}
