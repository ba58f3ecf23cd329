package dataset

// CorruptError says that the files of a dataset are damaged or were not written by this package.
type CorruptError struct {
	Path   string // the file, or the directory
	Detail string // what is wrong with it
	Err    error  // the cause, or nil
}

// Error names the file and what is wrong.
func (e *CorruptError) Error() string {
	s := "dataset: " + e.Path + " is damaged: " + e.Detail
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }
