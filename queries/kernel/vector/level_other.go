//go:build !amd64

package vector

func detected() Level { return None }
