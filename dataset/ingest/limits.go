package ingest

import (
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// The limits of [DefaultLimits].
const (
	// DefaultMaxColumns is far above the 10,000 features of the widest tables that people analyse in one piece.
	DefaultMaxColumns = 16384
	// DefaultMaxFileBytes is what one disk and one evening can bear; the HTTP layer sets what it accepts.
	DefaultMaxFileBytes = 64 << 30
	// DefaultMaxFooterBytes holds 16,384 columns in 60 row groups; a footer becomes about eight times its size in memory.
	DefaultMaxFooterBytes = 128 << 20
	// DefaultMaxExpansion bounds decoded bytes by the file's. Real tables expand 2 to 30 times, one-hot columns about
	// 100 times; a bomb of constant rows expands millions of times.
	DefaultMaxExpansion = 200
	// DefaultFreeExpansionBytes may be decoded from any file, however small, so that small files of constant columns
	// work: a million rows of 150 truths, or two million of four numbers. The server works on it for some two seconds, where columns are few.
	DefaultFreeExpansionBytes = 256 << 20
	// RowBytes is what each row counts among the decoded bytes, beside its values. Tagging, ordering, dividing and digesting a row takes the server 0.65 µs,
	// as long as a dozen numbers take, however few bytes of a file say it.
	RowBytes = 96
	// DefaultMaxOutputBytes is the decoded size of 2^31 rows of 16 numbers.
	DefaultMaxOutputBytes = 256 << 30
	// DefaultMaxPageBytes is far above the 1 MiB that writers use; some write a whole row group as one page.
	DefaultMaxPageBytes = 256 << 20
	// DefaultMemoryBytes holds one page (256 MiB decompressed), its dictionary and the texts of one column.
	DefaultMemoryBytes = 2 << 30
	// LeastMemoryBytes decodes tables as common writers write them, with pages of up to 8 MiB.
	LeastMemoryBytes = 64 << 20
	// DefaultMaxTexts bounds the dictionary of a column. A text column above it is free text or a key, about which no
	// statistical question can be asked.
	DefaultMaxTexts = 1 << 22
	// DefaultMaxTextBytes bounds the distinct texts of a table, all its columns together, each text with 16 bytes more
	// than it is long: queries look at every one of them.
	DefaultMaxTextBytes = 256 << 20
	// DefaultMaxTextLength is the longest text of a category. Names, addresses, labels and codes are far below it; a
	// column with a longer one holds documents.
	DefaultMaxTextLength = 64 << 10
	// MaxNameLength is the longest name of a column, in bytes: whole questions of surveys are below it.
	MaxNameLength = 1 << 10
	// MaxNameBytes bounds the names of all columns together: 16,384 of 256 bytes. They are on the card, in the ledger and in each list of holdouts.
	MaxNameBytes = 4 << 20
	// DefaultCPU decodes about ten billion values.
	DefaultCPU = 30 * time.Minute
	// DefaultWall ends a child that waits for ever.
	DefaultWall = time.Hour
)

// Limits bound what decoding one file may take. The zero value of a field means its default.
type Limits struct {
	MaxFileBytes       int64         `json:"max_file_bytes"`
	MaxFooterBytes     int64         `json:"max_footer_bytes"`
	MaxRows            int64         `json:"max_rows"`
	MaxColumns         int           `json:"max_columns"`
	MaxExpansion       int64         `json:"max_expansion"`        // decoded bytes per byte of the file, beside FreeExpansionBytes
	FreeExpansionBytes int64         `json:"free_expansion_bytes"` // decoded bytes that are allowed for any file
	MaxOutputBytes     int64         `json:"max_output_bytes"`     // of the decoded columns; RLIMIT_FSIZE of the child
	MaxPageBytes       int64         `json:"max_page_bytes"`       // of a page, decompressed
	MemoryBytes        int64         `json:"memory_bytes"`         // that the child may take beside what its runtime has mapped, see limitProcess
	MaxTexts           int           `json:"max_texts"`            // distinct texts of a column; a column with more is skipped
	MaxTextBytes       int64         `json:"max_text_bytes"`       // distinct texts of a table; a column that goes beyond is skipped
	MaxTextLength      int           `json:"max_text_length"`      // bytes of a text; a column with a longer one is skipped
	CPU                time.Duration `json:"cpu"`                  // RLIMIT_CPU of the child, in whole seconds
	Wall               time.Duration `json:"wall"`                 // after which the child is killed
}

// DefaultLimits returns the limits of the Default constants.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	orDefault(&l.MaxFileBytes, DefaultMaxFileBytes)
	orDefault(&l.MaxFooterBytes, DefaultMaxFooterBytes)
	orDefault(&l.MaxRows, dataset.MaxRows)
	l.MaxRows = min(l.MaxRows, dataset.MaxRows)
	orDefault(&l.MaxColumns, DefaultMaxColumns)
	orDefault(&l.MaxExpansion, DefaultMaxExpansion)
	orDefault(&l.FreeExpansionBytes, DefaultFreeExpansionBytes)
	orDefault(&l.MaxOutputBytes, DefaultMaxOutputBytes)
	orDefault(&l.MaxPageBytes, DefaultMaxPageBytes)
	orDefault(&l.MemoryBytes, DefaultMemoryBytes)
	l.MaxPageBytes = min(l.MaxPageBytes, l.MemoryBytes/pageShare)
	l.MaxFooterBytes = min(l.MaxFooterBytes, l.MemoryBytes/footerShare)
	orDefault(&l.MaxTexts, DefaultMaxTexts)
	orDefault(&l.MaxTextBytes, DefaultMaxTextBytes)
	orDefault(&l.MaxTextLength, DefaultMaxTextLength)
	orDefault(&l.CPU, DefaultCPU)
	orDefault(&l.Wall, DefaultWall)
	return l
}

// What the decoder takes of the memory at once, where there is less of it than the default: the defaults have the same shares.
const (
	pageShare   = 8  // a page, decompressed or not; three are held, and a dictionary of 32-bit numbers takes twice its bytes
	textShare   = 8  // the distinct texts of a column, which are held three times while they are written
	footerShare = 16 // the footer, which becomes about eight times its size
)

// largestPiece is the most that the decoder allocates at once: the numbers of a dictionary.
func largestPiece(memory int64) int64 { return 2 * memory / pageShare }

func orDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Result says what a file became.
type Result struct {
	Rows    int64          `json:"rows"`
	Schema  dataset.Schema `json:"schema"`
	Skipped []Skipped      `json:"skipped,omitempty"`
	// Orders are the categories of text columns whose writer says that their order means something, from the first to the last, by the names of the columns. It has
	// texts that no row has, too: what is told of them must be what the reader may know.
	Orders map[string][]string `json:"orders,omitempty"`
	// Categories are the text columns that pandas has as categories without an order: the writer's word, from no value.
	Categories []string `json:"categories,omitempty"`
	// Warnings are about what is taken, and may not be what its owner means.
	Warnings []Warning `json:"warnings,omitempty"`
}

// Warning is what a person should know of a column that was taken.
type Warning struct {
	Code   string `json:"code"`
	Column string `json:"column"`
	Detail string `json:"detail"`
}

// Skipped is a column of the file that the dataset does not have.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`          // its type, what is the matter, and a line that mends it
	Empty  bool   `json:"empty,omitempty"` // it has no value that is not null, whatever its type
}
