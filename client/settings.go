package client

import (
	"net/url"
	"strconv"
)

// values are the settings that are not zero, as parameters.
func (s Settings) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"name": s.Name, "unit": s.Unit, "label": s.Label, "features": s.Features, "stratify": s.Stratify, "split": s.Split,
		"mechanism": s.Mechanism, "form": s.Form, "preset": s.Preset, "bounds": s.Bounds, "overlap": s.Overlap, "succeeds": s.Succeeds, "source": s.Source, "path": s.Path, "cells": s.Cells,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, value := range map[string]float64{
		"holdout": s.Holdout, "confidence": s.Confidence, "half_width": s.HalfWidth, "threshold": s.Threshold, "sigma": s.Sigma, "capped": s.Capped, "sealed": s.Sealed,
	} {
		if value != 0 {
			v.Set(name, strconv.FormatFloat(value, 'g', -1, 64))
		}
	}
	if s.Check != nil { // 0 is no check part, and not the default
		v.Set("check", strconv.FormatFloat(*s.Check, 'g', -1, 64))
	}
	for name, value := range map[string]int64{"questions": s.Questions, "tokens": s.Tokens, "rounds": s.Rounds, "largest_unit": s.LargestUnit} {
		if value != 0 {
			v.Set(name, strconv.FormatInt(value, 10))
		}
	}
	return v
}
