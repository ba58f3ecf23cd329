package tables

import (
	"testing"
)

// TestDigits: the embedded table is the one whose first digit is a 0 and whose sums are known.
func TestDigits(t *testing.T) {
	d, err := Digits()
	if err != nil {
		t.Fatal(err)
	}
	sum, labels := 0.0, 0
	for _, v := range d.X {
		sum += v * digitWhite
	}
	for _, y := range d.Y {
		labels += y
	}
	if d.Len() != 1797 || sum != 561718 || labels != 8070 || d.Y[0] != 0 || d.Row(0)[2]*digitWhite != 5 {
		t.Errorf("%d digits, pixels sum to %v, labels to %d", d.Len(), sum, labels)
	}
}
