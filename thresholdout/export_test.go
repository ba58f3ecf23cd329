package thresholdout

// Register adds a mechanism to the table for a test, as a line of the table in table.go does, and returns what takes it out again.
func Register(k Kind) (remove func()) {
	before := kinds
	kinds = append(Kinds(), k)
	return func() { kinds = before }
}
