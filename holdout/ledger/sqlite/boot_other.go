//go:build unix && !linux && !darwin

package sqlite

// boot is empty where nothing names a run of the kernel: an owner that did not end well is asked whether it is alive.
func boot() string { return "" }
