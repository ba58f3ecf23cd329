package trino

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sql"
)

const (
	// placeBytes is a unit's place on its way to the engine: 16 bytes that name the unit, and its number as 8 bytes, both blinded.
	placeBytes = 24
	// placesOfLiteral is how many stand in one literal: the engine's sequence has at most so many steps.
	placesOfLiteral = 10_000
	// leastStatement holds a few places and what is around them.
	leastStatement = 16 << 10
	// statementRoom is for what is around the literals.
	statementRoom = 1000
	// joinedUnits is how many units' places the engine keeps in memory at once.
	joinedUnits = 1 << 24
	// mostPieces is how many pieces a part is cut into, so that a range of units is found without reading the others. Engines write about a hundred at once.
	mostPieces = 64
	// leastPiece is how many units are not worth a file of their own.
	leastPiece = 1 << 16
	// waitForSweep is for removing what nobody needs, whatever became of a division.
	waitForSweep = time.Minute
)

// division is a table that is being divided.
type division struct {
	*owned
	of     sources.Snapshot
	k      keys
	parts  []sources.PartSpec
	secret []byte
	done   func(rows int64)
	told   int64 // the rows that done was told of
}

// Divide makes the parts by joins in the engine: each unit's number is brought there first.
//
// Who reads the engine's statements must not learn what was brought. So the engine makes a random secret, in a table of the private schema, and the server reads it: it stands in a result, and
// in no statement. What is brought is blinded by it: HMAC-SHA256(secret, key) of a unit's key names the unit by its first 16 bytes, and its next 8 hide the number. The join has the engine compute the same.
// The secret and the places are dropped with their tables, at the latest by Drop: they are as private as the parts, in which the same can be read.
func (s *Source) Divide(ctx context.Context, of sources.Snapshot, by sources.Keys, parts []sources.PartSpec, place func(sources.Units, []sources.Place) error, done func(rows int64)) ([]sources.PartInfo, error) {
	o, err := s.reopened(of)
	if err != nil {
		return nil, err
	}
	d := &division{owned: o, of: of, parts: parts, done: done}
	if d.k, err = o.keysOf(by); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if !partName.MatchString(p.Name) || p.Units < 1 || p.Units > dataset.MaxRows {
			return nil, fmt.Errorf("trino: a part %q of %d units", p.Name, p.Units)
		}
	}
	if err := s.checkReader(ctx); err != nil {
		return nil, err
	}
	if err := o.same(ctx, of); err != nil {
		return nil, err
	}
	defer d.sweep()
	if err := d.makeSecret(ctx); err != nil {
		return nil, unavailable(err)
	}
	if err := d.bring(ctx, by, place); err != nil {
		return nil, err
	}
	connector, err := s.kept(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := d.makePart(ctx, connector, p); err != nil {
			return nil, err
		}
	}
	if err := o.same(ctx, of); err != nil {
		return nil, err
	}
	return d.register(ctx)
}

// tell tells how many rows have their place: half of that is bringing it, the other half is moving them.
func (d *division) tell(rows int64) {
	if rows > d.told && d.done != nil {
		d.told = rows
		d.done(rows)
	}
}

// sweep drops what is needed no more, in whatever way the division ended. What it cannot drop is listed by Parts.
func (d *division) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), waitForSweep)
	defer cancel()
	tables := []string{d.source.table(secretTable, d.parts[0].Name)}
	for _, p := range d.parts {
		tables = append(tables, d.source.table(placesTable, p.Name))
	}
	for _, table := range tables {
		if err := d.source.loader.exec(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return
		}
	}
}

// makeSecret lets the engine make 32 random bytes, and reads them.
func (d *division) makeSecret(ctx context.Context) error {
	table := d.source.table(secretTable, d.parts[0].Name)
	// Of each uuid 122 bits are random.
	if err := d.source.loader.exec(ctx, "CREATE TABLE "+table+" AS SELECT sha256(to_utf8(CAST(uuid() AS varchar) || CAST(uuid() AS varchar) || CAST(uuid() AS varchar))) AS k"); err != nil {
		return err
	}
	rows, err := d.source.loader.rows(ctx, "SELECT k FROM "+table)
	if err != nil {
		return err
	}
	if len(rows) == 1 {
		text, _ := rows[0][0].(string)
		d.secret, err = base64.StdEncoding.DecodeString(text)
	}
	if err == nil && len(d.secret) != sha256.Size {
		err = fmt.Errorf("%w: a secret of %d bytes", errProtocol, len(d.secret))
	}
	return err
}

// blinded appends a unit's place as it travels.
func blinded(to, secret, unit []byte, number int64) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(unit)
	sum := mac.Sum(nil)
	return binary.BigEndian.AppendUint64(append(to, sum[:16]...), uint64(number)^binary.BigEndian.Uint64(sum[16:]))
}

// bring streams the units, asks for their places, and brings these to the engine.
func (d *division) bring(ctx context.Context, by sources.Keys, place func(sources.Units, []sources.Place) error) error {
	for _, p := range d.parts {
		if err := d.source.loader.exec(ctx, "CREATE TABLE "+d.source.table(placesTable, p.Name)+" (h varbinary, v bigint)"); err != nil {
			return unavailable(err)
		}
	}
	waiting := make([][]byte, len(d.parts))
	count := make([]int64, len(d.parts))
	full := (d.source.maxStatement - statementRoom) / (4 * placeBytes / 3) * placeBytes
	rows := int64(0)
	err := d.units(ctx, d.of.Rows, by, func(units sources.Units, names [][]byte) error {
		places := make([]sources.Place, units.Len())
		if err := place(units, places); err != nil {
			return err
		}
		for i, p := range places {
			if p.Part < 0 || p.Part >= len(d.parts) || p.Number < 0 || p.Number >= d.parts[p.Part].Units {
				return fmt.Errorf("trino: a unit is given number %d in part %d", p.Number, p.Part)
			}
			waiting[p.Part] = blinded(waiting[p.Part], d.secret, names[i], p.Number)
			count[p.Part]++
			rows += units.Rows[i]
			if len(waiting[p.Part]) >= full {
				if err := d.insert(ctx, p.Part, waiting[p.Part]); err != nil {
					return err
				}
				waiting[p.Part] = waiting[p.Part][:0]
			}
		}
		d.tell(rows / 2)
		return ctx.Err()
	})
	for i := range waiting {
		if err == nil && count[i] != d.parts[i].Units {
			err = fmt.Errorf("trino: %d units were given a place in part %d, which has %d", count[i], i, d.parts[i].Units)
		}
		if err == nil && len(waiting[i]) > 0 {
			err = d.insert(ctx, i, waiting[i])
		}
	}
	return err
}

// insert brings places. It is sent once: twice would be twice the places.
func (d *division) insert(ctx context.Context, part int, places []byte) error {
	var text strings.Builder
	fmt.Fprintf(&text, "INSERT INTO %s SELECT substr(b, i * %[2]d + 1, 16), from_big_endian_64(substr(b, i * %[2]d + 17, 8)) FROM (VALUES ", d.source.table(placesTable, d.parts[part].Name), placeBytes)
	for from := 0; from < len(places); from += placesOfLiteral * placeBytes {
		if from > 0 {
			text.WriteString(", ")
		}
		text.WriteString("from_base64('" + base64.StdEncoding.EncodeToString(places[from:min(from+placesOfLiteral*placeBytes, len(places))]) + "')")
	}
	fmt.Fprintf(&text, ") w (b) CROSS JOIN UNNEST(sequence(0, %d)) u (i) WHERE i * %d < length(b)", placesOfLiteral-1, placeBytes)
	return unavailable(d.source.loader.exec(ctx, text.String()))
}

// pieceOf is how many units are in a piece of a part.
func pieceOf(units int64) int64 { return max(leastPiece, (units+mostPieces-1)/mostPieces) }

// makePart makes a part.
func (d *division) makePart(ctx context.Context, connector string, p sources.PartSpec) error {
	passes := int64(1)
	for p.Units/passes > joinedUnits {
		passes *= 2
	}
	piece := pieceOf(p.Units)
	for pass := range passes {
		head := "INSERT INTO " + d.source.table(partTable, p.Name) + " "
		if pass == 0 {
			head = "CREATE TABLE " + d.source.table(partTable, p.Name) + layout(connector, p.Units > piece) + " AS "
		}
		if err := d.source.loader.exec(ctx, head+d.rowsOf(p, piece, passes, pass)); err != nil {
			return ofTable(d.table, err)
		}
	}
	rows, err := d.source.loader.rows(ctx, "SELECT count(*) FROM "+d.source.table(partTable, p.Name))
	if err != nil {
		return unavailable(err)
	}
	n, err := integer(rows, 0)
	if err != nil {
		return unavailable(err)
	}
	d.tell(min(d.told+n/2, d.of.Rows))
	return nil
}

// layout lets a catalog keep a part in pieces, sorted by unit where it can, so that a range of units is read without the others.
func layout(connector string, pieces bool) string {
	switch {
	case connector == "iceberg" && pieces:
		return " WITH (format = 'PARQUET', partitioning = ARRAY['_piece'], sorted_by = ARRAY['_unit'])"
	case connector == "iceberg":
		return " WITH (format = 'PARQUET')"
	case connector == "hive" && pieces:
		return " WITH (format = 'PARQUET', partitioned_by = ARRAY['_piece'])"
	case connector == "hive":
		return " WITH (format = 'PARQUET')"
	case connector == "delta_lake" && pieces:
		return " WITH (partitioned_by = ARRAY['_piece'])"
	}
	return ""
}

// rowsOf is the statement that yields the rows of a part, of the units of one pass.
func (d *division) rowsOf(p sources.PartSpec, piece, passes, pass int64) string {
	inner := []string{fmt.Sprintf("hmac_sha256(%s, (SELECT k FROM %s)) AS m", d.k.packed(d.k.values), d.source.table(secretTable, d.parts[0].Name))}
	outer := []string{"CAST(n AS integer) AS _unit"}
	middle := []string{"bitwise_xor(q.v, from_big_endian_64(substr(t.m, 17, 8))) AS n"}
	add := func(name, value string) {
		inner, outer, middle = append(inner, value+" AS "+name), append(outer, name), append(middle, "t."+name)
	}
	for i := range d.Columns {
		c := &d.Columns[i]
		add(fmt.Sprintf("c%d", i), c.stored())
		if c.Infinite {
			add(fmt.Sprintf("i%d", i), "coalesce(is_infinite(CAST("+sql.Trino.Name(c.Name)+" AS double)), false)")
		}
	}
	outer = append(outer, fmt.Sprintf("n / %d AS _piece", piece)) // Hive wants what it cuts by at the end
	where := ""
	if passes > 1 {
		of := func(h string) string {
			return fmt.Sprintf("bitwise_and(from_big_endian_64(substr(%s, 1, 8)), %d) = %d", h, passes-1, pass)
		}
		where = " WHERE " + of("t.m") + " AND " + of("q.h")
	}
	return fmt.Sprintf("SELECT %s FROM (SELECT %s FROM (SELECT %s FROM %s) t JOIN %s q ON q.h = substr(t.m, 1, 16)%s)",
		strings.Join(outer, ", "), strings.Join(middle, ", "), strings.Join(inner, ", "), d.from(), d.source.table(placesTable, p.Name), where)
}

// kept is what a part's PartInfo.Private has.
type kept struct {
	Checks   *sql.Checks      `json:"checks"`
	Piece    int64            `json:"piece"`              // units of a piece
	Infinite map[string]int64 `json:"infinite,omitempty"` // of columns with infinities: their number
	Columns  []bool           `json:"columns"`            // by column: whether the part says which values were infinite
	Version  string           `json:"version,omitempty"`  // of the part's table, where it has versions
}

// register reads the parts that were made, compares them with what they were made of, and says what is kept of them.
func (d *division) register(ctx context.Context) ([]sources.PartInfo, error) {
	var infos []sources.PartInfo
	total := int64(0)
	for _, p := range d.parts {
		info, err := d.info(ctx, p)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
		total += info.Rows
	}
	if total != d.of.Rows {
		return nil, &sources.Error{Kind: sources.Changed, Detail: tableChanged, Err: fmt.Errorf("trino: the parts have %d rows of %d", total, d.of.Rows)}
	}
	d.tell(d.of.Rows)
	return infos, nil
}

func (d *division) info(ctx context.Context, p sources.PartSpec) (sources.PartInfo, error) {
	info := sources.PartInfo{Name: p.Name, Schema: d.of.Schema, Units: p.Units, Grouped: !d.k.Keys.Rows, Texts: map[string]dataset.TextShape{}, Checksums: map[string]string{}}
	for name, shape := range d.Texts {
		info.Texts[name] = shape
	}
	table := d.source.table(partTable, p.Name)
	k := kept{Piece: pieceOf(p.Units), Infinite: map[string]int64{}, Columns: make([]bool, len(d.Columns))}
	var err error
	if info.Rows, info.LargestUnit, err = d.dense(ctx, table, p, k.Piece); err != nil {
		return info, err
	}
	if d.k.Keys.Rows && info.LargestUnit != 1 {
		return info, &sources.Error{Kind: sources.Changed, Detail: tableChanged, Err: fmt.Errorf("trino: a unit of part %s has %d rows, want one", p.Name, info.LargestUnit)}
	}
	part := sql.Part{Table: table, Schema: info.Schema, Units: info.Units, Grouped: info.Grouped, Cap: 1}
	texts, err := d.source.loader.texts(ctx, sql.RegisterText(sql.Trino, part))
	if err != nil {
		return info, unavailable(err)
	}
	if k.Checks, err = sql.ReadRegister(part, texts); err != nil {
		return info, changed(err)
	}
	for i, c := range d.Columns {
		info.Checksums[c.Name] = fmt.Sprint(k.Checks.Total(i))
		if !c.Infinite {
			continue
		}
		rows, err := d.source.loader.rows(ctx, fmt.Sprintf("SELECT count_if(i%d) FROM %s", i, table))
		if err != nil {
			return info, unavailable(err)
		}
		k.Columns[i] = true
		if k.Infinite[c.Name], err = integer(rows, 0); err != nil {
			return info, unavailable(err)
		}
	}
	if k.Version, err = d.source.versionOf(ctx, d.source.loader, p.Name); err != nil {
		return info, err
	}
	info.Private, err = json.Marshal(k)
	return info, err
}

// dense counts the rows of a part, and of its largest unit, and sees that it has all of its units: of some pieces at a time, for the engine keeps what it groups in memory.
func (d *division) dense(ctx context.Context, table string, p sources.PartSpec, piece int64) (total, largest int64, err error) {
	some := max(1, groupedRows/piece)
	for from := int64(0); from*piece < p.Units; from += some {
		rows, err := d.source.loader.rows(ctx, fmt.Sprintf("SELECT count(*), coalesce(sum(n), 0), coalesce(max(n), 0), coalesce(min(_unit), 0), coalesce(max(_unit), 0) "+
			"FROM (SELECT _unit, count(*) n FROM %s WHERE _piece BETWEEN %d AND %d GROUP BY _unit)", table, from, from+some-1))
		if err != nil {
			return 0, 0, unavailable(err)
		}
		var facts [5]int64
		for i := range facts {
			if facts[i], err = integer(rows, i); err != nil {
				return 0, 0, unavailable(err)
			}
		}
		low, high := from*piece, min((from+some)*piece, p.Units)
		if facts[0] != high-low || facts[3] != low || facts[4] != high-1 {
			return 0, 0, &sources.Error{Kind: sources.Changed, Detail: tableChanged,
				Err: fmt.Errorf("trino: part %s has %d units from %d to %d, want those from %d to %d", p.Name, facts[0], facts[3], facts[4], low, high-1)}
		}
		total, largest = total+facts[1], max(largest, facts[2])
	}
	return total, largest, nil
}
