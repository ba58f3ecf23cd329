//go:build !linux

package dataset

import "os"

func beginWriting(*os.File, int64, int64) {}

func giveBack(*os.File, int64, int64) {}

func writtenSoFar(f *os.File) error { return f.Sync() }
