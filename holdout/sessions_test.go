package holdout

import (
	"strings"
	"testing"
	"time"
)

// TestSessionsOfAllServers: a session that one server began goes on at another one and after a restart, and is over at all of them when it is ended, when its key
// is revoked, when nothing used it, and in the end. It would notice a session that only one server knows, a sign-out that the others do not hear of, a renewal that
// makes a session last for ever, and a token of another server key.
func TestSessionsOfAllServers(t *testing.T) {
	all := replicas(t, 2)
	info, secret, err := all[0].CreateKey(t.Context(), admin, "ana", Analyst)
	must(t, err)
	now := time.Now()
	begin := func() string {
		t.Helper()
		token, err := all[0].BeginSession(Remember(secret), now)
		must(t, err)
		return token
	}
	// lives asks every server, and returns the newest token.
	lives := func(token string, at time.Time, want bool) string {
		t.Helper()
		next := token
		for i, s := range all {
			p, renewed, err := s.Session(t.Context(), token, at)
			if (err == nil) != want || want && p.KeyID != info.ID || !want && KindOf(err) != Unauthorized {
				t.Errorf("server %d, after %v: %+v, %v, want %v", i, at.Sub(now), p, err, want)
			}
			if renewed != "" {
				next = renewed
			}
		}
		return next
	}
	first, second := begin(), begin()
	if strings.Contains(first, secret) || first == second {
		t.Errorf("the tokens %s and %s", first, second)
	}
	lives(first, now, true)
	must(t, all[1].EndSession(t.Context(), first, now))
	lives(first, now, false)
	lives(second, now, true)

	// A used session is renewed, and its age is that of its beginning.
	token, at := second, now
	for at.Sub(now) < SessionLife-SessionIdle {
		at = at.Add(SessionIdle - time.Second)
		if next := lives(token, at, true); next == token {
			t.Fatalf("not renewed after %v", at.Sub(now))
		} else {
			token = next
		}
	}
	lives(second, at, false) // it was not used by this token
	lives(token, now.Add(SessionLife+time.Second), false)
	if next := lives(begin(), now.Add(sessionRenewal/2), true); strings.Contains(next, "=") {
		t.Errorf("the token %s needs quoting in a cookie", next)
	}
	idle := begin()
	lives(idle, now.Add(SessionIdle+time.Second), false)

	// Ending a renewed token ends the session, whichever of its tokens is shown.
	old := begin()
	renewed := lives(old, now.Add(time.Hour), true)
	must(t, all[0].EndSession(t.Context(), renewed, now.Add(time.Hour)))
	lives(old, now.Add(time.Hour), false)
	lives(renewed, now.Add(time.Hour), false)

	last := begin()
	for _, wrong := range []string{"", "x", last[:len(last)-2] + "xx", last + "AAAA", strings.Repeat("A", 1<<16)} {
		lives(wrong, now, false)
	}
	other := open(t, t.TempDir())
	if _, _, err := other.Session(t.Context(), last, now); KindOf(err) != Unauthorized {
		t.Errorf("a server with another key takes the session: %v", err)
	}
	must(t, all[1].RevokeKey(t.Context(), admin, info.ID, false))
	lives(last, now, false)
}
