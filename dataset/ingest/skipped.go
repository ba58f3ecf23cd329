package ingest

import (
	"fmt"
	"strings"
)

// mend is what its user can write to have a column taken, in the language of the file's writer: with %p where its name stands in Python and %s where it stands in SQL.
type mend struct{ pandas, polars, duckdb, spark, clickhouse string }

// text casts a column to text.
var text = mend{`df[%p] = df[%p].astype("string")`, `df = df.with_columns(pl.col(%p).cast(pl.String))`, `%s::VARCHAR AS %s`, `df = df.withColumn(%p, df[%p].cast("string"))`, `toString(%s) AS %s`}

// A skip is why a column is left out: its type, in the words of its users, what is the matter, and what they can do.
type skip struct {
	what string
	mend mend
}

var (
	skipInterval = skip{"INTERVAL: months, days and milliseconds are not one number",
		mend{duckdb: `epoch(%s) AS %s`, spark: `df = df.withColumn(%p, df[%p].cast("long"))`}}
	skipVariant = skip{"VARIANT: its values may be of any type",
		mend{duckdb: `%s::DOUBLE AS %s`, spark: `df = df.withColumn(%p, df[%p].cast("double"))`}}
	skipGeometry = skip{"GEOMETRY: shapes are not read",
		mend{pandas: `df["x"], df["y"] = df[%p].x, df[%p].y`, duckdb: `ST_X(%s) AS x, ST_Y(%s) AS y`}}
	skipGeography = skip{"GEOGRAPHY: shapes are not read",
		mend{pandas: `df["x"], df["y"] = df[%p].x, df[%p].y`, duckdb: `ST_X(%s) AS x, ST_Y(%s) AS y`}}
	skipList = skip{"LIST: nested values are not read; take what you need of it",
		mend{`df[%p] = df[%p].str[0]`, `df = df.with_columns(pl.col(%p).list.first())`, `%s[1] AS %s`, `df = df.withColumn(%p, df[%p][0])`, `%s[1] AS %s`}}
	skipArray = skip{"ARRAY: nested values are not read; take what you need of it",
		mend{skipList.mend.pandas, `df = df.with_columns(pl.col(%p).arr.first())`, skipList.mend.duckdb, skipList.mend.spark, skipList.mend.clickhouse}}
	skipMap = skip{"MAP: nested values are not read; take what you need of it",
		mend{`df[%p] = df[%p].map(lambda m: dict(m).get("key"), na_action="ignore")`, "", `%s['key'] AS %s`, `df = df.withColumn(%p, df[%p]["key"])`, `%s['key'] AS %s`}}
	skipStruct = skip{"STRUCT: nested values are not read; take what you need of it",
		mend{`df[%p] = df[%p].str["field"]`, `df = df.unnest(%p, separator=".")`, `unnest(%s)`, `df = df.withColumn(%p, df[%p]["field"])`, `tupleElement(%s, 1) AS %s`}}
	skipRange = skip{"pandas interval: it has two ends",
		mend{pandas: `df[%p] = pd.IntervalIndex(df[%p]).mid`}}
	skipNull   = skip{"it has the null type and no values; give it a type", text}
	skipEmpty  = skip{"binary without a text annotation, and it has no values; give it a type", text}
	skipBinary = skip{"binary without a text annotation; if it holds text, decode it",
		mend{`df[%p] = df[%p].str.decode("utf-8")`, text.polars, `decode(%s) AS %s`, text.spark, text.clickhouse}}
	skipBSON = skip{"BSON: documents are not read", mend{pandas: `df = df.drop(columns=[%p])`}}
	skipNew  = skip{"its logical type is newer than this program", text}
	// pyarrow's fixed_size_binary arrives in pandas as bytes.
	code     = mend{`df[%p] = df[%p].str.decode("utf-8").str.rstrip("\0")`, text.polars, `hex(%s) AS %s`, text.spark, text.clickhouse}
	wide     = mend{`df[%p] = df[%p].map(lambda b: str(int.from_bytes(b, "little", signed=True)), na_action="ignore")`, text.polars, `hex(%s) AS %s`, text.spark, text.clickhouse}
	skipName = skip{"its name is empty or not UTF-8", mend{pandas: `df.columns = [str(c) or "unnamed" for c in df.columns]`}}
	skipMark = skip{"its name holds a control character", mend{pandas: `df.columns = df.columns.str.replace(r"[\x00-\x1f\x7f]", "", regex=True)`}}
)

// shorter keeps the first characters of a text.
func shorter(n int) mend {
	return mend{fmt.Sprintf(`df[%%p] = df[%%p].str[:%d]`, n), fmt.Sprintf(`df = df.with_columns(pl.col(%%p).str.head(%d))`, n), fmt.Sprintf(`left(%%s, %d) AS %%s`, n),
		fmt.Sprintf(`df = df.withColumn(%%p, df[%%p].substr(1, %d))`, n), fmt.Sprintf(`substringUTF8(%%s, 1, %d) AS %%s`, n)}
}

// The texts that are left of a column of documents, and of one of keys or free text: enough to tell categories by.
var (
	beginnings = shorter(100)
	initials   = shorter(3)
	latin      = mend{pandas: `df[%p] = df[%p].str.decode("latin-1")`}
)

// fixedBytes is why a column of n bytes each, of which nothing says what they are, is left out.
func fixedBytes(n int64, by program) skip {
	switch {
	case n == 16 && by == polarsWriter:
		return skip{"128-bit integer: no number that is read is so wide", wide}
	case n == 16:
		return skip{"16 bytes without an annotation: a 128-bit integer, an address or a padded code", wide}
	case n == 32:
		return skip{"32 bytes without an annotation: a 256-bit integer, a digest or a padded code", wide}
	}
	return skip{fmt.Sprintf("padded code: %d bytes without a text annotation", n), code}
}

// reason is the sentence for a column of a writer's file.
func (s skip) reason(name string, by program) string {
	m := s.mend
	all := map[program]struct{ language, line string }{pandasWriter: {"pandas", m.pandas}, fastparquetWriter: {"pandas", m.pandas}, polarsWriter: {"Polars", m.polars},
		duckdbWriter: {"DuckDB", m.duckdb}, sparkWriter: {"Spark", m.spark}, clickhouseWriter: {"ClickHouse", m.clickhouse}}
	for _, w := range []program{by, pandasWriter, duckdbWriter} {
		if l := all[w]; l.line != "" {
			return s.what + "; in " + l.language + ": " + strings.NewReplacer("%p", quoted(name), "%s", quotedSQL(name)).Replace(l.line)
		}
	}
	return s.what
}

// nested is why a field of the root that is no single value is left out.
func (l *leaf) nestedSkip(from *origin) skip {
	switch {
	case strings.HasPrefix(from.pandas[l.name], "interval["):
		return skipRange
	case l.group == variantKind:
		return skipVariant
	case l.group == mapKind:
		return skipMap
	case from.by == polarsWriter && from.arrow.arrays[l.name]:
		return skipArray
	case l.group == listKind, l.repeated:
		return skipList
	}
	return skipStruct
}
