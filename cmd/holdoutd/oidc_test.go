package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// startTrusting starts serve with an issuer, whose authority it is told as any Go program is.
func startTrusting(t *testing.T, from *oidctest.Issuer, dir string, flags ...string) *process {
	t.Helper()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: from.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return startIssued(t, from, dir, "SSL_CERT_FILE="+authority, flags...)
}

func startIssued(t *testing.T, from *oidctest.Issuer, dir, environment string, flags ...string) *process {
	t.Helper()
	args := append([]string{"serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--log", "json", "--oidc-issuer", from.URL, "--oidc-audience", oidctest.Audience}, flags...)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), environment, "NO_PROXY=127.0.0.1")
	return startProcess(t, cmd)
}

// TestTokensOfAnIssuer: the program takes tokens of an issuer over TLS. Its own command binds a subject, lists, grants and revokes; the tokens go on while the issuer is down, and are in no log and no file.
func TestTokensOfAnIssuer(t *testing.T) {
	from, dir := oidctest.New(t), t.TempDir()
	p := startTrusting(t, from, dir)
	const subject = "repo:acme/models:ref:refs/heads/main"
	token, issued := from.Token(subject), time.Now().Unix()
	admin := "@" + filepath.Join(dir, "admin.key")
	run := func(key string, args ...string) (out, errs string, code int) {
		t.Helper()
		return holdoutd(t, append(args, "--url", p.url, "--key", key)...)
	}
	refused := func(what, says string, code int, args ...string) {
		t.Helper()
		if out, errs, got := run(token, args...); got != code || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s%s, want %d %q", what, got, out, errs, code, says)
		}
	}
	card, err := connect(t, p, dir).CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(minutes int) []string {
		return []string{"ask", "fraction", fmt.Sprintf("delay > %d", minutes), "--holdout", card.ID}
	}
	refused("a subject that nobody has bound", "must bind one", exitFailed, ask(15)...)
	for _, wrong := range [][]string{{"--oidc-subject", ""}, {"--oidc-subject", "a\nb"}} {
		if out, errs, code := run(admin, append([]string{"key", "create", "ci"}, wrong...)...); code != exitMisused || out != "" {
			t.Errorf("%q: %d %s%s", wrong, code, out, errs)
		}
	}
	bind := func(scope string) (id string) {
		t.Helper()
		id, errs, code := run(admin, "key", "create", "ci", "--scope", scope, "--oidc-subject", subject)
		id = strings.TrimSpace(id)
		if code != 0 || !strings.HasPrefix(id, "key_") || strings.Contains(errs, "hk_") {
			t.Fatalf("bound: %d %s%s", code, id, errs)
		}
		return id
	}
	first := bind("granted")
	if out, errs, code := run(admin, "key", "create", "two", "--oidc-subject", subject); code != exitFailed || out != "" || !strings.Contains(errs, "already") {
		t.Errorf("bound twice: %d %s%s", code, out, errs)
	}
	if out, _, _ := run(admin, "key", "list"); !strings.Contains(out, subject+" of "+from.URL+" (sub)") {
		t.Errorf("the list: %s", out)
	}
	refused("no grant", "no such holdout", exitFailed, ask(15)...)
	if out, errs, code := run(admin, "grant", "create", first, card.ID, "--questions", "1"); code != 0 {
		t.Fatalf("a grant: %d %s%s", code, out, errs)
	}
	if out, errs, code := run(token, ask(15)...); code != 0 {
		t.Errorf("asked: %d %s%s", code, out, errs)
	}
	refused("more than the grant", "grant", exitExhausted, ask(30)...)
	refused("an admin's command", "admin", exitFailed, "key", "list")
	from.Server.Close()
	if out, errs, code := run(token, ask(15)...); code != 0 {
		t.Errorf("asked while the issuer is down: %d %s%s", code, out, errs)
	}
	if _, errs, code := run(admin, "key", "revoke", first); code != 0 {
		t.Fatalf("revoked: %d %s", code, errs)
	}
	refused("a revoked key", "must bind one", exitFailed, ask(15)...)
	await.Until(t, "the next second begins", func() bool { return time.Now().Unix() > issued }) // a token says to the second when it was issued
	bind("analyst")
	refused("a token of the ended binding", "bound anew", exitFailed, ask(30)...)
	if out, errs, code := run(from.Token(subject), ask(30)...); code != 0 {
		t.Errorf("bound again: %d %s%s", code, out, errs)
	}

	log := p.stderr.String()
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d", code)
	}
	p = startTrusting(t, from, dir) // it starts while the issuer is down
	if err := oneTry(t, p, token); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "cannot be read now") {
		t.Errorf("the issuer is down from the start: %v", err)
	}
	if out, errs, code := run(admin, ask(45)...); code != 0 {
		t.Errorf("a key meanwhile: %d %s%s", code, out, errs)
	}
	log += p.stderr.String()
	if !strings.Contains(log, "tokens of an issuer are taken") || !strings.Contains(log, "no token is taken") {
		t.Errorf("the log: %s", log)
	}
	p.stop(t)
	for _, piece := range strings.Split(token, ".") {
		if strings.Contains(log, piece) {
			t.Error("a piece of the token is in the log")
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), piece) {
				t.Errorf("a piece of the token is in %s", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// oneTry lists the holdouts with a token. The program would try again for minutes.
func oneTry(t *testing.T, p *process, token string) error {
	t.Helper()
	c, err := client.New(p.url, token, client.WithRetries(0))
	if err == nil {
		_, err = c.Holdouts(t.Context())
	}
	return err
}

// TestUntrustedIssuer: an issuer whose certificate is of no known authority gives no keys, so no token is taken.
func TestUntrustedIssuer(t *testing.T) {
	from, dir := oidctest.New(t), t.TempDir()
	p := startIssued(t, from, dir, "SSL_CERT_FILE=")
	if err := oneTry(t, p, from.Token("ann")); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "cannot be read now") {
		t.Error(err)
	}
	await.Until(t, "the log says why", func() bool { return strings.Contains(p.stderr.String(), "certificate") })
	if from.Read.Load() != 0 {
		t.Error("keys were read of a stranger")
	}
}

// TestIssuerFlags: what makes no sense about an issuer is misuse, said before a data directory is made.
func TestIssuerFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	empty := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(empty, []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ flags, says string }{
		{"--oidc-audience a", "name it with --oidc-issuer"},
		{"--oidc-jwks " + empty, "name it with --oidc-issuer"},
		{"--oidc-claim email", "name it with --oidc-issuer"},
		{"--oidc-issuer https://issuer.example", "--oidc-issuer needs --oidc-audience"},
		{"--oidc-issuer http://issuer.example --oidc-audience a", "must begin with https://"},
		{"--oidc-issuer issuer.example --oidc-audience a", "begins with https://"},
		{"--oidc-issuer https://issuer.example --oidc-audience a --oidc-jwks http://issuer.example/keys", "must begin with https://"},
		{"--oidc-issuer https://issuer.example --oidc-audience a --oidc-jwks " + empty, "none of its 0 keys"},
		{"--oidc-issuer https://issuer.example --oidc-audience a --oidc-jwks " + empty + ".no", "no such file"},
	} {
		out, errs, code := holdoutd(t, append([]string{"serve", "--data", dir, "--any-filesystem", "--addr", "127.0.0.1:0"}, strings.Fields(one.flags)...)...)
		if code != exitMisused || !strings.Contains(errs, one.says) {
			t.Errorf("%s: %d %s%s", one.flags, code, out, errs)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a data directory was made")
	}
}

// TestReplicasTakeTokens: a binding and its revocation count at each server of a shared ledger at once, and a grant is one whichever server a token comes to.
func TestReplicasTakeTokens(t *testing.T) {
	from := oidctest.New(t)
	r := &replicas{dir: t.TempDir(), address: pgtest.Shared(t).New(t).Address()}
	for range 2 {
		p := startTrusting(t, from, r.dir, "--ledger", r.address)
		r.all, r.clients = append(r.all, p), append(r.clients, connect(t, p, r.dir))
	}
	id := r.create(t, r.clients[0], client.Settings{Name: "gaussian", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
	k, err := r.clients[0].BindKey(t.Context(), "ci", "granted", "ci")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.clients[1].BindKey(t.Context(), "ci", "granted", "ci"); err == nil {
		t.Error("bound at both")
	}
	if _, err := r.clients[1].CreateGrant(t.Context(), client.NewGrant{Key: k.ID, Holdout: id, Questions: 2}); err != nil {
		t.Fatal(err)
	}
	var theirs []*client.Client
	for _, p := range r.all {
		c, err := client.New(p.url, from.Token("ci"), client.WithRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, c)
	}
	for i, c := range theirs {
		if _, err := c.Ask(t.Context(), id, above(15+i)); err != nil {
			t.Errorf("at server %d: %v", i, err)
		}
	}
	for i, c := range theirs {
		var problem *client.Problem
		if _, err := c.Ask(t.Context(), id, above(30)); !errors.As(err, &problem) || problem.Code != "grant-exhausted" {
			t.Errorf("a third question at server %d: %v", i, err)
		}
	}
	if err := r.clients[1].RevokeKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	for i, c := range theirs {
		if _, err := c.Budget(t.Context(), id); err == nil || !strings.Contains(err.Error(), "must bind one") {
			t.Errorf("a revoked key at server %d: %v", i, err)
		}
	}
	if _, err := r.clients[0].BindKey(t.Context(), "ci", "analyst", "ci"); err != nil {
		t.Fatal(err)
	}
	for i, p := range r.all {
		c, err := client.New(p.url, from.Token("ci"), client.WithRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), id, above(30)); err != nil {
			t.Errorf("bound anew, at server %d: %v", i, err)
		}
	}
}
