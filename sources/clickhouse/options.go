// Package clickhouse lets holdouts stay in ClickHouse: one server, or a cluster of shards. It speaks HTTP and knows versions from 18.16 on.
//
// Two users act there. The loader reads the owner's tables and writes the private database, in which the parts of holdouts are. The reader is asked everything that a question
// needs: it is readonly, and its profile has the limits of memory and time. A source is not used while the reader could write, or while a setting of either user could
// shorten an answer without an error ([checkSettings]).
//
// What is in the private database for a part NAME: the table NAME, with the columns _unit and c0, c1, …; on a cluster that is a Distributed table, and each shard has
// NAME~local. While a table is divided NAME~units has the secret numbers of its units; it is gone afterwards, and after a crash [Source.Parts] lists the part and [Source.Drop] removes
// all. Numbers and sides travel as the body of an INSERT, so that no log of statements has any.
package clickhouse

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultDeadline is how long one statement of a question may take, where the URL does not say. The reader's profile has a limit of its own, at the server.
const DefaultDeadline = 5 * time.Minute

// options are what the URL of a source says.
type options struct {
	server   string // host:port, which is asked
	servers  []string
	database string // the private one
	loader   user
	reader   user
	cluster  string
	scheme   string
	tls      *tls.Config
	deadline time.Duration
}

type user struct{ name, password string }

const form = "clickhouse://LOADER@HOST:8123/PRIVATE_DATABASE?reader=USER"

// parse reads
//
//	clickhouse://LOADER[:PASSWORD]@HOST[:PORT]/PRIVATE_DATABASE?reader=USER&…
//
// clickhouses:// is the same over TLS. Options: reader_password, or password_file and reader_password_file, files of one line; cluster, the name of one in the server's configuration,
// over which parts are sharded; servers, a list of HOST:PORT of all its servers, where the cluster has no coordination service for ON CLUSTER; ca, a file of certificates that TLS
// trusts; deadline, such as 2m, for one statement. Errors quote no password.
func parse(text string) (o options, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return o, errors.New("clickhouse: the URL cannot be read; write " + form) // the library's error quotes it
	}
	bad := func(format string, args ...any) (options, error) {
		return options{}, fmt.Errorf("clickhouse: the URL of the source: "+format, args...)
	}
	o.deadline = DefaultDeadline
	port := "8123"
	switch u.Scheme {
	case "clickhouse":
		o.scheme = "http"
	case "clickhouses":
		o.scheme, port = "https", "8443"
	default:
		return bad("it must begin with clickhouse:// or clickhouses://")
	}
	o.database = strings.TrimPrefix(u.Path, "/")
	if u.User == nil || u.User.Username() == "" || u.Hostname() == "" || o.database == "" || strings.Contains(o.database, "/") {
		return bad("write %s", form)
	}
	o.loader.name = u.User.Username()
	o.loader.password, _ = u.User.Password()
	if o.server = u.Host; u.Port() == "" {
		o.server = net.JoinHostPort(u.Hostname(), port)
	}
	o.servers = []string{o.server}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return bad("what stands after the question mark cannot be read")
	}
	var ca string
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "reader":
			o.reader.name = value
		case "reader_password":
			o.reader.password = value
		case "password_file":
			o.loader.password, err = line(value)
		case "reader_password_file":
			o.reader.password, err = line(value)
		case "cluster":
			o.cluster = value
		case "servers":
			o.servers = strings.Split(value, ",")
		case "tls":
			if value != "1" && value != "true" {
				return bad("tls is %q; write tls=1, or leave it out", value)
			}
			o.scheme = "https"
		case "ca":
			ca = value
		case "deadline":
			if o.deadline, err = time.ParseDuration(value); err != nil || o.deadline <= 0 {
				return bad("deadline is %q; write a time such as 2m", value)
			}
		default:
			return bad("there is no option %q", name)
		}
		if err != nil {
			return bad("%s: %v", name, err)
		}
	}
	switch {
	case o.reader.name == "":
		return bad("it names no reader: make a second user who can only read the database %s, and add reader=USER", o.database)
	case o.reader.name == o.loader.name:
		return bad("the loader and the reader are the same user; the reader must not be able to write")
	case len(o.servers) > 1 && o.cluster == "":
		return bad("servers are those of a cluster; add cluster=NAME")
	}
	for _, s := range o.servers {
		if _, _, err := net.SplitHostPort(s); err != nil {
			return bad("servers: %q is not HOST:PORT", s)
		}
	}
	if o.scheme == "https" {
		o.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return bad("ca: %v", err)
		}
		if o.tls == nil {
			return bad("ca is for TLS: begin with clickhouses://")
		}
		o.tls.RootCAs = x509.NewCertPool()
		if !o.tls.RootCAs.AppendCertsFromPEM(text) {
			return bad("ca: %s has no certificate", ca)
		}
	}
	return o, nil
}

// line is the first line of a file.
func line(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimRight(first, "\r"), nil
}

// name is an identifier as ClickHouse reads it, whatever is in it.
func name(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(p) + "`"
	}
	return strings.Join(quoted, ".")
}

// literal is a text as ClickHouse reads it, whatever is in it.
func literal(text string) string { return fmt.Sprintf("unhex('%x')", text) }
