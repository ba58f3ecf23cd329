package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/holdoutd/holdoutd/dp/certify"
)

// certifyResult is what the command prints; docs/CERTIFY.md documents its JSON.
type certifyResult struct {
	File        string    `json:"file"`
	Model       string    `json:"model"` // digest of its canonical form, or the address of a predictor
	Noise       string    `json:"noise"`
	Scale       float64   `json:"scale"`
	Units       string    `json:"units"`
	Norm        string    `json:"norm"`
	Certificate string    `json:"certificate"`
	Of          string    `json:"of"`
	Bound       string    `json:"bound"`
	Samples     int       `json:"samples"`
	Alpha       float64   `json:"alpha"` // of one row
	Seed        uint64    `json:"seed"`
	Moved       []string  `json:"moved"`            // columns that noise is added to
	Widths      []float64 `json:"widths,omitempty"` // their standard deviations, where these are the unit

	Rows     []certifiedRow      `json:"rows"`
	Accuracy []certifiedAccuracy `json:"accuracy,omitempty"`
}

type certifiedRow struct {
	Row        int     `json:"row"`        // from 0, as in the file
	Prediction *string `json:"prediction"` // null where it abstains
	Radius     float64 `json:"radius"`
	Abstained  bool    `json:"abstained"`
	Unsmoothed string  `json:"unsmoothed"`      // what the model itself predicts of the row, without noise
	Sum        float64 `json:"sum"`             // of the draws, how many were for the label that was tested, or the sum of its scores
	Next       float64 `json:"next"`            // the same of the best other label
	Label      *string `json:"label,omitempty"` // the true one, where --label names its column
}

type certifiedAccuracy struct {
	Size     float64 `json:"size"`     // of an attack
	Accuracy float64 `json:"accuracy"` // share of rows that are predicted right with a larger radius
}

// result of the rows that are finished.
func (f *certifyFlags) result(file string, o certify.Options, s *subject, certificates []certify.Certificate, unsmoothed []int, finished []bool) certifyResult {
	of := f.url
	if s.model != nil {
		of = s.model.ID()
	}
	r := certifyResult{File: file, Model: of, Noise: f.noise, Scale: f.scale, Units: f.units, Norm: "L2", Certificate: f.method, Of: f.of,
		Bound: f.bound, Samples: o.Samples, Alpha: o.Alpha, Seed: f.seed, Widths: o.Noise.Widths, Rows: []certifiedRow{}}
	if o.Noise.Family == certify.Laplace {
		r.Norm = "L1"
	}
	for _, column := range s.moved {
		r.Moved = append(r.Moved, column.Name)
	}
	var these []certify.Certificate
	var labels []int
	for i, c := range certificates {
		if !finished[i] {
			continue
		}
		row := certifiedRow{Row: i, Radius: c.Radius, Abstained: c.Prediction == certify.Abstain, Unsmoothed: s.names[unsmoothed[i]], Sum: c.Sum, Next: c.Next}
		if !row.Abstained {
			row.Prediction = &s.names[c.Prediction]
		}
		if s.labels != nil {
			row.Label = &s.names[s.labels[i]]
			these, labels = append(these, c), append(labels, s.labels[i])
		}
		r.Rows = append(r.Rows, row)
	}
	for _, size := range f.sizes {
		if len(these) > 0 {
			r.Accuracy = append(r.Accuracy, certifiedAccuracy{size, certify.Accuracy(these, labels, size)})
		}
	}
	return r
}

func (r certifyResult) print(out io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "csv":
		return r.printCSV(out)
	}
	return r.printTable(out)
}

func (r certifyResult) printCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	head := []string{"row", "prediction", "radius", "abstained"}
	labelled := len(r.Rows) > 0 && r.Rows[0].Label != nil
	if labelled {
		head = append(head, "label")
	}
	w.Write(head)
	for _, row := range r.Rows {
		line := []string{strconv.Itoa(row.Row), row.shown(""), strconv.FormatFloat(row.Radius, 'g', -1, 64), strconv.FormatBool(row.Abstained)}
		if labelled {
			line = append(line, *row.Label)
		}
		w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// shown is the prediction, or what is shown instead where there is none.
func (row certifiedRow) shown(abstained string) string {
	if row.Prediction == nil {
		return abstained
	}
	return *row.Prediction
}

func (r certifyResult) printTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "ROW\tPREDICTION\tRADIUS\tABSTAINED"
	labelled := len(r.Rows) > 0 && r.Rows[0].Label != nil
	if labelled {
		head += "\tLABEL"
	}
	fmt.Fprintln(w, head)
	radii := make([]float64, 0, len(r.Rows))
	alike, ceiling, all := 0, 0, 0.
	for _, row := range r.Rows {
		if row.Sum == float64(r.Samples) {
			ceiling, all = ceiling+1, max(all, row.Radius)
		}
		if row.shown("") == row.Unsmoothed {
			alike++
		}
		radius, abstained := fmt.Sprintf("%.4f", row.Radius), "no"
		if row.Abstained {
			radius, abstained = "-", "yes"
		} else {
			radii = append(radii, row.Radius)
		}
		line := []string{strconv.Itoa(row.Row), row.shown("-"), radius, abstained}
		if labelled {
			line = append(line, *row.Label)
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	unit := "in the columns' own units"
	if r.Units == "sd" {
		unit = "in standard deviations of the columns"
	}
	fmt.Fprintf(out, "\n%s rows, %s abstained", thousands(int64(len(r.Rows))), thousands(int64(len(r.Rows)-len(radii))))
	if len(radii) > 0 {
		slices.Sort(radii)
		fmt.Fprintf(out, "; median radius of the others %.4f, %s norm, %s", radii[len(radii)/2], r.Norm, unit)
	}
	fmt.Fprintf(out, "\nThe model without noise predicts the same as %s of the certificates", thousands(int64(alike)))
	if ceiling > 0 && r.Of == "labels" {
		fmt.Fprintf(out, "; %s %s the largest radius that so many draws can show, %.4f", thousands(int64(ceiling)), map[bool]string{true: "has", false: "have"}[ceiling == 1], all)
	}
	fmt.Fprintf(out, "\n%s noise of scale %v on %d columns, %s certificate, %s of %s, %s draws a row, a row's alpha %.3g, seed %d\n",
		r.Noise, r.Scale, len(r.Moved), r.Certificate, r.Bound, r.Of, thousands(int64(r.Samples)), r.Alpha, r.Seed)
	if len(r.Accuracy) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "ATTACK SIZE\tCERTIFIED ACCURACY")
	for _, a := range r.Accuracy {
		fmt.Fprintf(w, "%v\t%.4f\n", a.Size, a.Accuracy)
	}
	return w.Flush()
}
