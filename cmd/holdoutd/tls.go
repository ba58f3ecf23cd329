package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// tlsFlags say how connections are protected.
type tlsFlags struct {
	cert         string // PEM file of the certificate and those between it and the root
	key          string // PEM file of its private key
	insecureHTTP bool   // keys may travel in clear to other machines
}

func (f *tlsFlags) enabled() bool { return f.cert != "" || f.key != "" }

// check refuses an address that other machines reach where their keys would travel in clear. A key is all there is to be who one
// says one is, and its owner sees nothing of who reads along; so this is not a warning in a log, which nobody reads who only
// wanted it to run. Loopback needs nothing, nor does a proxy on the same machine.
func (f *tlsFlags) check(addr net.Addr) error {
	if f.enabled() && (f.cert == "" || f.key == "") {
		return misuse("--tls-cert and --tls-key belong together; give both or neither")
	}
	if f.enabled() && f.insecureHTTP {
		return misuse("--insecure-http contradicts --tls-cert; give one of them")
	}
	tcp, ok := addr.(*net.TCPAddr)
	if f.enabled() || f.insecureHTTP || ok && tcp.IP.IsLoopback() {
		return nil
	}
	return misuse("other machines can reach %s, and keys would travel to it in clear: give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS, "+
		"or say --insecure-http where the network itself is trusted", addr)
}

// listen puts TLS on a listener. The files are read again when they change, so that a renewed certificate needs no restart.
func (f *tlsFlags) listen(l net.Listener, logger *slog.Logger) (net.Listener, *certificate, error) {
	c := &certificate{certFile: f.cert, keyFile: f.key, log: logger}
	if err := c.load(); err != nil {
		return nil, nil, fmt.Errorf("the certificate cannot be used: %w", err)
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: c.get,
		NextProtos:     []string{"http/1.1"},
	}), c, nil
}

// certificate is a pair of files and what was read from them last. Many handshakes may ask at once.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	stamps [2]stamp // of the files when they were looked at last
}

// A stamp tells a file from what it was before.
type stamp struct {
	size     int64
	modified time.Time
}

func stampOf(path string) (s stamp) {
	if info, err := os.Stat(path); err == nil {
		s = stamp{info.Size(), info.ModTime()}
	}
	return s
}

// load reads both files. Where that fails the certificate before them stays.
func (c *certificate) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read([2]stamp{stampOf(c.certFile), stampOf(c.keyFile)})
}

func (c *certificate) read(stamps [2]stamp) error {
	c.stamps = stamps
	loaded, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.loaded = &loaded
	return nil
}

// get is the certificate for a handshake. Looking at two files costs far less than the handshake itself. The two are not
// replaced at once: while they do not fit, and until they have changed again, the old pair is served.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := [2]stamp{stampOf(c.certFile), stampOf(c.keyFile)}; now != c.stamps {
		c.report(c.read(now))
	}
	return c.loaded, nil
}

// reload reads the files whether they seem to have changed or not, as SIGHUP asks.
func (c *certificate) reload() { c.report(c.load()) }

func (c *certificate) report(err error) {
	if err != nil {
		c.log.Error("the certificate cannot be read again; the one before it stays in use", "cert", c.certFile, "key", c.keyFile, "cause", err.Error())
		return
	}
	c.log.Info("certificate read", "cert", c.certFile)
}
