package holdout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// withIssuer opens a service that takes an issuer's tokens.
func withIssuer(t *testing.T, dir string, from *oidctest.Issuer, change ...func(*oidc.Options)) *Service {
	t.Helper()
	o := oidc.Options{Issuer: from.URL, Audience: oidctest.Audience, Transport: from.Client().Transport}
	for _, f := range change {
		f(&o)
	}
	issuer, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	return open(t, dir, func(o *Options) { o.Issuer = issuer })
}

// TestWhatIsRememberedOfAToken ends with it, by the service's clock, and with its key; a key's does not end.
func TestWhatIsRememberedOfAToken(t *testing.T) {
	from := oidctest.New(t)
	s := withIssuer(t, t.TempDir(), from)
	k, err := s.BindKey(t.Context(), admin, "Ann", Analyst, "ann")
	if err != nil || k.OIDC == nil || *k.OIDC != (KeySubject{from.URL, "sub", "ann"}) {
		t.Fatalf("%+v %v", k, err)
	}
	_, secret, err := s.CreateKey(t.Context(), admin, "Ann", Analyst)
	if err != nil {
		t.Fatal(err)
	}
	claims := from.Claims("ann", time.Now())
	claims["exp"] = time.Now().Add(time.Minute).Unix()
	token, err := s.Remember(t.Context(), from.Sign(claims))
	if err != nil {
		t.Fatal(err)
	}
	longer, err := s.Remember(t.Context(), from.Token("ann"))
	if err != nil || !token.Same(longer) {
		t.Fatalf("two tokens of a subject are not of one: %+v %+v %v", token, longer, err)
	}
	key, err := s.Remember(t.Context(), secret)
	if err != nil || key.Same(token) {
		t.Fatal(err)
	}
	stays := func(what string, r Remembered, want bool) {
		t.Helper()
		p, err := s.Recall(t.Context(), r)
		if want && (err != nil || p.Scope != Analyst || r != key && p.KeyID != k.ID) {
			t.Errorf("%s: %+v %v", what, p, err)
		}
		if !want && (KindOf(err) != Unauthorized || p != (Principal{})) {
			t.Errorf("%s: %+v %v", what, p, err)
		}
	}
	stays("a token", token, true)
	ahead := time.Duration(0)
	s.clock = func() time.Time { return time.Now().Add(ahead) }
	ahead = time.Minute + oidc.Leeway - 5*time.Second
	stays("a token within the leeway", token, true)
	ahead = time.Minute + oidc.Leeway + 5*time.Second
	stays("a token after its end", token, false)
	stays("a longer one", longer, true)
	stays("a key", key, true)
	if err := s.RevokeKey(t.Context(), admin, k.ID); err != nil {
		t.Fatal(err)
	}
	stays("a longer one, whose key is revoked", longer, false)
	stays("the key of the same name", key, true)
}

// TestTokensOfAnEndedBinding: a token that was issued before its subject was bound anew has no rights, as it stands and as a session remembers it: none of an ended binding comes back to life with the next one. One that was issued
// since has, and so has one from before a subject's first binding.
func TestTokensOfAnEndedBinding(t *testing.T) {
	from := oidctest.New(t)
	s := withIssuer(t, t.TempDir(), from)
	token := func(issued time.Time) string {
		claims := from.Claims("ann", time.Now())
		claims["iat"] = issued.Unix()
		return from.Sign(claims)
	}
	silent := from.Claims("ann", time.Now()) // it does not say when it was issued
	delete(silent, "iat")
	k, err := s.BindKey(t.Context(), admin, "Ann", Analyst, "ann")
	must(t, err)
	first := k.Created.Truncate(time.Second)
	olds := map[string]string{"before the first binding": token(first.Add(-time.Hour)), "of the first binding": token(first), "nobody knows when": from.Sign(silent)}
	sessions := map[string]Remembered{}
	for name, old := range olds {
		if p, err := s.Authenticate(t.Context(), old); err != nil || p.KeyID != k.ID {
			t.Errorf("a token %s: %+v %v", name, p, err)
		}
		sessions[name], err = s.Remember(t.Context(), old)
		must(t, err)
	}
	must(t, s.RevokeKey(t.Context(), admin, k.ID))
	again := ledger.Key{ID: "key_again", Name: "Ann", Scope: string(Admin), Created: k.Created.Add(2 * time.Second), Hash: [32]byte{14}, Subject: s.subject("ann")}
	must(t, s.ledger.CreateKey(t.Context(), again)) // two seconds later, without waiting for them
	for name, old := range olds {
		if _, err := s.Authenticate(t.Context(), old); KindOf(err) != Unauthorized || !strings.Contains(err.Error(), "bound anew") {
			t.Errorf("a token %s, of an ended binding: %v", name, err)
		}
		_, err = s.Recall(t.Context(), sessions[name])
		wantKind(t, "a session with a token "+name, err, Unauthorized)
	}
	if p, err := s.Authenticate(t.Context(), token(first.Add(2*time.Second))); err != nil || p.KeyID != again.ID {
		t.Errorf("a token of the new binding: %+v %v", p, err)
	}
}

// TestBindingsAreOfOneIssuer: a subject of another issuer, or of another claim of the same one, is somebody else; and where no tokens are taken a binding gives nothing.
func TestBindingsAreOfOneIssuer(t *testing.T) {
	from, other, dir := oidctest.New(t), oidctest.New(t), t.TempDir()
	s := withIssuer(t, dir, from)
	if _, err := s.BindKey(t.Context(), admin, "Ann", Admin, "ann"); err != nil {
		t.Fatal(err)
	}
	_, err := s.BindKey(t.Context(), analyst, "Eve", Admin, "eve")
	wantKind(t, "an analyst binds", err, Forbidden)
	_, err = s.BindKey(t.Context(), admin, "Eve", Admin, "ann")
	wantKind(t, "a second key of a subject", err, Conflict)
	for _, subject := range []string{"", "a\nb", "\xff", strings.Repeat("a", oidc.MaxSubjectBytes+1)} {
		_, err = s.BindKey(t.Context(), admin, "Eve", Admin, subject)
		wantKind(t, "a subject that is none", err, Invalid)
	}
	if p, err := s.Authenticate(t.Context(), from.Token("ann")); err != nil || p.Scope != Admin {
		t.Errorf("ann: %+v %v", p, err)
	}
	for _, foreign := range []string{other.Token("ann"), from.Token("ANN"), from.Token("ann ")} {
		_, err := s.Authenticate(t.Context(), foreign)
		wantKind(t, "somebody else", err, Unauthorized)
	}
	reopen := func(open func() *Service, token string, want Kind) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open()
		p, err := s.Authenticate(t.Context(), token)
		if want == 0 && (err != nil || p.Scope != Admin) || want != 0 && (KindOf(err) != want || p != (Principal{})) {
			t.Errorf("%+v %v", p, err)
		}
	}
	reopen(func() *Service { return withIssuer(t, dir, other) }, other.Token("ann"), Unauthorized)
	claims := from.Claims("bob", time.Now())
	claims["name"] = "ann"
	named := func(o *oidc.Options) { o.Claim = "name" }
	reopen(func() *Service { return withIssuer(t, dir, from, named) }, from.Sign(claims), Unauthorized)
	reopen(func() *Service { return open(t, dir) }, from.Token("ann"), Unauthorized)
	_, err = s.BindKey(t.Context(), admin, "Bob", Analyst, "bob")
	wantKind(t, "a binding without an issuer", err, Invalid)
	if keys, err := s.Keys(t.Context(), admin); err != nil || len(keys) != 2 || keys[1].OIDC == nil {
		t.Errorf("keys without an issuer: %+v %v", keys, err)
	}
	reopen(func() *Service { return withIssuer(t, dir, from) }, from.Token("ann"), 0)
}

// TestTokensOfAForgottenBinding: a token whose binding was ended has no rights when its subject is bound anew, also where an older ledger was put back that knows nothing of the first binding, or a backup from before it was restored.
// It notices a rule that goes by the ledger alone.
func TestTokensOfAForgottenBinding(t *testing.T) {
	for _, restored := range []bool{false, true} {
		dir := t.TempDir()
		from := oidctest.New(t)
		s := withIssuer(t, dir, from)
		must(t, s.Close())
		putBack := copyLedger(t, dir)
		s = withIssuer(t, dir, from)
		k, err := s.BindKey(t.Context(), admin, "Ann", Analyst, "ann")
		must(t, err)
		claims := from.Claims("ann", time.Now())
		claims["iat"] = k.Created.Unix()
		old := from.Sign(claims)
		must(t, s.RevokeKey(t.Context(), admin, k.ID))
		must(t, s.Close())
		lose(t, dir)
		putBack()
		if restored { // as of a backup from before the binding, into a new directory
			must(t, os.RemoveAll(filepath.Join(dir, revokedDir)))
			must(t, restores{Restores: []restore{{Backup: k.Created, Restored: k.Created.Add(time.Second), Loss: lossAccepted, Keys: keysEnded}}}.write(dir))
		}
		s = withIssuer(t, dir, from)
		must(t, s.ledger.CreateKey(t.Context(), ledger.Key{ID: "key_again", Name: "Ann", Scope: string(Analyst), Created: k.Created.Add(2 * time.Second), Hash: [32]byte{14}, Subject: s.subject("ann")}))
		if _, err := s.Authenticate(t.Context(), old); KindOf(err) != Unauthorized || !strings.Contains(err.Error(), "bound anew") {
			t.Errorf("restored: %v: %v", restored, err)
		}
		claims["iat"] = k.Created.Unix() + 2
		if p, err := s.Authenticate(t.Context(), from.Sign(claims)); err != nil || p.KeyID != "key_again" {
			t.Errorf("restored: %v: a token of the new binding: %+v %v", restored, p, err)
		}
		must(t, s.Close())
	}
}
