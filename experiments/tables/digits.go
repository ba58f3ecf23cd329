package tables

import (
	"math/rand/v2"
	"sync"

	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// A digit is 8 by 8 pixels, of one of ten classes.
const (
	DigitPixels  = 64
	DigitClasses = 10
	digitWhite   = 16 // the largest value of a pixel
)

// Digits decodes the handwritten digits, once: pixels in [0,1], in the order of the file.
var Digits = sync.OnceValues(func() (learn.Data, error) {
	digits := learn.Data{Dim: DigitPixels, Classes: DigitClasses}
	columns, rows, err := decode("digits", data.Digits)
	if err != nil {
		return digits, err
	}
	digits.X, digits.Y = make([]float64, rows*DigitPixels), make([]int, rows)
	pixel := 0
	for _, column := range columns {
		if column.Name == "label" {
			for i, v := range column.Numbers {
				digits.Y[i] = int(v)
			}
			continue
		}
		for i, v := range column.Numbers {
			digits.X[i*DigitPixels+pixel] = v / digitWhite
		}
		pixel++
	}
	return digits, nil
})

// SplitDigits draws a training part of so many digits, and returns it and the others, each in the order drawn. Equal seeds draw alike.
func SplitDigits(seed uint64, size int) (training, others learn.Data, err error) {
	all, err := Digits()
	if err != nil {
		return training, others, err
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(all.Len())
	return all.Subset(order[:size]), all.Subset(order[size:]), nil
}
