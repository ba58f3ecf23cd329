// Package strictjson finds what encoding/json forgives in a text that is valid JSON.
package strictjson

import "strconv"

// LoneSurrogate is the place of the first escape, such as \ud800, that is one half of a surrogate pair without the other
// half beside it, or -1. encoding/json reads it as U+FFFD, so that another text would be meant than was written.
// The text must be valid JSON: a backslash then occurs within strings only, and \u has four digits.
func LoneSurrogate(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(text[i:])
		switch {
		case !ok || unit < 0xd800 || unit > 0xdfff:
			i++ // over what is escaped, which may be a backslash
		case unit >= 0xdc00:
			return i
		default:
			low, ok := escapedUnit(text[i+6:])
			if !ok || low < 0xdc00 || low > 0xdfff {
				return i
			}
			i += 11
		}
	}
	return -1
}

// escapedUnit is the UTF-16 unit of an escape \uXXXX at the start of text.
func escapedUnit(text []byte) (unit uint64, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}
