package dataset

import "fmt"

var kindNames = [...]string{Number: "number", Bool: "bool", Text: "text", Time: "time"}

// Valid reports whether k is one of the four kinds.
func (k Kind) Valid() bool { return k >= Number && k <= Time }

// String returns "number", "bool", "text" or "time".
func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// MarshalText writes the name of the kind; an invalid kind is an error.
func (k Kind) MarshalText() ([]byte, error) {
	if !k.Valid() {
		return nil, fmt.Errorf("dataset: %v is no kind of column", k)
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(text []byte) error {
	for i := Number; i <= Time; i++ {
		if kindNames[i] == string(text) {
			*k = i
			return nil
		}
	}
	return fmt.Errorf("dataset: %q is no kind of column", text)
}
