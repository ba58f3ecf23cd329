package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Sessions that were ended are names of the table meta: endedPrefix and the session's id. The value says until when, as nanoseconds since 1970 in
// big-endian order, which is the order of the values.
const endedPrefix = "ended "

func endedName(id [32]byte) string { return endedPrefix + hex.EncodeToString(id[:]) }

func endedValue(until time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(0, until.UnixNano())))
}

// EndSession implements ledger.Ledger. It forgets those of which nobody has to know any more.
func (l *Ledger) EndSession(ctx context.Context, id [32]byte, until time.Time) error {
	if !time.Unix(0, until.UnixNano()).Equal(until) {
		return fmt.Errorf("%w: time %v is before 1678 or after 2261", ledger.ErrInvalid, until)
	}
	return l.alone(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM meta WHERE name GLOB ? AND value < ?", endedPrefix+"*", endedValue(time.Now())); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = max(value, ?2)",
			endedName(id), endedValue(until))
		return err
	})
}

// SessionEnded implements ledger.Ledger.
func (l *Ledger) SessionEnded(ctx context.Context, id [32]byte) (ended bool, err error) {
	err = l.readers.look(ctx, "SELECT EXISTS (SELECT 1 FROM meta WHERE name = ?)", endedName(id)).Scan(&ended)
	return ended, wrapRead(err)
}
