package trino

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sql"
)

func sourcesError(err error) *sources.Error {
	var e *sources.Error
	errors.As(err, &e)
	return e
}

// TestTableNames: names are read as Trino reads them, and what is none is refused.
func TestTableNames(t *testing.T) {
	for text, want := range map[string]string{
		"iceberg.db.flights":       `"iceberg"."db"."flights"`,
		"Iceberg.DB.Flights":       `"iceberg"."db"."flights"`,
		`c."s.x"."t""q"`:           `"c"."s.x"."t""q"`,
		"c.s.t@123":                `"c"."s"."t" FOR VERSION AS OF 123`,
		`c.s."t@1"@2`:              `"c"."s"."t@1" FOR VERSION AS OF 2`,
		`c.s."x; DROP TABLE y --"`: `"c"."s"."x; drop table y --"`,
	} {
		o, err := parseTable(text)
		if err != nil || o.from() != want {
			t.Errorf("%s: %s, %v", text, o.from(), err)
		}
	}
	for _, text := range []string{"", "t", "s.t", "a.b.c.d", "a..c", `a.b."c`, `a.b."c"d`, "a.b.c@", "a.b.c@x", "a.b.c@1 OR 1", "a.b.c@1@2", `a.b."t$files"`, "a.b.t$files", "a.b.c\x00", strings.Repeat("a", 2000) + ".b.c", ".b.c", `"".b.c`} {
		if o, err := parseTable(text); sourcesError(err) == nil {
			t.Errorf("%q is the table %s", text, o.from())
		}
	}
}

// TestPartTables: the tables of a part are told from others and from those of other parts, whatever letters its name has; Trino has no capitals.
func TestPartTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9_]{1,60}`).Draw(t, "name")
		other := rapid.StringMatching(`[A-Za-z0-9_]{1,60}`).Draw(t, "other")
		for _, kind := range []string{partTable, placesTable, secretTable} {
			table := tableOf(kind, name)
			if got, ok := partOf(table); !ok || got != name || strings.ToLower(table) != table || len(table) > 128 {
				t.Fatalf("%s is the table of %q", table, got)
			}
			if name != other && tableOf(kind, other) == table {
				t.Fatalf("%s is the table of both %s and %s", table, name, other)
			}
		}
	})
	for _, table := range []string{"", "hp", "hp_", "flights", "hx_1", "hpx_zz", "hp_a-b", "hq"} {
		if part, ok := partOf(table); ok {
			t.Errorf("%s is a table of part %s", table, part)
		}
	}
}

// FuzzTable: a name that is read is one table in a statement, whatever is in it.
func FuzzTable(f *testing.F) {
	for _, seed := range []string{"a.b.c", `a."b"."c""d"@12`, `a.b."c;--"`, "a.b.c@1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseTable(text)
		if err != nil {
			return
		}
		want := sql.Trino.Name(o.names[:]...)
		if o.Version != "" {
			want += " FOR VERSION AS OF " + o.Version
		}
		from := o.from()
		if from != want || strings.Count(from, `"`)%2 != 0 || !versionNumber.MatchString("0"+o.Version) && o.Version != "" {
			t.Errorf("%q is %s", text, from)
		}
		for _, name := range o.names {
			if name == "" || strings.ContainsAny(name, "\x00\n$") {
				t.Errorf("%q has the name %q", text, name)
			}
		}
	})
}

// TestAddresses: what an address cannot be is refused, and no error quotes a password.
func TestAddresses(t *testing.T) {
	good := "trino://loader@host:8080/iceberg/private?reader=reader"
	s, err := Open(good)
	if err != nil || s.reader.user != "reader" || s.loader.user != "loader" || s.catalog != "iceberg" || s.schema != "private" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "trino://", "http://x", "trino://host/iceberg/private?reader=r", "trino://loader@host/iceberg?reader=r", "trino://loader@host/iceberg/private", "trino://loader@host/a/b?reader=loader",
		good + "&nonsense=1", good + "&deadline=1", good + "&max_read=x", good + "&max_statement=1", good + "&tls=maybe", good + "&password_file=/nowhere", "trino://loader:secret@host/a/b?reader=r",
		good + "&reader_password=secret", "trino://loader:secret@ho st/a/b", good + "&tls=1&ca=/nowhere"} {
		_, err := Open(bad)
		if e := sourcesError(err); e == nil || e.Kind != sources.Refused || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestBlinded: what travels of a unit's place is its number to who knows the secret and the key, and noise to everybody else. It would notice a number that is sent as it is, and a mask that is
// the same for all units. That a number of a thousand, all below a million, looks small by chance has the probability 2^-34 for each: a false alarm in 10^7 runs.
func TestBlinded(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	names, masks := map[string]bool{}, map[uint64]bool{}
	for number := range int64(1000) {
		unit := fmt.Appendf(nil, "unit %d", number)
		sent := blinded([]byte("before"), secret, unit, number)[len("before"):]
		if len(sent) != placeBytes || strings.Contains(string(sent), "unit") {
			t.Fatalf("%d bytes: %x", len(sent), sent)
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write(unit)
		sum := mac.Sum(nil)
		hidden := binary.BigEndian.Uint64(sent[16:])
		if string(sent[:16]) != string(sum[:16]) || int64(hidden^binary.BigEndian.Uint64(sum[16:24])) != number {
			t.Errorf("unit %d cannot be placed by who knows the secret", number)
		}
		if hidden < 1<<30 {
			t.Errorf("number %d is sent as %d", number, hidden)
		}
		names[string(sent[:16])], masks[hidden^uint64(number)] = true, true
	}
	if len(names) != 1000 || len(masks) != 1000 {
		t.Errorf("%d names and %d masks of 1000 units", len(names), len(masks))
	}
}
