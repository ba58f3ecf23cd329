package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
)

// streamBuffer is how much of a column chunk is read at once; a chunk is never in memory as a whole.
const streamBuffer = 1 << 20

// Decode writes the Parquet file at path as a dataset to dir, which must not exist. When it fails it returns an
// [*Error] and leaves no directory. The dataset is one that passes: nothing of it is made durable. It trusts nothing in the file, and a panic becomes an
// error, but memory can only be bounded by the process that it runs in: see [Run].
//
//   - INT8 to INT64, UINT8 to UINT64, FLOAT16, FLOAT, DOUBLE become Number. A column of integers with any value
//     beyond ±2^53, which a float64 cannot hold, becomes Text of decimal digits.
//   - DECIMAL becomes Number, each value the nearest float64; without a fraction it is read as integers are.
//   - TIME becomes Number of seconds since midnight, which the field's note says.
//   - DATE (at midnight), TIMESTAMP and INT96 become Time, nanoseconds floored to microseconds. Timestamps without
//     a time zone are taken as UTC. The infinities of DuckDB and PostgreSQL become infinite nulls, as those of floats do.
//   - BOOLEAN becomes Bool.
//   - STRING, ENUM, JSON and UUID become Text. A text column that holds bytes that are not UTF-8, a text longer than the
//     limits allow, or more distinct texts, is skipped.
//   - Arrow's durations, which Parquet does not know, become Number in the file's unit; source and note name it. So do pandas' periods and Spark's intervals; the note names those.
//   - Nested and encrypted columns, binary without a text annotation, INTERVAL, BSON, columns of the null type and of
//     logical types that are newer than this program are skipped.
//
// A page is only decoded when it is whole: its checksum where it has one, its size, its levels and the number of its
// values must be what its header says.
func Decode(ctx context.Context, path, dir string, lim Limits) (Result, error) {
	return DecodeAs(ctx, path, dir, lim, nil)
}

// DecodeAs is Decode where columns by these names are read as another part of the same table has them: integers and decimals without a fraction ([Whole]) as Text of
// digits, and columns without any value ([Skipped].Empty) as nulls of any kind. What else as names is read as Decode does.
func DecodeAs(ctx context.Context, path, dir string, lim Limits, as map[string]dataset.Kind) (Result, error) {
	return decodeFile(ctx, func() (*os.File, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, notRead(err)
		}
		return f, nil
	}, dir, lim, as)
}

// decodeFile is DecodeAs of what open opens.
func decodeFile(ctx context.Context, open func() (*os.File, error), dir string, lim Limits, as map[string]dataset.Kind) (res Result, err error) {
	lim = lim.withDefaults()
	d := &decoder{ctx: ctx, lim: lim, as: as, pages: newPages(lim.MaxPageBytes)}
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Kind: Damaged, Detail: "the file cannot be decoded", Err: fmt.Errorf("panic: %v", r)}
		}
		if err != nil {
			res, err = Result{}, classify(err, d.decoded)
			if d.writer != nil {
				err = errorsJoin(err, d.writer.Abort())
			}
		}
	}()
	if err := d.open(open); err != nil {
		return Result{}, err
	}
	defer d.source.Close()
	if err := d.plan(); err != nil {
		return Result{}, err
	}
	if err := d.write(dir); err != nil {
		return Result{}, err
	}
	return d.result, nil
}

type decoder struct {
	ctx     context.Context
	lim     Limits
	source  *os.File
	size    int64
	meta    *metadata
	rows    int64
	decoded int64     // bytes of the columns without the texts
	columns []*column // those that are read
	unsaid  []unsaid
	as      map[string]dataset.Kind
	doubted map[string]bool // columns that a warning about the footer names
	writer  *dataset.Writer
	pages   *pages
	filled  []int   // the row groups that have rows
	lanes   []*lane // made at need
	alone   bool    // the lanes were given up

	orderBytes int // of the orders in the result

	batch  batch
	result Result
}

// unsaid is a column of bytes that is skipped because nothing says what they are, and where it stands among those that are skipped. If it has no bytes at all, that is the reason.
type unsaid struct {
	column  *column
	skipped int
}

// open checks the outer form of the file and reads the footer.
func (d *decoder) open(open func() (*os.File, error)) error {
	f, err := open()
	if err != nil {
		return err
	}
	d.source = f
	if err := d.checkFrame(); err != nil {
		return errorsJoin(err, f.Close())
	}
	if err := d.readFooter(); err != nil {
		return errorsJoin(err, f.Close())
	}
	return nil
}

// checkFrame looks at the magic at both ends and the length of the footer.
func (d *decoder) checkFrame() error {
	info, err := d.source.Stat()
	if err != nil {
		return notRead(err)
	}
	d.size = info.Size()
	switch {
	case d.size == 0:
		return refuse(Empty, "the file is empty; upload a Parquet file")
	case d.size > d.lim.MaxFileBytes:
		return refuse(TooLarge, "the file has %d bytes, the limit is %d", d.size, d.lim.MaxFileBytes)
	}
	var head [4]byte
	var tail [8]byte
	if d.size >= 12 {
		_, err1 := d.source.ReadAt(head[:], 0)
		_, err2 := d.source.ReadAt(tail[:], d.size-8)
		if err := errors.Join(err1, err2); err != nil {
			return notRead(err)
		}
	}
	first, last := string(head[:]), string(tail[4:])
	switch {
	case first == "PARE" || last == "PARE":
		return refuse(Unsupported, "the file is encrypted; upload it decrypted")
	case first == "PAR1" && last != "PAR1":
		return refuse(Damaged, "the file begins as Parquet but does not end so; it was probably cut short")
	case first != "PAR1":
		return refuse(NotParquet, "the file is not Parquet; convert it, for example with pandas: df.to_parquet('table.parquet')")
	}
	if footer := int64(binary.LittleEndian.Uint32(tail[:4])); footer+12 > d.size {
		return refuse(Damaged, "the footer is longer than the file")
	} else if footer > d.lim.MaxFooterBytes {
		return refuse(TooLarge, "the footer has %d bytes, the limit is %d; write the file with fewer row groups", footer, d.lim.MaxFooterBytes)
	}
	return nil
}

// plan reads the schema and checks every number of the footer that memory or time will depend on.
func (d *decoder) plan() error {
	meta := d.meta
	columns := len(meta.schema.leaves)
	if n := max(columns, len(meta.schema.fields)); n > d.lim.MaxColumns {
		return refuse(TooManyColumns, "the file has %d columns, the limit is %d", n, d.lim.MaxColumns)
	}
	if err := d.planColumns(); err != nil {
		return err
	}
	for i, group := range meta.groups {
		n := group.rows
		if n < 0 || n > d.lim.MaxRows-d.rows {
			if n < 0 {
				return refuse(Damaged, "row group %d has a negative number of rows", i)
			}
			return refuse(TooLarge, "the file has more than %d rows, which is the limit", d.lim.MaxRows)
		}
		d.rows += n
		if n > 0 {
			d.filled = append(d.filled, i)
		}
		if group.count != columns {
			return refuse(Damaged, "row group %d has %d columns, the schema %d", i, group.count, columns)
		}
	}
	switch {
	case meta.rows != d.rows:
		return refuse(Damaged, "the footer says %d rows, its row groups have %d", meta.rows, d.rows)
	case len(meta.schema.fields) == 0:
		return refuse(NoUsableColumns, "the file has no columns")
	case d.rows == 0:
		return refuse(NoRows, "the file has columns but no rows")
	case len(d.columns) == 0:
		return d.noColumns()
	}
	return d.checkExpansion()
}

func (d *decoder) noColumns() error {
	detail := "no column can be used: the file has none"
	if len(d.result.Skipped) > 0 {
		s := d.result.Skipped[0]
		detail = fmt.Sprintf("no column can be used; %q, for example, was skipped (%s)", s.Name, s.Reason)
	}
	return refuse(NoUsableColumns, "%s", detail)
}

// checkExpansion refuses a file that says much more than its bytes can mean. A few hundred bytes of Parquet can
// stand for billions of equal values; a reader that streams would fill the disk with them. The texts are added as they
// come, see addTexts.
func (d *decoder) checkExpansion() error {
	var width int64
	for _, c := range d.columns {
		width += c.kind.Width()
	}
	d.decoded = width * d.rows // below 16384*8*2^31, no overflow
	if err := d.checkExpanded(); err != nil {
		return err
	}
	if d.decoded > d.lim.MaxOutputBytes {
		return refuse(TooLarge, "the table would take %d bytes, the limit is %d", d.decoded, d.lim.MaxOutputBytes)
	}
	return nil
}

// checkExpanded compares what the file becomes, by what is known of it, with what it may become.
func (d *decoder) checkExpanded() error {
	became, most := d.decoded+RowBytes*d.rows, d.lim.FreeExpansionBytes+d.lim.MaxExpansion*d.size
	if became <= most {
		return nil
	}
	return refuse(TooLarge, "a file of %d bytes that says %d rows of %d columns would become %d bytes, with %d for each row; at most %d are taken from it: %d, and %d times its size. "+
		"If it holds that much, write it without compression and without dictionaries, or take fewer rows", d.size, d.rows, len(d.columns), became, RowBytes, most, d.lim.FreeExpansionBytes, d.lim.MaxExpansion)
}

// addTexts counts the texts of a finished column among the decoded bytes and against the table's budget.
func (d *decoder) addTexts() error {
	d.decoded += d.batch.textBytes
	d.batch.textsLeft -= d.batch.textBytes
	return d.checkExpanded()
}

func (d *decoder) write(dir string) (err error) {
	if d.writer, err = dataset.NewPassing(dir); err != nil {
		return err
	}
	d.batch.textsLeft = d.lim.MaxTextBytes
	for _, u := range d.unsaid {
		if !d.hasValues(u.column) {
			d.result.Skipped[u.skipped] = Skipped{Name: u.column.name, Reason: skipEmpty.reason(u.column.name, u.column.by), Empty: true}
		}
	}
	for _, c := range d.columns {
		if err := d.writeColumn(c); err != nil {
			return err
		}
	}
	if len(d.result.Schema.Fields) == 0 {
		return d.noColumns()
	}
	d.result.Rows = d.rows
	return d.writer.Close()
}

// errTooWide says that integers of the column do not fit a float64; it is then read again as text.
var errTooWide = errors.New("integers beyond ±2^53")

// skipError says that a column is left out after all, and by which line it is not.
type skipError struct {
	reason string
	mend   mend
}

func (e *skipError) Error() string { return e.reason }

// of is the reason for a column of this type.
func (e *skipError) of(source string) skip { return skip{source + ": " + e.reason, e.mend} }

func (d *decoder) writeColumn(c *column) error {
	err := d.writeColumnAs(c, c.kind)
	if errors.Is(err, errTooWide) {
		if err = d.writer.Drop(); err != nil {
			return err
		}
		c.read = c.readDigits
		err = d.writeColumnAs(c, dataset.Text)
	}
	if skip := (*skipError)(nil); errors.As(err, &skip) {
		d.result.Skipped = append(d.result.Skipped, Skipped{Name: c.name, Reason: skip.of(c.source).reason(c.name, c.by)})
		return d.writer.Drop()
	}
	return err
}

func (d *decoder) writeColumnAs(c *column, kind dataset.Kind) error {
	field := dataset.Field{Name: c.name, Kind: kind, Source: c.source, Note: c.note}
	if err := d.writer.Begin(field); err != nil {
		return err
	}
	d.batch.begin(d.lim)
	var o order
	if d.inLanes(kind) {
		err := d.readInLanes(c)
		if errors.Is(err, errLanes) {
			if err = d.writer.Drop(); err == nil {
				err = d.writeColumnAs(c, kind)
			}
			return err
		}
		if err != nil {
			return err
		}
	} else {
		for _, group := range d.filled { // some writers leave nonsense in the chunks of an empty group
			read, err := d.readChunk(d.pages, &d.batch, c, group, func(n int) error { return d.batch.writeTo(d.writer, n) })
			if err != nil {
				return err
			}
			d.compare(c, group, read)
			if c.ordered {
				o.add(&d.pages.dict)
			}
		}
	}
	if c.ordered && kind == dataset.Text {
		d.keep(c.name, o)
	}
	if c.category && kind == dataset.Text {
		d.result.Categories = append(d.result.Categories, c.name)
	}
	var dictionary []string
	if kind == dataset.Text {
		dictionary = d.batch.dictionary
		d.batch.texts, d.batch.dictionary = nil, nil // the writer needs their memory
		if err := d.addTexts(); err != nil {
			return err
		}
	}
	if err := d.writer.End(dictionary); err != nil {
		return err
	}
	d.result.Schema.Fields = append(d.result.Schema.Fields, field)
	return nil
}

// hasValues reports whether any value of a column is not null, or cannot be read.
func (d *decoder) hasValues(c *column) bool {
	for _, group := range d.filled {
		if d.ctx.Err() != nil || d.beginChunk(d.pages, c, group) != nil {
			return true
		}
		for {
			p, err := d.pages.current()
			if err != nil || p != nil && p.present > 0 {
				return true
			}
			if p == nil {
				break
			}
			p.rows = 0 // on to the next page
		}
	}
	return false
}

// readChunk reads one column of one row group, which must have exactly the rows that the footer says, and gives each batch of them away. Whatever goes wrong is an error that
// names the column and the row group.
func (d *decoder) readChunk(pages *pages, b *batch, c *column, group int, give func(n int) error) (read measured, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = c.damaged(group, fmt.Errorf("the decoder failed: %v", r))
		}
	}()
	rows := d.meta.groups[group].rows
	if err := d.beginChunk(pages, c, group); err != nil {
		return read, err
	}
	read = measured{low: math.Inf(1), high: math.Inf(-1)}
	for done := int64(0); done < rows; {
		if err := d.ctx.Err(); err != nil {
			return read, err
		}
		page, err := pages.current()
		if err != nil {
			return read, c.damaged(group, err)
		}
		if page == nil {
			return read, c.damaged(group, fmt.Errorf("it ends after %d of %d rows", done, rows))
		}
		n, err := c.read(b, page)
		skip := (*skipError)(nil)
		switch {
		case errors.Is(err, errTooWide), errors.As(err, &skip):
			return read, err
		case err != nil:
			return read, c.damaged(group, err)
		}
		read.add(b, n)
		if err := give(n); err != nil {
			return read, err
		}
		done += int64(n)
	}
	return read, nil
}

// compare holds what the footer says of a chunk against what was read of it.
func (d *decoder) compare(c *column, group int, read measured) {
	if s := d.meta.statisticsOf(&d.meta.chunks[d.meta.groups[group].first+c.index]); !d.doubted[c.name] && d.contradicts(c, s, read) {
		d.doubt(c.name)
	}
}

// beginChunk compares what the footer says of a chunk with the file's size and the group's rows, and turns to its pages.
func (d *decoder) beginChunk(pages *pages, c *column, group int) error {
	rows := d.meta.groups[group].rows
	chunk := &d.meta.chunks[d.meta.groups[group].first+c.index]
	if !chunk.described {
		return c.damaged(group, errors.New("the footer does not say where it lies"))
	}
	if chunk.elsewhere {
		return &Error{Kind: Unsupported, Column: c.name, Detail: "its values are in another file; upload that file, or write one file of all"}
	}
	if !d.meta.isOf(chunk, c.name) {
		return c.damaged(group, errors.New("the chunk in its place says that it is of another column"))
	}
	if chunk.values != rows {
		return c.damaged(group, fmt.Errorf("it has %d values for %d rows", chunk.values, rows))
	}
	start, length := chunk.dataOffset, chunk.compressed
	if chunk.dictionaryOffset > 0 {
		start = min(start, chunk.dictionaryOffset)
	}
	if start < 0 || length < 0 || start > d.size || length > d.size-start {
		return c.damaged(group, errors.New("it lies outside of the file"))
	}
	if chunk.physical != c.physical {
		return c.damaged(group, errors.New("it has another type than the schema"))
	}
	if d.meta.padded {
		length = min(length+oldPadding, d.size-start)
	}
	if !chunk.codec.read() {
		return &Error{Kind: Unsupported, Column: c.name,
			Detail: fmt.Sprintf("the column is compressed by the codec %v, which is not read; write the file again with zstd", chunk.codec)}
	}
	pages.begin(d.source, start, length, rows, chunk.codec, c.form)
	return nil
}

// classify makes an *Error of whatever went wrong while a dataset of so many bytes, as far as is known, was written.
func classify(err error, decoded int64) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{Kind: Limit, Detail: "decoding was stopped before it was done", Err: err}
	case errors.Is(err, syscall.EFBIG):
		return &Error{Kind: Limit, Detail: "the decoded table is larger than the limit", Err: err}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{Kind: DiskFull, Detail: fmt.Sprintf("the server's disk is full: the decoded table needs at least %d bytes; make room and send the file again", decoded), Err: err}
	case machineFault(err):
		return &Error{Kind: Unavailable, Detail: "the server's disk or system failed while the file was decoded; send the file again", Err: err}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &Error{Kind: Damaged, Detail: "the file ends too early", Err: err}
	}
	return &Error{Kind: Internal, Detail: "the dataset cannot be written", Err: err}
}

// machineFault reports an error of the system that says nothing about the file: the same file can succeed later.
func machineFault(err error) bool {
	for _, e := range []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN,
		syscall.EACCES, syscall.EPERM, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// notRead is about an upload that the server has stored and cannot read.
func notRead(err error) *Error {
	kind := Internal
	if machineFault(err) && !errors.Is(err, syscall.ENOENT) {
		kind = Unavailable
	}
	return &Error{Kind: kind, Detail: "the uploaded file was stored and cannot be read; send it again", Err: err}
}

// errorsJoin keeps err as it is when there is no second error.
func errorsJoin(err, second error) error {
	if second == nil {
		return err
	}
	return errors.Join(err, second)
}

// batch holds the values of a piece of a column on their way from the file to the writer.
type batch struct {
	levels  []uint32
	numbers []float64
	bools   []uint8
	codes   []uint32
	kind    dataset.Kind // of the slice that the last read filled
	scratch any          // values as they are in the file, see scratch

	texts      map[string]uint32
	dictionary []string
	textBytes  int64 // of this column's distinct texts, with their overhead
	textsLeft  int64 // what is left of the table's budget
	lim        Limits
}

// batchRows is how many values are decoded at once: small enough for the cache, large enough to hide the calls.
const batchRows = 1 << 14

func (b *batch) begin(lim Limits) {
	if b.levels == nil {
		b.levels = make([]uint32, batchRows)
		b.numbers = make([]float64, batchRows)
		b.bools = make([]uint8, batchRows)
		b.codes = make([]uint32, batchRows)
	}
	b.texts, b.dictionary, b.textBytes, b.lim = map[string]uint32{}, []string{}, 0, lim
}

// textOverhead is what each distinct text costs beside its bytes: its offset in the dataset and its place in a map.
const textOverhead = 16

// code returns the code of a text, which it adds to the dictionary when it is new.
func (b *batch) code(text []byte) (uint32, error) {
	if len(text) > b.lim.MaxTextLength { // before it is looked up: hashing it for each row would take long
		return 0, &skipError{fmt.Sprintf("it has texts of more than %d bytes: it holds free text, not categories", b.lim.MaxTextLength), beginnings}
	}
	if code, ok := b.texts[string(text)]; ok {
		return code, nil
	}
	cost := int64(len(text)) + textOverhead
	switch {
	case !utf8.Valid(text):
		return 0, &skipError{"it holds bytes that are not UTF-8 text", latin}
	case len(b.dictionary) >= b.lim.MaxTexts:
		return 0, &skipError{fmt.Sprintf("it has more than %d distinct texts", b.lim.MaxTexts), initials}
	case b.textBytes+cost > b.textsLeft:
		return 0, &skipError{fmt.Sprintf("with its distinct texts those of the table would take more than %d bytes", b.lim.MaxTextBytes), initials}
	case b.textBytes+cost > b.lim.MemoryBytes/textShare: // another machine would take them, so they are no reason to skip the column
		return 0, refuse(Limit, "decoding its distinct texts needs more memory than the %d MiB that are allowed for the whole file; leave the column out, or give the server more memory", b.lim.MemoryBytes>>20)
	}
	s := string(text)
	b.dictionary = append(b.dictionary, s)
	b.textBytes += cost
	code := uint32(len(b.dictionary))
	b.texts[s] = code
	return code, nil
}

func (b *batch) writeTo(w *dataset.Writer, n int) error {
	switch b.kind {
	case dataset.Bool:
		return w.AppendBools(b.bools[:n])
	case dataset.Text:
		return w.AppendCodes(b.codes[:n])
	default:
		return w.AppendNumbers(b.numbers[:n])
	}
}
