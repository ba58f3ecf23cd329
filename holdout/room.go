package holdout

import "unsafe"

// roomOnHeap is how much of a split's working memory may be ordinary memory. Tables of a few million rows need no more.
const roomOnHeap = 64 << 20

// room is where the arrays of a split lie: the orders, tags and sides of units, some tens of bytes a row. For a large table that is a
// file, mapped and already without a name, so that the server's own memory does not grow with the rows: the kernel writes the pages
// out when others need the memory. Its blocks are reserved before anything is computed: a disk that is too small refuses the upload then, and
// not in the middle of it by a fault. A nil room is ordinary memory.
type room struct {
	mapping []byte
	used    int
}

// makeIn returns n zeros in the room, or in ordinary memory where the room is nil or full. Room is never given back before its end.
func makeIn[T bool | side | uint16 | uint32 | uint64 | float64](r *room, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if r == nil || n == 0 || size > len(r.mapping)-r.used {
		return make([]T, n)
	}
	list := unsafe.Slice((*T)(unsafe.Pointer(&r.mapping[r.used])), n)
	r.used += (size + 63) &^ 63 // aligned for every type, in lines of their own
	return list
}

// turnOf is how many units are read before the memory of a room is given back.
const turnOf = 1 << 22

// inTurns calls do with all of 0..n-1, in order and some at a time, and gives the memory of the room back behind each.
func (r *room) inTurns(n int, do func(from, to int)) {
	for from := 0; from < n; from += turnOf {
		do(from, min(from+turnOf, n))
		r.rest()
	}
}
