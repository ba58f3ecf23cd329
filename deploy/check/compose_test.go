// Package check looks at the files of deploy/ with the libraries and programs that read them where they are used: Compose's own loader, Helm and
// Kubernetes' types, Prometheus' parser and engine. It is a module of its own, so that the program depends on none of them. scripts/deploy.sh runs it.
package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestCompose loads the file as docker compose does, with its schema, and looks at what must not be otherwise.
func TestCompose(t *testing.T) {
	o, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithWorkingDirectory(".."), cli.WithInterpolation(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"replica-1", "replica-2", "balancer", "postgres", "prometheus", "grafana"} {
		if _, ok := p.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	first, second := p.Services["replica-1"], p.Services["replica-2"]
	if !slices.Equal(first.Command, second.Command) || len(first.Command) == 0 {
		t.Errorf("the replicas differ: %v, %v", first.Command, second.Command)
	}
	for _, r := range []types.ServiceConfig{first, second} {
		if !r.ReadOnly || r.User != "65532:65532" || !slices.Equal(r.CapDrop, []string{"ALL"}) || len(r.Ports) > 0 {
			t.Errorf("%s may do more than it needs: %+v", r.Name, r)
		}
		if g := r.StopGracePeriod; g == nil || g.String() <= "2m0s" {
			t.Errorf("%s is killed while it drains", r.Name)
		}
	}
	mounted := func(s types.ServiceConfig, at string) string {
		for _, v := range s.Volumes {
			if v.Target == at {
				return v.Source
			}
		}
		return ""
	}
	if a, b := mounted(first, "/srv/tables"), mounted(second, "/srv/tables"); a == "" || a != b {
		t.Errorf("the replicas see other tables: %q, %q", a, b)
	}
	if a, b := mounted(first, "/var/lib/holdoutd"), mounted(second, "/var/lib/holdoutd"); a == "" || a == b {
		t.Errorf("the replicas share a data directory: %q", a)
	}
	postgres := strings.Join(p.Services["postgres"].Command, " ")
	for _, setting := range []string{"fsync=on", "synchronous_commit=on", "full_page_writes=on"} {
		if !strings.Contains(postgres, "-c "+setting) {
			t.Errorf("PostgreSQL runs without %s: %s", setting, postgres)
		}
	}
	for name, s := range p.Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is open to other machines without TLS: %+v", name, port)
			}
		}
		for variable, value := range s.Environment {
			if secret := strings.ToUpper(variable); value != nil && strings.Contains(secret, "PASS") && !strings.HasPrefix(*value, "/run/secrets/") {
				t.Errorf("%s has a secret in its environment: %s", name, variable)
			}
		}
		for _, word := range s.Command {
			if strings.Contains(word, "password=") || strings.Contains(word, "://") && strings.Contains(strings.SplitN(word, "@", 2)[0], ":"+"//holdoutd:") {
				t.Errorf("%s has a secret among its arguments: %s", name, word)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if b := s.Build; b != nil {
			if _, err := os.Stat(filepath.Join(b.Context, b.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	ignored, err := os.ReadFile("../compose/.gitignore")
	if err != nil || !strings.Contains(string(ignored), "secrets/") {
		t.Errorf("git would take the secrets: %v", err)
	}
	for name, s := range p.Secrets {
		if filepath.Base(filepath.Dir(s.File)) != "secrets" {
			t.Errorf("the secret %s is in %s", name, s.File)
		}
	}
}
