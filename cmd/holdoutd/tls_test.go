package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/internal/await"
)

// writeCertificate makes a certificate for 127.0.0.1 with a serial number of its own and puts it in place as tools do that renew
// certificates: each file by a rename.
func writeCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "holdoutd test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"key.pem": {Type: "PRIVATE KEY", Bytes: private}, "cert.pem": {Type: "CERTIFICATE", Bytes: cert}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// serialOf is the serial number of the certificate that a new connection sees. The version and the errors of TLS are the client's.
func serialOf(addr string, config *tls.Config) (int64, error) {
	c, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// TestTLS: a server with a certificate answers over TLS only, takes a renewed pair while it runs, keeps the old one while the new
// cannot be read, and reads again at SIGHUP.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	p := startServer(t, filepath.Join(dir, "data"), "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	addr := strings.TrimPrefix(p.url, "http://")
	roots := func() *x509.CertPool {
		pool := x509.NewCertPool()
		text, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
		if err != nil || !pool.AppendCertsFromPEM(text) {
			t.Fatal(err)
		}
		return pool
	}
	if serial, err := serialOf(addr, &tls.Config{RootCAs: roots()}); err != nil || serial != 1 {
		t.Fatalf("serial %d, %v", serial, err)
	}
	if _, err := serialOf(addr, &tls.Config{RootCAs: roots(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"))
	reply := make([]byte, 64)
	if n, _ := c.Read(reply); strings.Contains(string(reply[:n]), " 200 ") {
		t.Errorf("it answers in clear: %s", reply[:n])
	}

	writeCertificate(t, dir, 2)
	if serial, err := serialOf(addr, &tls.Config{RootCAs: roots()}); err != nil || serial != 2 {
		t.Errorf("after the files were replaced: serial %d, %v", serial, err)
	}
	good := roots()
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if serial, err := serialOf(addr, &tls.Config{RootCAs: good}); err != nil || serial != 2 {
		t.Errorf("while the file is broken: serial %d, %v", serial, err)
	}
	await.Until(t, "the log says so", func() bool { return strings.Contains(p.stderr.String(), "the one before it stays in use") })

	// SIGHUP reads without a connection that asks: the log says so.
	writeCertificate(t, dir, 3)
	before := strings.Count(p.stderr.String(), "certificate read")
	p.cmd.Process.Signal(syscall.SIGHUP)
	await.Until(t, "SIGHUP reads the certificate", func() bool { return strings.Count(p.stderr.String(), "certificate read") > before })
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// TestInsecureAddresses: where keys would travel in clear, or half of a pair is given, the server does not start.
func TestInsecureAddresses(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for _, c := range []struct {
		says   string
		status int // 2 where the command line is wrong, 1 where what it names is
		args   []string
	}{
		{"keys would travel", 2, []string{"--addr", "0.0.0.0:0"}},
		{"belong together", 2, []string{"--addr", "127.0.0.1:0", "--tls-cert", cert}},
		{"contradicts", 2, []string{"--addr", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--insecure-http"}},
		{"the certificate cannot be used", 1, []string{"--addr", "127.0.0.1:0", "--tls-cert", key, "--tls-key", key}},
		{"cert-that-is-not-there.pem: no such file", 1, []string{"--addr", "127.0.0.1:0", "--tls-cert", filepath.Join(dir, "cert-that-is-not-there.pem"), "--tls-key", key}},
	} {
		_, errs, code := holdoutd(t, append([]string{"serve", "--any-filesystem", "--data", filepath.Join(dir, "data")}, c.args...)...)
		if code != c.status || !strings.Contains(errs, c.says) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
	startServer(t, filepath.Join(dir, "data"), "--addr", "0.0.0.0:0", "--insecure-http") // the later --addr counts
	startServer(t, filepath.Join(dir, "other"), "--addr", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key)
}

// TestNonsenseLimits: a limit that is none is refused, not taken for the default.
func TestNonsenseLimits(t *testing.T) {
	for _, flag := range []string{
		"--questions=-1", "--uploads=0", "--handle=-1s", "--drain=0s", "--rate=NaN", "--rate=0", "--rate=Inf", "--batch-bytes=-5", "--burst=0", "--upload-bytes=0", "--query-bytes=-1",
	} {
		_, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), flag)
		if name, _, _ := strings.Cut(flag, "="); code != 2 || !strings.Contains(errs, name+" must be more than 0") {
			t.Errorf("%s: %d %s", flag, code, errs)
		}
	}
}
