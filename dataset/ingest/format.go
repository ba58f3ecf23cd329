package ingest

import "fmt"

// The numbers of parquet.thrift that files are made of.

// physicalType says how values lie in a page: enum Type.
type physicalType int64

const (
	boolean physicalType = iota
	int32Type
	int64Type
	int96
	float
	double
	byteArray
	fixedLenByteArray
)

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// String returns the name that the specification gives.
func (p physicalType) String() string {
	if p < 0 || int(p) >= len(physicalNames) {
		return fmt.Sprintf("type %d", int64(p))
	}
	return physicalNames[p]
}

// encoding says how the values of a page were packed: enum Encoding.
type encoding int64

const (
	plain                encoding = 0
	plainDictionary      encoding = 2 // the old name of rleDictionary for data, and of plain for dictionaries
	rle                  encoding = 3
	bitPacked            encoding = 4
	deltaBinaryPacked    encoding = 5
	deltaLengthByteArray encoding = 6
	deltaByteArray       encoding = 7
	rleDictionary        encoding = 8
	byteStreamSplit      encoding = 9
)

// codec says how pages were compressed: enum CompressionCodec.
type codec int64

const (
	uncompressed codec = iota
	snappyCodec
	gzipCodec
	lzoCodec
	brotliCodec
	lz4Codec // of Hadoop, see hadoopLZ4
	zstdCodec
	lz4Raw
)

var codecNames = [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

// String returns the name that the specification gives.
func (c codec) String() string {
	if c < 0 || int(c) >= len(codecNames) {
		return fmt.Sprintf("of number %d", int64(c))
	}
	return codecNames[c]
}

// read reports whether pages of this codec are read.
func (c codec) read() bool { return c >= uncompressed && c <= lz4Raw && c != lzoCodec }

// repetition says how often a field is there: enum FieldRepetitionType.
type repetition int64

const (
	required repetition = iota
	optional
	repeated
)

// logicalKind is what the values of a leaf mean: the members of the union LogicalType by their numbers, and what else can be said.
type logicalKind int64

const (
	noLogical   logicalKind = 0
	stringKind  logicalKind = 1
	mapKind     logicalKind = 2
	listKind    logicalKind = 3
	enumKind    logicalKind = 4
	decimalKind logicalKind = 5
	dateKind    logicalKind = 6
	timeKind    logicalKind = 7
	stampKind   logicalKind = 8
	interval    logicalKind = 9 // reserved in the union; the converted type has it
	integerKind logicalKind = 10
	nullKind    logicalKind = 11
	jsonKind    logicalKind = 12
	bsonKind    logicalKind = 13
	uuidKind    logicalKind = 14
	float16Kind logicalKind = 15

	// Of these, as of intervals and BSON, no column is made.
	variantKind   logicalKind = 16
	geometryKind  logicalKind = 17
	geographyKind logicalKind = 18
	lastLogical               = geographyKind

	newKind logicalKind = -1 // newer than this program
)

// timeUnit is that of a time or timestamp: the members of the union TimeUnit by their numbers.
type timeUnit int64

const (
	millis timeUnit = 1
	micros timeUnit = 2
	nanos  timeUnit = 3
)

var unitNames = map[timeUnit]string{millis: "ms", micros: "us", nanos: "ns"}

// logicalType is the meaning of a leaf with its parameters.
type logicalType struct {
	kind             logicalKind
	unit             timeUnit // of times and timestamps
	utc              bool     // of timestamps: moments, not readings of a local clock
	scale, precision int64    // of decimals
	bits             int64    // of integers: 8, 16, 32 or 64
	signed           bool     // of integers
}

// converted is what the old enum ConvertedType, by its numbers, says; files carry it for readers that do not know the union.
var converted = [...]logicalType{
	0: {kind: stringKind}, 1: {kind: mapKind}, 2: {kind: mapKind}, 3: {kind: listKind}, 4: {kind: enumKind},
	5: {kind: decimalKind}, 6: {kind: dateKind}, 7: {kind: timeKind, unit: millis}, 8: {kind: timeKind, unit: micros},
	9: {kind: stampKind, unit: millis, utc: true}, 10: {kind: stampKind, unit: micros, utc: true},
	11: {kind: integerKind, bits: 8}, 12: {kind: integerKind, bits: 16}, 13: {kind: integerKind, bits: 32}, 14: {kind: integerKind, bits: 64},
	15: {kind: integerKind, bits: 8, signed: true}, 16: {kind: integerKind, bits: 16, signed: true},
	17: {kind: integerKind, bits: 32, signed: true}, 18: {kind: integerKind, bits: 64, signed: true},
	19: {kind: jsonKind}, 20: {kind: bsonKind}, 21: {kind: interval},
}
