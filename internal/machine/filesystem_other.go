//go:build !linux && !darwin

package machine

// filesystem knows no kinds here.
func filesystem(string) (int, error) { return 0, nil }

var unsafe map[int]unsafeFS
