//go:build !linux

package ingest

import (
	"context"
	"errors"
)

var errNotLinux = errors.New("a process can only be limited on Linux")

func limitProcess(Limits) error { return errNotLinux }

const childFile = ""

// runChild refuses: without limits the child would protect nobody.
func runChild(context.Context, []string, request) (reply, error) {
	return reply{}, &Error{Kind: Internal, Detail: "uploads can only be decoded on Linux", Err: errNotLinux}
}
