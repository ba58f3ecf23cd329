//go:build !linux

package holdout

// newRoom returns ordinary memory: the limits of the decoding process hold on Linux alone too.
func newRoom(string, int64) (*room, error) { return nil, nil }

func (r *room) close() error { return nil }

func (r *room) rest() {}

func (r *room) restOf([]uint32) {}
