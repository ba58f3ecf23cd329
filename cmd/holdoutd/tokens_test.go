package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// TestServeWithIssuer starts the program with an issuer's flags, as for GitHub Actions. It notices flags that do not reach the server, and a start that goes well
// though no token could be checked.
func TestServeWithIssuer(t *testing.T) {
	key := oidctest.NewKey(t, "k", jose.RS256)
	issuer := oidctest.NewIssuer(t, key)
	flags := []string{"--oidc-issuer", issuer.URL, "--oidc-audience", "holdout.example", "--oidc-admin", "repository=acme/models AND ref=refs/heads/main", "--oidc-analyst", "repository=acme/models", "--oidc-analyst", "groups=data", "--oidc-granted", "groups=guests", "--oidc-granted", "repository=acme/data"}
	p := startServer(t, t.TempDir(), flags...)
	connectWith := func(claims map[string]any) *client.Client {
		c, err := client.New(p.url, oidctest.Sign(t, key, issuer.Claims("holdout.example", time.Now(), claims)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	push := map[string]any{"sub": "repo:acme/models:ref:refs/heads/main", "repository": "acme/models", "ref": "refs/heads/main", "groups": nil, "preferred_username": nil}
	keys, err := connectWith(push).Keys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("a token of the main branch: %v %v", keys, err)
	}
	push["ref"] = "refs/heads/try"
	if _, err := connectWith(push).Holdouts(t.Context()); err != nil {
		t.Errorf("a token of another branch: %v", err)
	}
	if _, err := connectWith(push).Keys(t.Context()); err == nil {
		t.Error("a token of another branch lists the keys")
	}
	if _, err := connectWith(nil).Holdouts(t.Context()); err != nil {
		t.Errorf("a token of a group: %v", err)
	}
	push["repository"] = "evil/models"
	if _, err := connectWith(push).Holdouts(t.Context()); err == nil {
		t.Error("a token of another repository is accepted")
	}
	if seen, err := connectWith(map[string]any{"groups": nil, "repository": "acme/data", "sub": "guest"}).Holdouts(t.Context()); err != nil || len(seen) != 0 {
		t.Errorf("a token that is for what was granted: %v %v", seen, err)
	}
	p.stop(t)
	if want := oidc.ID(issuer.URL, "repo:acme/models:ref:refs/heads/main"); !strings.Contains(p.stderr.String(), want) {
		t.Errorf("the log does not name %s", want)
	}

	issuer.Answer(http.NotFoundHandler())
	for _, c := range []struct {
		flags []string
		says  string
		code  int
	}{
		{flags, "no token could be checked: oidc: " + issuer.URL + "/keys answers 404", 1},
		{append(flags, "--oidc-jwks", "nowhere.json"), "nowhere.json: no such file", 1},
		{flags[:2], "--oidc-audience is missing", 2},
		{flags[:4], "--oidc-analyst is missing, and so are oidc-granted and oidc-admin", 2},
		{flags[2:], "--oidc-issuer is missing", 2},
		{append(flags[:4:4], "--oidc-granted", "data"), `--oidc-granted: "data" is not CLAIM=VALUE`, 2},
		{append(flags[:8:8], "--oidc-granted", "repository=acme/models AND ref=refs/heads/try", "--oidc-analyst", "repository=acme/models"), "--oidc-granted \"repository=acme/models AND ref=refs/heads/try\" limits nobody", 2},
		{append(flags[:4:4], "--oidc-admin", "data"), `--oidc-admin: "data" is not CLAIM=VALUE`, 2},
		{append(flags[:4:4], "--oidc-analyst", "aud=holdout.example"), "everyone", 2},
		{append([]string{"--oidc-issuer", "http://login.example"}, flags[2:]...), "--oidc-issuer", 2},
	} {
		cmd := exec.Command(binary, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", t.TempDir() + "/data"}, c.flags...)...)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%v: %v, want code %d and %q: %s", c.flags, err, c.code, c.says, out)
		}
	}
}
