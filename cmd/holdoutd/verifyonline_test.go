package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
)

// TestVerifyOnline verifies a running server while clients ask it: everything is in order, and heads are kept. Then the directory of an older moment is put back: what was kept tells, though the server itself is well. Deleted
// holdouts have their chains; a chain that was changed on its way, a budget that is not that of the chain, and a key that may not export are told.
func TestVerifyOnline(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	key := "@" + filepath.Join(dir, "admin.key")
	var ids []string
	for _, mechanism := range []string{"gaussian", "guess_and_check"} {
		table := []byte(data.Flights)
		if mechanism != "gaussian" {
			table = randomTable(t, rand.New(rand.NewPCG(crashSeed, 2)))
		}
		card, err := c.CreateHoldout(ctx, bytes.NewReader(table), client.Settings{Name: mechanism, Mechanism: mechanism, Questions: 100, Unit: "row"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, card.ID)
	}
	ask := func(minutes int) {
		t.Helper()
		for i, id := range ids {
			q := above(minutes)
			if i == 1 {
				q["of"] = fmt.Sprintf("x > 0.%d", 300+minutes)
			}
			if i == 1 && minutes%2 == 0 {
				q["guess"] = 0.001 // it is wrong, and takes a token
			}
			if _, err := c.Ask(ctx, id, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := filepath.Join(t.TempDir(), "heads.json")
	online := func(more ...string) []string {
		return append([]string{"verify", "--online", "--url", p.url, "--key", key, "--kept", kept}, more...)
	}
	for minutes := range 4 {
		ask(minutes)
	}
	asking, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asking)
		for minutes := 100; ; minutes++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.Ask(ctx, ids[0], above(minutes)); err != nil && !client.IsBudgetExhausted(err) {
				t.Error(err)
				return
			}
		}
	}()
	for range 3 {
		out, _ := done(t, online()...)
		if strings.Count(out, ": in order") != 2 || !strings.Contains(out, "of 20 tokens") {
			t.Errorf("verify --online: %s", out)
		}
	}
	close(stop)
	<-asking
	var heads map[string]holdout.Place
	if err := json.Unmarshal([]byte(readFile(t, kept)), &heads); err != nil || len(heads) != 2 || heads[ids[1]].Seq != 4 {
		t.Errorf("the heads are %v, %v", heads, err)
	}
	if out, _ := done(t, "verify", "--online", "--url", p.url, "--key", key, "--json", "guess_and_check"); !strings.Contains(out, ids[1]) || strings.Contains(out, ids[0]) {
		t.Errorf("verify --online of one: %s", out)
	}

	// An older directory.
	p.stop(t)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	modes := func() {
		for name, mode := range map[string]os.FileMode{"": 0o700, "server.key": 0o600, "admin.key": 0o600, "holdouts": 0o700, "tmp": 0o700} {
			if err := os.Chmod(filepath.Join(old, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	modes()
	p = startServer(t, dir)
	c = connect(t, p, dir)
	ask(50)
	done(t, online()...)
	p.stop(t)
	dir, p = old, startServer(t, old)
	c = connect(t, p, dir)
	out, errs, code := holdoutd(t, online()...)
	if code != 1 || strings.Count(errs, "an older ledger was put back") != 2 {
		t.Errorf("the older ledger: %d %s%s", code, out, errs)
	}
	if again, _, code := holdoutd(t, online()...); code != 1 { // the kept heads have not been replaced by the older ones
		t.Errorf("the older ledger, once more: %d %s", code, again)
	}

	// Rounds of which questions are lost, a final report and a draft are in order. The draft may go: nothing was asked of it.
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	var more []string
	for i, settings := range []client.Settings{{Name: "rounds", Mechanism: "gaussian", Questions: 10, Rounds: 3, Unit: "row"}, {Name: "draft", Questions: 10, Unit: "row"}} {
		card, err := c.CreateHoldout(ctx, bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(crashSeed, 3+uint64(i))))), settings)
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, card.ID)
		if settings.Rounds > 0 {
			if _, err := c.AskBatch(ctx, card.ID, []any{map[string]any{"type": "fraction", "of": "x > 0.5"}}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.CloseWithReport(ctx, ids[1], []any{map[string]any{"type": "fraction", "of": "x > 0.77"}}, "the end"); err != nil {
		t.Fatal(err)
	}
	if out, _ := done(t, online()...); strings.Count(out, ": in order") != 3 || !strings.Contains(out, "1 of 3 rounds") {
		t.Errorf("three holdouts that are no drafts: %s", out)
	}
	if card, err := c.Holdout(ctx, more[1]); err != nil || !card.Draft {
		t.Errorf("the draft is no draft any more: %+v, %v", card, err)
	}
	for _, id := range more { // the one of rounds was asked
		if err := c.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := done(t, online()...); strings.Count(out, ": in order") != 3 || strings.Count(out, "(deleted): in order") != 1 {
		t.Errorf("after the deletions of a draft and of another one: %s", out)
	}

	// A holdout that is deleted has its chain, and one that nobody has is missed.
	if err := c.Delete(ctx, ids[1]); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{online(), online(ids[1])} {
		if out, errs, code := holdoutd(t, args...); code != 0 || !strings.Contains(out, ids[1]+` "guess_and_check" (deleted): in order`) {
			t.Errorf("after a deletion: %d %s%s", code, out, errs)
		}
	}
	const nobody = "ho_00000000-0000-4000-8000-000000000000"
	whole := readFile(t, kept)
	text := strings.Replace(whole, ids[1], nobody, 1)
	if err := os.WriteFile(kept, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := holdoutd(t, online()...); code != 1 || !strings.Contains(errs, nobody+": there is no such holdout") || !strings.Contains(out, ids[0]) {
		t.Errorf("a holdout that is gone: %d %s%s", code, out, errs)
	}
	if err := json.Unmarshal([]byte(text), &heads); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, []byte(strings.Replace(text, heads[ids[0]].Head, heads[nobody].Head, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := holdoutd(t, online()...); code != 1 || !strings.Contains(errs, nobody+": there is no such holdout") || !strings.Contains(errs, "holdout "+ids[0]+": the chain") {
		t.Errorf("one that is gone and one that is older: %d %s%s", code, out, errs)
	}
	if err := os.WriteFile(kept, []byte("null\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := holdoutd(t, online()...); code != 1 || !strings.Contains(errs, kept) {
		t.Errorf("heads that are none: %d %s%s", code, out, errs)
	}

	if _, err := c.Release(ctx, ids[0], client.NewRelease{Epsilon: 0.5}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	done(t, online()...)
	whole = readFile(t, kept)

	// Between: a proxy that changes what the server says, or asks it for another holdout.
	to, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, old, new, want string }{
		{ids[0] + "/ledger", `\"value\":`, `\"value\":1`, "head"},
		{ids[0] + "/budget", `"left":`, `"left":1`, "and the server says"},
		{ids[0] + "/releases", `"spent":0.5`, `"spent":1.5`, "1 releases of epsilon 0.5 together, and the server says 1 to 1 of 1.5"},
		{ids[0] + "/budget", ids[0], nobody, "its chain has no deletion"},
		{ids[1] + "/budget", ids[1], ids[0], "its chain ends with a deletion"},
		{ids[1] + "/ledger", ids[1], ids[0], "the server gave the ledger of " + ids[0]},
	} {
		proxy := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(to)
				r.Out.Header.Del("Accept-Encoding")
				if strings.HasSuffix(r.In.URL.Path, c.path) {
					r.Out.URL.Path = strings.Replace(r.Out.URL.Path, c.old, c.new, 1)
				}
			},
			ModifyResponse: func(r *http.Response) error {
				if strings.HasSuffix(r.Request.URL.Path, c.path) {
					return rewriteBody(r, c.old, c.new)
				}
				return nil
			},
		})
		out, errs, code := holdoutd(t, "verify", "--online", "--url", proxy.URL, "--key", key, ids[0], ids[1])
		proxy.Close()
		if code != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("%s was changed: %d %s%s", c.path, code, out, errs)
		}
	}

	analyst, err := connect(t, p, dir).CreateKey(ctx, "ann", "analyst")
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, code := holdoutd(t, "verify", "--online", "--url", p.url, "--key", analyst.Secret); code != 1 || !strings.Contains(errs, "admin") {
		t.Errorf("an analyst: %d %s%s", code, out, errs)
	}
	for _, args := range [][]string{{"verify", "--kept", kept, dir}, {"verify", "--url", p.url, dir}, {"verify", "--online", "--no-tables"}, {"verify", "--online", "--key-command", "true"}, {"verify"}} {
		if out, errs, code := holdoutd(t, args...); code != 2 {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}

	p.stop(t)
	if out, errs, code := holdoutd(t, online(ids...)...); code != exitUnavailable || !strings.Contains(errs, "no reply") || readFile(t, kept) != whole {
		t.Errorf("no server: %d %s%s", code, out, errs)
	}
}

// rewriteBody replaces a text in a reply, once.
func rewriteBody(r *http.Response, old, new string) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body.Close()
	changed := strings.Replace(string(body), old, new, 1)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(changed)), int64(len(changed))
	r.Header.Set("Content-Length", strconv.Itoa(len(changed)))
	return nil
}
