package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// TestReplicasShareGrants lets keys with slices of one grant race for it at three servers: what they spend together is the grant's last question, and no more. It notices a server that does not look at what another one has debited.
func TestReplicasShareGrants(t *testing.T) {
	r := startReplicas(t, 3)
	id := r.create(t, r.clients[0], client.Settings{Name: "gaussian", Holdout: 0.5, Mechanism: "gaussian", Questions: 400})
	key := func() client.Key {
		k, err := r.clients[0].CreateKey(t.Context(), "agent", "granted")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	const slice = 12
	team, err := r.clients[0].CreateGrant(t.Context(), client.NewGrant{Key: key().ID, Holdout: id, Questions: slice})
	if err != nil {
		t.Fatal(err)
	}
	var answered, refused atomic.Int64
	var group sync.WaitGroup
	for who := range 3 {
		k := key()
		if _, err := r.clients[who].CreateGrant(t.Context(), client.NewGrant{Key: k.ID, Holdout: id, Questions: slice, Parent: team.ID}); err != nil {
			t.Fatal(err)
		}
		for at, p := range r.all {
			c, err := client.New(p.url, k.Secret)
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				for i := range 4 {
					_, err := c.Ask(context.Background(), id, above(100*who+10*at+i))
					var problem *client.Problem
					switch {
					case err == nil:
						answered.Add(1)
					case errors.As(err, &problem) && problem.Code == "grant-exhausted":
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	if answered.Load() != slice || refused.Load() != 36-slice {
		t.Errorf("%d answered and %d refused of a slice of %d", answered.Load(), refused.Load(), slice)
	}
	if v := r.books(t, id); v.Spent["questions"] != slice {
		t.Errorf("the ledger has %v", v.Spent)
	}
	spenders, err := r.clients[1].Spending(t.Context(), id)
	sum := int64(0)
	for _, s := range spenders {
		sum += s.Questions
	}
	if err != nil || sum != slice {
		t.Errorf("who spent what: %+v %v", spenders, err)
	}
	if err := r.clients[2].RevokeGrant(t.Context(), team.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.clients {
		grants, err := c.Grants(t.Context())
		if err != nil || len(grants) != 4 {
			t.Errorf("%+v %v", grants, err)
		}
		for _, g := range grants {
			if g.State != "revoked" {
				t.Errorf("%s is %s after its parent was revoked at another server", g.ID, g.State)
			}
		}
	}
}

// TestGrantCommand makes a grant, lists it, spends nothing of it and revokes it, as the page of commands shows.
func TestGrantCommand(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	r := &replicas{dir: dir}
	id := r.create(t, connect(t, p, dir), client.Settings{Name: "gaussian", Holdout: 0.5, Mechanism: "gaussian", Questions: 40})
	call := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := holdoutd(t, append(args, "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key"))...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	call(0, "key", "create", "agent", "--scope", "granted")
	grant := strings.TrimSpace(call(0, "grant", "create", "agent", "gaussian", "--questions", "5", "--for", "24h", "--shows", "bit"))
	if out := call(0, "grant", "list"); !strings.Contains(out, grant) || !strings.Contains(out, "0 of 5, 5 left") || !strings.Contains(out, "bit") || !strings.Contains(out, "valid") {
		t.Errorf("list: %s", out)
	}
	if out := call(0, "grant", "spending", "gaussian"); fmt.Sprint(strings.Fields(out)) != "[KEY NAME QUESTIONS TOKENS]" {
		t.Errorf("spending: %s", out)
	}
	call(0, "key", "create", "run-7", "--scope", "granted")
	part := strings.TrimSpace(call(0, "grant", "create", "run-7", id, "--questions", "2", "--parent", grant, "--shows", "bit"))
	if out := call(0, "grant", "list"); !strings.Contains(out, part) || !strings.Contains(out, "0 of 2, 2 left") {
		t.Errorf("list with a slice of the slice: %s", out)
	}
	for shows, want := range map[string]string{"value": "the grant of this key shows no intervals", "bit": "passed  (the grant of this key shows whether it passed, and no more)"} {
		secret, _, code := holdoutd(t, "key", "create", "shown-"+shows, "--scope", "granted", "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key"))
		if code != 0 {
			t.Fatal(secret)
		}
		slice := strings.TrimSpace(call(0, "grant", "create", "shown-"+shows, id, "--questions", "2", "--shows", shows))
		out, errs, code := holdoutd(t, "ask", `{"type":"passes","of":{"type":"fraction","of":"delay > 15"},"below":0.9}`, "--url", p.url, "--key", strings.TrimSpace(secret))
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "no value") || strings.Contains(out, "[") {
			t.Errorf("an answer of which a grant shows the %s: exit code %d: %s%s", shows, code, out, errs)
		}
		call(0, "grant", "revoke", slice)
	}
	call(0, "grant", "revoke", grant)
	if out := call(0, "grant", "list"); !strings.Contains(out, "revoked") {
		t.Errorf("after the revocation: %s", out)
	}
	if out := call(2, "grant", "create", "agent", id); !strings.Contains(out, "questions") {
		t.Errorf("without questions: %s", out)
	}
}
