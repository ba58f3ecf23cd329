// Package trino is Trino as a source: tables of its catalogs (Iceberg, Delta Lake, Hive, Parquet files on object storage and others) are looked at and divided, and their parts
// are summed there, by plain HTTP.
//
// Two users work there. The loader reads the owner's tables and makes the parts, in a schema that is the server's alone; the reader reads the parts and nothing else.
//
// Whatever a statement says can be read by others: in the engine's web page, in its event listeners and in their logs. So no statement says a unit's key, side or number: see
// [Source.Divide].
package trino

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sql"
)

// Source is a Trino. It is safe for concurrent use.
type Source struct {
	loader, reader *client
	catalog        string
	schema         string
	maxStatement   int   // bytes
	maxRead        int64 // bytes
	transport      *http.Transport

	mu        sync.Mutex
	connector string // of the catalog of the parts; "" until it is known
}

var _ sources.Source = (*Source)(nil)

const (
	// defaultDeadline is for a statement about a part, in the engine and here.
	defaultDeadline = 10 * time.Minute
	// loadTimeout is for one that looks at a table or makes a part.
	loadTimeout = 12 * time.Hour
	// defaultMaxRead is how many bytes of a part are read for row functions that the engine cannot sum: some minutes' worth, for they come as text.
	defaultMaxRead = 2 << 30
	// defaultMaxStatement is the engine's own limit (query.max-length), less a little.
	defaultMaxStatement = 990_000
)

const usage = "a Trino is named by trino://USER@HOST:PORT/CATALOG/SCHEMA?reader=USER, with the schema in which the server keeps its parts"

// Open reads the address of a Trino and returns it; nothing is asked of it yet, so that a server starts while an engine is down.
//
//	trino://LOADER@HOST:PORT/CATALOG/SCHEMA?reader=USER[&option=value…]
//
// Options are tls=1 (https), ca (a file of certificates that TLS trusts), password_file and reader_password_file (files of one line; LOADER:PASSWORD@ and reader_password say them
// in the address), deadline (of a statement about a part: 10m), max_read (bytes of a part that are read for what the engine cannot sum) and max_statement (bytes; where
// query.max-length was set).
func Open(address string) (*Source, error) {
	s, err := parse(address)
	if err != nil {
		return nil, &sources.Error{Kind: sources.Refused, Detail: err.Error() + "; " + usage}
	}
	return s, nil
}

func parse(address string) (*Source, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "trino" || u.Host == "" {
		return nil, errors.New("the address is no trino://… address") // the library's error quotes it, with a password
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if u.User.Username() == "" || len(path) != 2 || path[0] == "" || path[1] == "" {
		return nil, errors.New("the address lacks the user, the catalog or the schema")
	}
	s := &Source{catalog: strings.ToLower(path[0]), schema: strings.ToLower(path[1]), maxStatement: defaultMaxStatement, maxRead: defaultMaxRead}
	options := u.Query()
	option := func(name string) string {
		v := options.Get(name)
		options.Del(name)
		return v
	}
	base, deadline := &url.URL{Scheme: "http", Host: u.Host}, defaultDeadline
	switch option("tls") {
	case "1", "true":
		base.Scheme = "https"
	case "", "0", "false":
	default:
		return nil, errors.New("tls is 1 or 0")
	}
	reader := option("reader")
	if reader == "" || reader == u.User.Username() {
		return nil, errors.New("the address needs reader=USER, another user than the loader, who may read the parts and nothing else")
	}
	if text := option("deadline"); text != "" {
		if deadline, err = time.ParseDuration(text); err != nil || deadline < time.Second {
			return nil, errors.New("deadline is a time of a second or more, such as 10m")
		}
	}
	if text := option("max_read"); text != "" {
		if s.maxRead, err = strconv.ParseInt(text, 10, 64); err != nil || s.maxRead < 0 {
			return nil, errors.New("max_read is a number of bytes")
		}
	}
	if text := option("max_statement"); text != "" {
		if s.maxStatement, err = strconv.Atoi(text); err != nil || s.maxStatement < leastStatement || s.maxStatement > 1<<28 {
			return nil, fmt.Errorf("max_statement is a number of bytes from %d to %d", leastStatement, 1<<28)
		}
	}
	own, _ := u.User.Password()
	passwords := [...]string{own, option("reader_password")}
	for i, name := range [...]string{"password_file", "reader_password_file"} {
		if file := option(name); file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			passwords[i], _, _ = strings.Cut(string(text), "\n")
			passwords[i] = strings.TrimSuffix(passwords[i], "\r")
		}
		if passwords[i] != "" && base.Scheme != "https" {
			return nil, errors.New("a password is sent over TLS only: add tls=1")
		}
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := option("ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(text) || base.Scheme != "https" {
			return nil, errors.New("ca is a file of certificates, for tls=1")
		}
	}
	for name := range options {
		return nil, fmt.Errorf("there is no option %q", name)
	}
	s.transport = &http.Transport{
		DialContext:     (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig: trust, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	plain := &http.Client{Transport: s.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.loader = &client{http: plain, base: base, user: u.User.Username(), password: passwords[0], catalog: s.catalog, schema: s.schema, longest: loadTimeout}
	s.reader = &client{http: plain, base: base, user: reader, password: passwords[1], catalog: s.catalog, schema: s.schema, longest: deadline}
	return s, nil
}

// Kind is "trino".
func (s *Source) Kind() string { return "trino" }

// Ready runs a statement that reads nothing, as the reader.
func (s *Source) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.reader.run(ctx, "SELECT 1", nil); err != nil {
		return unavailable(err)
	}
	return nil
}

// readyTimeout is for an engine that has other things to do.
const readyTimeout = 5 * time.Second

// Close lets go of the connections.
func (s *Source) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Parts lists the parts, finished or not: all tables of the schema with names that the server gives.
func (s *Source) Parts(ctx context.Context) ([]string, error) {
	tables, err := s.tables(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	seen := map[string]bool{}
	for _, table := range tables {
		if name, ok := partOf(table); ok && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

func (s *Source) tables(ctx context.Context) ([]string, error) {
	rows, err := s.loader.rows(ctx, "SHOW TABLES FROM "+sql.Trino.Name(s.catalog, s.schema))
	if err != nil {
		return nil, unavailable(err)
	}
	var tables []string
	for _, row := range rows {
		if name, ok := row[0].(string); ok {
			tables = append(tables, name)
		}
	}
	return tables, nil
}

// Drop removes a part and what was needed to make it.
func (s *Source) Drop(ctx context.Context, name string) error {
	if !partName.MatchString(name) {
		return nil // no part has such a name
	}
	for _, kind := range []string{partTable, placesTable, secretTable} {
		if err := s.loader.exec(ctx, "DROP TABLE IF EXISTS "+s.table(kind, name)); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// What the names of tables begin with, by what they are for. A part that was cut off has tables of all three.
const (
	partTable   = "hp" // the part
	placesTable = "hq" // while it is made: where its units go
	secretTable = "hs" // while it is made: what makes the places readable
)

var partName = regexp.MustCompile(`^[A-Za-z0-9_]{1,60}$`)

// table is the quoted name of a table of a part. Trino makes names small: one with capitals is kept in hexadecimal digits.
func (s *Source) table(kind, part string) string {
	return sql.Trino.Name(s.catalog, s.schema, tableOf(kind, part))
}

func tableOf(kind, part string) string {
	if strings.ToLower(part) == part {
		return kind + "_" + part
	}
	return fmt.Sprintf("%sx_%x", kind, part)
}

// partOf is the part that a table is for; false if it is no table of ours.
func partOf(table string) (part string, ok bool) {
	kind, rest, found := strings.Cut(table, "_")
	for _, k := range []string{partTable, placesTable, secretTable} {
		switch {
		case !found || !partName.MatchString(rest) && kind != k+"x":
		case kind == k:
			return rest, true
		case kind == k+"x":
			var name []byte
			if _, err := fmt.Sscanf(rest, "%x", &name); err == nil && partName.Match(name) {
				return string(name), true
			}
		}
	}
	return "", false
}

// connectorOf is what a catalog is: iceberg, delta_lake, hive, memory and others; "" where that is not shown to the loader.
func (s *Source) connectorOf(ctx context.Context, catalog string) (string, error) {
	rows, err := s.loader.rows(ctx, "SELECT connector_name FROM system.metadata.catalogs WHERE catalog_name = "+sql.Trino.Literal(catalog))
	if err != nil {
		return "", unavailable(err)
	}
	if len(rows) == 0 {
		return "", nil
	}
	name, _ := rows[0][0].(string)
	return name, nil
}

// kept is the connector of the catalog of the parts.
func (s *Source) kept(ctx context.Context) (string, error) {
	s.mu.Lock()
	name := s.connector
	s.mu.Unlock()
	if name != "" {
		return name, nil
	}
	name, err := s.connectorOf(ctx, s.catalog)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connector = name
	return name, err
}
