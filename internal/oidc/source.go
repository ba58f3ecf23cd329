package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// maxDocument is the most bytes of a discovery document or a key set: large ones, with certificates, have 30 KiB.
	maxDocument = 256 << 10
	// maxRedirects is how often the place of a document may point elsewhere.
	maxRedirects = 3
)

// Options say whose tokens are taken.
type Options struct {
	Issuer   string // as its tokens say it: https://…
	Audience string // whom its tokens must be for
	Claim    string // which claim names the subject; default: sub
	Keys     string // URL or file of its JWK Set; default: what Issuer/.well-known/openid-configuration names
	Logger   *slog.Logger

	FetchTime time.Duration     // how long a reading of the keys takes at most; default: FetchTime
	Transport http.RoundTripper // default: one with the system's authorities
	Now       func() time.Time  // default: time.Now. Tests have a clock of their own
}

// DefaultClaim names the subject where no other is wanted: an issuer never gives it to another one.
const DefaultClaim = "sub"

// New says what is wrong with the options. It asks the issuer nothing yet: the first token does, so that a server starts while its issuer is down. A file is read once, to see that it is one.
func New(o Options) (*Issuer, error) {
	if o.Claim == "" {
		o.Claim = DefaultClaim
	}
	if o.FetchTime == 0 {
		o.FetchTime = FetchTime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := checkURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("the issuer %w", err)
	}
	for _, text := range []struct{ what, value string }{{"audience", o.Audience}, {"claim", o.Claim}} {
		if err := CheckSubject(text.value); err != nil {
			return nil, fmt.Errorf("the %s %w", text.what, err)
		}
	}
	source, err := o.source()
	if err != nil {
		return nil, err
	}
	k := &keys{source: source, within: o.FetchTime, now: o.Now, log: o.Logger}
	k.ctx, k.end = context.WithCancel(context.Background())
	return &Issuer{name: o.Issuer, audience: o.Audience, claim: o.Claim, keys: k, now: o.Now}, nil
}

// Close ends what is being read.
func (i *Issuer) Close() { i.keys.close() }

// source is how the issuer's keys are read.
func (o *Options) source() (func(ctx context.Context) ([]byte, error), error) {
	if o.Keys != "" && !strings.Contains(o.Keys, "://") {
		read := func(context.Context) ([]byte, error) { return readFile(o.Keys) }
		text, err := readFile(o.Keys)
		if err == nil {
			_, err = parseSet(text)
		}
		if err != nil {
			return nil, fmt.Errorf("the file %s of the issuer's keys: %w", o.Keys, err)
		}
		return read, nil
	}
	web := newWeb(o.Transport)
	if o.Keys != "" {
		if err := checkURL(o.Keys); err != nil {
			return nil, fmt.Errorf("the address of the issuer's keys %w", err)
		}
		return func(ctx context.Context) ([]byte, error) { return web.get(ctx, o.Keys) }, nil
	}
	issuer, about := o.Issuer, strings.TrimSuffix(o.Issuer, "/")+"/.well-known/openid-configuration"
	return func(ctx context.Context) ([]byte, error) {
		text, err := web.get(ctx, about)
		if err != nil {
			return nil, err
		}
		var d struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("%s is no JSON object", about)
		}
		if d.Issuer != issuer { // OpenID Connect Discovery, section 4.3
			return nil, fmt.Errorf("%s is about another issuer, %q", about, d.Issuer)
		}
		if err := checkURL(d.Keys); err != nil {
			return nil, fmt.Errorf("jwks_uri of %s %w", about, err)
		}
		return web.get(ctx, d.Keys)
	}, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path)
}

func readAll(r io.Reader, from string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%s has more than %d bytes", from, maxDocument)
	}
	return text, err
}

// checkURL takes addresses whose answer nobody on the way can write: what is read there decides who is who.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%q must be an address that begins with https://", text)
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q must begin with https:// (http:// is for a host of this machine)", text)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

type web struct{ client *http.Client }

func newWeb(transport http.RoundTripper) web {
	if transport == nil {
		transport = http.DefaultTransport
	}
	return web{&http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("it points elsewhere too often")
		}
		return checkURL(r.URL.String())
	}}}
}

// get reads a document, within the time of ctx.
func (w web) get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	reply, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, reply.Status)
	}
	return readAll(reply.Body, address)
}
