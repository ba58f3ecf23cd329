package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/internal/dashboard"
)

// TestDashboardIsServed opens the application's pages and files as a stranger. It notices a page that the server does not know, a policy that lets
// something in, a compressed reply that is another file, and a file that is sent again although the browser has it.
func TestDashboardIsServed(t *testing.T) {
	s := start(t, Options{})
	page, files, err := dashboard.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range dashboard.Pages {
		files[strings.ReplaceAll(address, ":id", "ho_1")] = page
	}
	for address, file := range files {
		plain := s.get(address, noKey, "Accept-Encoding: identity")
		h := plain.Header
		if plain.StatusCode != 200 || !bytes.Equal(plain.body, file.Body) || h.Get("Content-Type") != file.Media {
			t.Errorf("%s: %d, %s, %d bytes", address, plain.StatusCode, h.Get("Content-Type"), len(plain.body))
		}
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", address, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-cache" || len(h.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %v", address, h)
		}
		again := s.get(address, noKey, "Accept-Encoding: identity", `If-None-Match: "x", `+h.Get("ETag"))
		if again.StatusCode != 304 || len(again.body) > 0 {
			t.Errorf("%s again: %d, %d bytes", address, again.StatusCode, len(again.body))
		}
		zipped := s.get(address, noKey, "Accept-Encoding: br, gzip;q=0.5")
		if got := zipped.Header.Get("Content-Encoding") == "gzip"; got != (file.Gzip != nil) {
			t.Errorf("%s: compressed: %v", address, got)
		}
		if file.Gzip == nil {
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(zipped.body))
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		if body, err := io.ReadAll(r); err != nil || !bytes.Equal(body, file.Body) {
			t.Errorf("%s is another file when it is compressed: %v", address, err)
		}
		if zipped.Header.Get("ETag") == h.Get("ETag") || zipped.Header.Get("Vary") != "Accept-Encoding" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: caches take one form for the other: %v", address, zipped.Header)
		}
		if r := s.get(address, noKey, "Accept-Encoding: gzip;q=0"); r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for a client that refuses it", address)
		}
	}
	for _, nowhere := range []string{"/holdouts/", "/holdouts/ho_1/elsewhere", "/assets", "/assets/../index.html", "/index.html", "/v1"} {
		if r := s.get(nowhere, noKey); r.StatusCode != 404 {
			t.Errorf("%s: %d", nowhere, r.StatusCode)
		}
	}
}

// TestDashboardIsSmall: all that the application can load is less than 300 kB as it is sent.
func TestDashboardIsSmall(t *testing.T) {
	page, files, err := dashboard.Load()
	if err != nil {
		t.Fatal(err)
	}
	files["/"] = page
	total := 0
	for address, f := range files {
		size := len(f.Body)
		if f.Gzip != nil {
			size = len(f.Gzip)
		}
		total += size
		t.Logf("%7d %s", size, address)
	}
	if most := 300_000; total > most {
		t.Errorf("%d bytes are sent for the whole application, want at most %d", total, most)
	}
}
