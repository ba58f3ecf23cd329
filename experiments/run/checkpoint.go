package run

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Checkpoint is a file that holds what is finished of one run, so that the same run continues after an interruption:
// a line of JSON for the run's identity, then one for every finished piece of work. A line that a crash cut short is dropped.
// A nil Checkpoint stores nothing. Its methods do not overlap.
type Checkpoint struct {
	file   *os.File
	known  map[string]map[int]json.RawMessage // by part and index
	taken  int
	before time.Duration
	peak   int64
}

// identity is what has to be equal for a run to continue another.
type identity struct {
	Experiment  string            `json:"experiment"`
	Seed        uint64            `json:"seed"`
	Repetitions int               `json:"repetitions"`
	Quick       bool              `json:"quick"`
	Set         map[string]string `json:"set,omitempty"`
	Program     string            `json:"program"` // digest of the executable: other code may find other numbers
}

// entry is a line after the first: a piece of work, or the end of a session.
type entry struct {
	Part  string          `json:"part,omitempty"`
	Index int             `json:"index"`
	Value json.RawMessage `json:"value,omitempty"`

	Wall time.Duration `json:"wall_ns,omitempty"`    // how long a session took
	Peak int64         `json:"peak_bytes,omitempty"` // resident memory of a session at its largest
}

// OtherRunError says that a directory has what another run has finished, and how that run differs.
type OtherRunError struct {
	Path  string
	Other string // in words
}

func (e *OtherRunError) Error() string {
	return fmt.Sprintf("experiments: %s has results of another run: %s; name another directory, or remove this one", filepath.Dir(e.Path), e.Other)
}

// difference says in words how another run differs from this one.
func (id identity) difference(other identity) string {
	set := func(i identity) string {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(i.Set)) {
			words = append(words, "--"+name+"="+i.Set[name])
		}
		return strings.Join(words, " ")
	}
	switch {
	case other.Experiment != id.Experiment:
		return fmt.Sprintf("of the experiment %q", other.Experiment)
	case other.Seed != id.Seed:
		return fmt.Sprintf("--seed %d, not %d", other.Seed, id.Seed)
	case other.Quick != id.Quick:
		return fmt.Sprintf("--quick is %v, not %v", other.Quick, id.Quick)
	case other.Repetitions != id.Repetitions:
		return fmt.Sprintf("--repetitions %d, not %d (0 is the default)", other.Repetitions, id.Repetitions)
	case set(other) != set(id):
		return fmt.Sprintf("%q, not %q", set(other), set(id))
	}
	return "by another build of the program, which may find other numbers"
}

// OpenCheckpoint opens or makes the file for a run of an experiment. A file in which another run, or another executable, has finished
// anything is refused with an [OtherRunError]; one in which it has not is begun anew.
func OpenCheckpoint(path string, e Experiment, o Options) (*Checkpoint, error) {
	id := identity{Experiment: e.Name, Seed: o.Seed, Repetitions: o.Repetitions, Quick: o.Quick, Set: e.public(o)}
	var err error
	if id.Program, err = programDigest(); err != nil {
		return nil, fmt.Errorf("experiments: checkpoint: %w", err)
	}
	first, err := json.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("experiments: checkpoint: %w", err)
	}
	first = append(first, '\n')
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("experiments: checkpoint: %w", err)
	}
	c := &Checkpoint{file: file, known: map[string]map[int]json.RawMessage{}}
	end, err := c.read(first)
	var other *OtherRunError
	if errors.As(err, &other) {
		file.Close()
		other.Path = path
		return nil, err
	}
	if err == nil && end == 0 {
		if err = file.Truncate(0); err == nil {
			_, err = file.WriteAt(first, 0)
			end = int64(len(first))
		}
	} else if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("experiments: checkpoint %s: %w", path, err)
	}
	return c, nil
}

// read takes what the file knows and returns where its last whole line ends, 0 where the file is of another run.
func (c *Checkpoint) read(first []byte) (end int64, err error) {
	in := bufio.NewReader(c.file)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		if end == 0 {
			if !bytes.Equal(line, first) {
				return 0, refused(line, first, in)
			}
		} else {
			var e entry
			if json.Unmarshal(line, &e) != nil {
				return end, nil
			}
			c.before += e.Wall
			c.peak = max(c.peak, e.Peak)
			if e.Part != "" {
				if c.known[e.Part] == nil {
					c.known[e.Part] = map[int]json.RawMessage{}
				}
				c.known[e.Part][e.Index] = e.Value
			}
		}
		end += int64(len(line))
	}
}

// refused is the error for a file that begins with another line than this run's, if anything follows it.
func refused(line, first []byte, rest *bufio.Reader) error {
	if _, err := rest.ReadByte(); err != nil {
		return nil
	}
	var other, own identity
	if json.Unmarshal(line, &other) != nil || other.Experiment == "" || json.Unmarshal(first, &own) != nil {
		return errors.New("not a file of an experiment")
	}
	return &OtherRunError{Other: own.difference(other)}
}

// load sets *v to what is known of a piece of work, if anything is.
func (c *Checkpoint) load(part string, index int, v any) (known bool, err error) {
	if c == nil {
		return false, nil
	}
	raw, known := c.known[part][index]
	if !known {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, fmt.Errorf("experiments: checkpoint: %s, %d: %w", part, index, err)
	}
	c.taken++
	return true, nil
}

// store appends a finished piece of work.
func (c *Checkpoint) store(part string, index int, v any) error {
	if c == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("experiments: checkpoint: %s, %d: %w", part, index, err)
	}
	return c.append(entry{Part: part, Index: index, Value: raw})
}

func (c *Checkpoint) append(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("experiments: checkpoint: %w", err)
	}
	if _, err := c.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("experiments: checkpoint: %w", err)
	}
	return nil
}

// Taken is how many pieces of work were known from earlier sessions.
func (c *Checkpoint) Taken() int {
	if c == nil {
		return 0
	}
	return c.taken
}

// Close ends a session that took a time and, at its largest, a resident memory in bytes.
func (c *Checkpoint) Close(wall time.Duration, peak int64) error {
	return errors.Join(c.append(entry{Wall: wall, Peak: peak}), c.file.Close())
}

// programDigest names the running executable by its content.
func programDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// public are the set flags that may be written to a file.
func (e Experiment) public(o Options) map[string]string {
	out := map[string]string{}
	for _, f := range e.Flags {
		if v, ok := o.Set[f.Name]; ok && !f.Secret && v != f.Default {
			out[f.Name] = v
		}
	}
	return out
}
