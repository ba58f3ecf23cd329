package run

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed report.html.tmpl
var pageText string

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"number": shortNumber,
	"seconds": func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
	},
	"mib":        func(b int64) string { return fmt.Sprintf("%.0f MiB", float64(b)/(1<<20)) },
	"falseAlarm": func() float64 { return FalseAlarm },
	"power":      func() float64 { return Power },
	"title":      func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
}).Parse(pageText))

// page is what the template of one experiment's report sees.
type page struct {
	Report
	Figures []pageFigure
	Link    string // to the full report, on the page of all
}

// pageFigure is a figure with its drawing inside, so that the page stands alone.
type pageFigure struct {
	Figure
	Image template.URL
}

// page reads the drawings that write has made.
func (r Report) page(dir string) (page, error) {
	p := page{Report: r}
	for i, f := range r.Result.Figures {
		svg, err := os.ReadFile(filepath.Join(dir, r.Result.FigureBase(i)+".svg"))
		if err != nil {
			return p, fmt.Errorf("experiments: %w", err)
		}
		p.Figures = append(p.Figures, pageFigure{f, template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg))})
	}
	return p, nil
}

func (r Report) writePage(dir string) error {
	p, err := r.page(dir)
	if err != nil {
		return err
	}
	return execute(filepath.Join(dir, ReportFile), "report", p)
}

// index is what the template of the page of all sees.
type index struct {
	Pages                          []page
	Comparisons, Agreeing, Decided int
	Wall                           float64
	Quick                          bool
	Seed                           uint64
}

// indexOf counts. Of a run that was interrupted nothing is decided.
func indexOf(all []page) index {
	x := index{Pages: all}
	for _, p := range all {
		x.Wall += p.Provenance.WallSeconds
		x.Quick = x.Quick || p.Result.Quick
		x.Seed = p.Result.Seed
		if p.Result.Complete {
			x.Decided++
			x.Comparisons += len(p.Result.Checks)
			x.Agreeing += len(p.Result.Checks) - len(p.Result.Disagreeing())
		}
	}
	return x
}

// WriteIndex writes the page of several reports, whose files are in directories of dir that bear the experiments' names.
func WriteIndex(dir string, reports []Report) error {
	all := make([]page, 0, len(reports))
	for _, r := range reports {
		p, err := r.page(filepath.Join(dir, r.Experiment.Name))
		if err != nil {
			return err
		}
		p.Link = r.Experiment.Name + "/" + ReportFile
		all = append(all, p)
	}
	return execute(filepath.Join(dir, IndexFile), "index", indexOf(all))
}

func execute(path, name string, data any) error {
	var text strings.Builder
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		return fmt.Errorf("experiments: report: %w", err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	return nil
}

// shortNumber has four significant digits, and all of those before the point.
func shortNumber(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
