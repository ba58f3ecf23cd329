package certify

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
)

//go:embed radii.json
var radiiText []byte

// radii are those of an independent program: see reference.py.
type radii struct {
	Top   float64            `json:"top"`
	Rest  float64            `json:"rest"`
	Scale float64            `json:"scale"`
	Radii map[string]float64 `json:"radii"` // by certificate
}

// formulas of the certificates, by the names that reference.py has for them.
var formulas = map[string]func(top, rest, scale float64) float64{
	"pixeldp, Gaussian":   certify.PixelDPGaussian,
	"pixeldp, Laplace":    certify.PixelDPLaplace,
	"renyi, Gaussian":     certify.RenyiGaussian,
	"smoothing, Gaussian": certify.SmoothingGaussian,
	"smoothing, Laplace":  certify.SmoothingLaplace,
}

// formulaTolerance is what radii may be off by, as a part: searches for the best order and delta stop before the last digits.
const formulaTolerance = 1e-6

// formulaChecks compare every radius function with another program's, and with published values: those of the PixelDP and smoothing code for
// their inputs.
func formulaChecks(checks *run.Checks) error {
	var all []radii
	if err := json.Unmarshal(radiiText, &all); err != nil {
		return fmt.Errorf("experiments: radii: %w", err)
	}
	for _, r := range all {
		for _, name := range slices.Sorted(maps.Keys(r.Radii)) {
			checks.Arithmetic(fmt.Sprintf("radius of %s, for %v and %v, scale %v (SciPy)", name, r.Top, r.Rest, r.Scale), r.Radii[name], formulaTolerance,
				formulas[name](r.Top, r.Rest, r.Scale))
		}
	}
	top, _, err := certify.ClopperPearson.Ends(9200, 9200, 10_000, 0.005)
	if err != nil {
		return err
	}
	_, rest, err := certify.ClopperPearson.Ends(400, 400, 10_000, 0.005)
	if err != nil {
		return err
	}
	cohen, _, err := certify.ClopperPearson.Ends(99_900, 99_900, 100_000, 0.001)
	if err != nil {
		return err
	}
	checks.Arithmetic("PixelDP's radius, Laplace, 9200 and 400 of 10,000 draws, L = 0.1, eps = 1 (its code)", 0.15013514191845664, formulaTolerance,
		certify.PixelDPLaplace(top, rest, 0.1))
	checks.Arithmetic("Cohen's radius, 99,900 of 100,000 draws, sigma = 0.25, alpha = 0.001 (its code)", 0.750050247, formulaTolerance,
		certify.SmoothingGaussian(cohen, 1-cohen, 0.25))
	return nil
}
