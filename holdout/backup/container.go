package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Format names the format of a backup and its version.
const (
	formatName    = "holdoutd-backup/"
	formatVersion = 1
	Format        = formatName + "1"
)

// Members of the archive that are no files of holdouts, in their order: what it is first, and the list of all last.
const (
	headerMember   = "backup.json"
	serverKey      = "server.key"
	adminKey       = "admin.key"
	ledgerMember   = "ledger.jsonl"
	manifestMember = "manifest.json"

	holdoutsDir = "holdouts"
)

// Limits of what is read. A backup of the largest server stays far below them.
const (
	maxHeader   = 1 << 16
	maxManifest = 256 << 20 // some 500 bytes a file and a holdout
	maxKeyFile  = 4096
	maxMembers  = 1 << 20
	// maxWindow is how much memory the decoder of zstd may take for what it refers back to: the encoder's own window.
	maxWindow = 8 << 20
	// maxScrypt is the largest work factor of a passphrase that is tried, as a power of two: 1 GiB of memory.
	maxScrypt = 20
)

// Header is the first member: what the backup is.
type Header struct {
	Format  string    `json:"format"`
	Created time.Time `json:"created"`
	Program string    `json:"program"` // the version that wrote it
	// Tables and ServerKey say whether the tables and the keys of the server are in it.
	Tables    bool `json:"tables"`
	ServerKey bool `json:"server_key"`
	// Bytes are those of the tables that were found at the beginning, for the progress and the room that a restore needs.
	Bytes int64 `json:"bytes"`
}

// File is a member of the archive.
type File struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Holdout is where a holdout stood.
type Holdout struct {
	ID      string        `json:"id"`
	Name    string        `json:"name,omitempty"`
	Seq     int64         `json:"seq"` // of the last entry of its chain
	Head    string        `json:"head"`
	Answers int64         `json:"answers"`
	Voids   int64         `json:"voids"`
	Spent   ledger.Meters `json:"spent"`
	Limits  ledger.Meters `json:"limits"`
	Deleted bool          `json:"deleted,omitempty"`
	// Without says why the tables of a holdout that is not deleted are not in the backup; "" where they are.
	Without string `json:"without,omitempty"`
}

// Manifest is the last member: all of the backup.
type Manifest struct {
	Header
	Holdouts []Holdout `json:"holdouts"` // in the order of their creation
	Files    []File    `json:"files"`    // in their order, but for this one
}

// LeftOut is why there are no tables in a backup of the ledger alone.
const LeftOut = "left out"

// ErrDamaged: the file is no backup, or not the whole of one.
var ErrDamaged = errors.New("the backup is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// component is a name of a file or a directory in a backup: no dot in front, so neither "..", nor what is hidden or temporary.
var component = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// holdoutOf is the holdout that a file belongs to: holdouts/ID/NAME, holdouts/ID/PART/NAME, or holdouts/ID/SEGMENTS/SEGMENT/NAME of a part in segments. ok is false for every other path.
func holdoutOf(path string) (id string, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) < 3 || len(parts) > 5 || parts[0] != holdoutsDir || len(parts) == 5 && !holdout.Segments(parts[2]) {
		return "", false
	}
	for _, part := range parts[1:] {
		if !component.MatchString(part) {
			return "", false
		}
	}
	return parts[1], true
}

// rank orders the members; -1 is no member.
func rank(path string) int {
	switch path {
	case headerMember:
		return 0
	case serverKey:
		return 2
	case adminKey:
		return 3
	case ledgerMember:
		return 4
	case manifestMember:
		return 5
	}
	if _, ok := holdoutOf(path); ok {
		return 1
	}
	return -1
}

// sum is a SHA-256 on its way.
type sum struct{ hash.Hash }

func newSum() sum { return sum{sha256.New()} }

// text is how cards say it.
func (s sum) text() string { return "sha256:" + hex.EncodeToString(s.Sum(nil)) }
