// Package deploy holds the files that start holdoutd beside what it needs, and the tests of them that need nothing installed. scripts/deploy.sh runs the
// others (deploy/check): it renders the Helm chart, loads the compose file and evaluates the alerts.
package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/api"
)

// TestYAML parses every file of this folder that is YAML, but for templates.
func TestYAML(t *testing.T) {
	parsed := 0
	for _, name := range files(t, ".yaml", ".yml") {
		if strings.Contains(name, "templates/") {
			continue
		}
		d := yaml.NewDecoder(strings.NewReader(read(t, name)))
		for {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || v == nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			parsed++
		}
	}
	if parsed < 8 {
		t.Errorf("%d documents", parsed)
	}
}

var serveFlag = regexp.MustCompile(`(?m)(?:^|[\s"'\[])--([a-z][a-z-]+)=`)

// TestFlagsExist: each flag of holdoutd in a file of this folder is one of serve's, as docs/COMMANDS.md, which a test keeps in step, has them. A flag that
// was renamed would start no replica.
func TestFlagsExist(t *testing.T) {
	page := read(t, "../docs/COMMANDS.md")
	_, page, ok := strings.Cut(page, "\n## holdoutd serve\n")
	page, _, _ = strings.Cut(page, "\n## ")
	if !ok || !strings.Contains(page, "--data ") {
		t.Fatal("docs/COMMANDS.md has no flags of serve")
	}
	used := map[string]bool{}
	for _, name := range []string{"Dockerfile", "compose.yaml", "helm/holdoutd/templates/statefulset.yaml"} {
		text := read(t, name)
		switch name { // other programs have flags of their own
		case "Dockerfile":
			_, text, _ = strings.Cut(text, "\nENTRYPOINT")
		case "compose.yaml":
			text, _, _ = strings.Cut(text, "\n  balancer:")
		}
		for _, flag := range serveFlag.FindAllStringSubmatch(text, -1) {
			used[flag[1]] = true
			if !regexp.MustCompile(`(?m)^ +--` + flag[1] + ` `).MatchString(page) {
				t.Errorf("%s: holdoutd serve has no flag --%s", name, flag[1])
			}
		}
	}
	for _, flag := range []string{"addr", "data", "ledger", "server-key", "metrics", "drain"} {
		if !used[flag] {
			t.Errorf("--%s is not found: the test looks at nothing", flag)
		}
	}
}

var metricName = regexp.MustCompile(`\b((?:holdoutd|process|go)_[a-z_]+)\b`)

// TestMetricsExist: every metric of the dashboard and of the alerts is on /metrics of a real server that was asked something, and every metric that is
// holdoutd's own is on the dashboard or in an alert.
func TestMetricsExist(t *testing.T) {
	exposed := exposition(t)
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/holdoutd.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/rules.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	looked := map[string]bool{}
	look := func(where, expr string) {
		names := metricName.FindAllStringSubmatch(expr, -1)
		if len(names) == 0 && !strings.Contains(expr, "up{") {
			t.Errorf("%s reads no metric: %s", where, expr)
		}
		for _, name := range names {
			looked[strings.TrimSuffix(name[1], "_bucket")] = true
			if !exposed[name[1]] {
				t.Errorf("%s: /metrics has no %s", where, name[1])
			}
		}
	}
	ids := map[int]bool{}
	for i, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d: %+v", i, p)
		}
		ids[p.ID] = true
		for _, other := range dashboard.Panels[:i] {
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("the panels %q and %q lie on each other", p.Title, other.Title)
			}
		}
		for _, q := range p.Targets {
			look(p.Title, q.Expr)
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			look(r.Alert, r.Expr)
			if page := read(t, "../docs/OPERATIONS.md"); !strings.Contains(page, "`"+r.Alert+"`") {
				t.Errorf("docs/OPERATIONS.md does not say what to do at %s", r.Alert)
			}
		}
	}
	for name := range exposed {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "holdoutd_") && !looked[base] && !looked[name] && base != "holdoutd_holdouts_without_budget_metrics" {
			t.Errorf("%s is on /metrics, and neither on the dashboard nor in an alert", name)
		}
	}
}

// exposition are the names on /metrics for an admin, of a server that has done something.
func exposition(t *testing.T) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	service, err := holdout.Open(context.Background(), holdout.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	server := httptest.NewServer(api.New(service, api.Options{}))
	t.Cleanup(server.Close)
	key := strings.TrimSpace(read(t, filepath.Join(dir, "admin.key")))
	get := func(path string) string {
		request, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	get("/v1/holdouts")
	get("/v1/holdouts/ho_none")                                                                                           // a problem
	names := map[string]bool{"holdoutd_queries_total": true, "holdoutd_budget_left": true, "holdoutd_budget_limit": true} // which need a holdout: internal/api's tests have them
	for line := range strings.Lines(get("/metrics")) {
		if name := regexp.MustCompile(`^[a-z_]+`).FindString(line); name != "" {
			names[name] = true
		}
	}
	return names
}

func files(t *testing.T, suffixes ...string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(path, s) }) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
