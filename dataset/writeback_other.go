//go:build !linux

package dataset

import "os"

func beginWriting(*os.File, int64, int64) {}
