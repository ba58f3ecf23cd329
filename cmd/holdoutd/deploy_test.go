package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/api"
	"github.com/holdoutd/holdoutd/internal/await"
)

const deployFolder = "../../deploy"

// fileOf reads a file of the deployment; a member that the type does not have, or that is there twice, is an error.
func fileOf[T any](t *testing.T, name string) (v T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) == ".json" {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(&v)
	} else {
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		err = d.Decode(&v)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// composeFile is compose.yaml: the members of the Compose specification that it uses.
type composeFile struct {
	Name     string
	Replica  composeService `yaml:"x-replica"`
	Services map[string]composeService
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]struct{}
	Secrets  map[string]struct{ File string }
}

type composeService struct {
	Image string
	Build struct {
		Context, Dockerfile string
		Args                map[string]string
	}
	Command     []string
	Environment map[string]string
	Secrets     []string
	Volumes     []string
	Networks    []string
	Ports       []string
	DependsOn   composeDepends `yaml:"depends_on"`
	Healthcheck struct {
		Test              []string
		Interval, Timeout time.Duration
		StartPeriod       time.Duration `yaml:"start_period"`
		Retries           int
	}
	MemLimit    string        `yaml:"mem_limit"`
	ShmSize     string        `yaml:"shm_size"`
	StopGrace   time.Duration `yaml:"stop_grace_period"`
	Restart     string
	Init        bool
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

// composeDepends are the conditions by service; a list means that they are started.
type composeDepends map[string]struct{ Condition string }

func (d *composeDepends) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		var names []string
		if err := node.Decode(&names); err != nil {
			return err
		}
		*d = composeDepends{}
		for _, name := range names {
			(*d)[name] = struct{ Condition string }{"service_started"}
		}
		return nil
	}
	return node.Decode((*map[string]struct{ Condition string })(d))
}

// A deployment is what the files of deploy say.
type deployment struct {
	compose  composeFile
	replicas []string // services that serve
	flags    *cobra.Command
	scraped  prometheusFile
	rules    rulesFile
	panels   dashboardFile
	balancer []string // lines
}

type prometheusFile struct {
	Global struct {
		ScrapeInterval     time.Duration `yaml:"scrape_interval"`
		EvaluationInterval time.Duration `yaml:"evaluation_interval"`
	}
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		JobName       string `yaml:"job_name"`
		Authorization struct {
			CredentialsFile string `yaml:"credentials_file"`
		}
		StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
	} `yaml:"scrape_configs"`
}

type rulesFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr string
			For         time.Duration
			Annotations struct{ Summary string }
		}
	}
}

type dataSource struct{ Type, UID string }

type dashboardFile struct {
	UID, Title, Timezone, Refresh string
	Tags                          []string
	Editable                      bool
	SchemaVersion, Version        int
	Time                          struct{ From, To string }
	Templating, Annotations       struct{ List []any }
	Panels                        []dashboardPanel
}

type dashboardPanel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	DataSource               *dataSource
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig, Options     any
	Panels                   []any
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		DataSource                dataSource
	}
}

func readDeployment(t *testing.T) (d deployment) {
	t.Helper()
	d.compose = fileOf[composeFile](t, "compose.yaml")
	d.scraped = fileOf[prometheusFile](t, "prometheus/prometheus.yml")
	d.rules = fileOf[rulesFile](t, "prometheus/rules.yml")
	d.panels = fileOf[dashboardFile](t, "grafana/dashboards/holdoutd.json")
	text, err := os.ReadFile(filepath.Join(deployFolder, "haproxy/haproxy.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		d.balancer = append(d.balancer, strings.Join(strings.Fields(line), " "))
	}
	for name, s := range d.compose.Services {
		if len(s.Command) > 0 && s.Command[0] == "serve" {
			d.replicas = append(d.replicas, name)
		}
	}
	slices.Sort(d.replicas)
	d.flags = commandOf(t, d.compose.Replica.Command)
	return d
}

// commandOf is the command that a command line means, with its flags read, as the program does before it does anything.
func commandOf(t *testing.T, args []string) *cobra.Command {
	t.Helper()
	root := rootCommand()
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && cmd.Name() == "serve" {
		err = checkLimits(cmd.Flags())
	}
	if err != nil || cmd == root {
		t.Fatalf("holdoutd %s: %v", strings.Join(args, " "), err)
	}
	return cmd
}

func (d deployment) flag(name string) string { return d.flags.Flag(name).Value.String() }

// line is the rest of the one line of the balancer that begins so.
func (d deployment) line(t *testing.T, begin string) string {
	t.Helper()
	var found []string
	for _, line := range d.balancer {
		if rest, ok := strings.CutPrefix(line, begin+" "); ok {
			found = append(found, rest)
		}
	}
	if len(found) != 1 {
		t.Fatalf("haproxy.cfg has %d lines %s", len(found), begin)
	}
	return found[0]
}

// pinned is an image with its version, or a base that the Dockerfile names.
var pinned = regexp.MustCompile(`^[a-z][a-z/-]*:v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?$`)

// TestDeploymentAgrees holds the files of deploy against each other and against the program: every name, port, path, flag and secret that one file uses is
// what another one, or the program, has.
func TestDeploymentAgrees(t *testing.T) {
	d := readDeployment(t)
	if len(d.replicas) != 2 {
		t.Fatalf("the servers are %v", d.replicas)
	}
	built := false
	usedVolumes, usedSecrets, usedNetworks := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for name, s := range d.compose.Services {
		built = built || s.Build.Dockerfile != ""
		if s.Image != d.compose.Replica.Image && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s has no version", name, s.Image)
		}
		if s.Image == d.compose.Replica.Image {
			commandOf(t, s.Command)
		}
		for other, on := range s.DependsOn {
			o, ok := d.compose.Services[other]
			switch {
			case !ok:
				t.Errorf("%s depends on %s, which is not there", name, other)
			case on.Condition == "service_healthy" && len(o.Healthcheck.Test) == 0:
				t.Errorf("%s waits until %s is healthy, which nobody checks", name, other)
			case on.Condition == "service_completed_successfully" && o.Restart != "":
				t.Errorf("%s waits for the end of %s, which starts again", name, other)
			case !slices.Contains([]string{"service_healthy", "service_completed_successfully", "service_started"}, on.Condition):
				t.Errorf("%s: there is no condition %s", name, on.Condition)
			}
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if file, ok := strings.CutPrefix(from, "./"); ok {
				if _, err := os.Stat(filepath.Join(deployFolder, file)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if _, ok := d.compose.Volumes[from]; !ok {
				t.Errorf("%s: there is no volume %s", name, from)
			}
			usedVolumes[from] = true
		}
		for _, network := range s.Networks {
			if _, ok := d.compose.Networks[network]; !ok {
				t.Errorf("%s: there is no network %s", name, network)
			}
			usedNetworks[network] = true
		}
		for _, secret := range s.Secrets {
			if _, ok := d.compose.Secrets[secret]; !ok {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
			usedSecrets[secret] = true
		}
		said := strings.Join(s.Command, " ")
		for _, value := range s.Environment {
			said += " " + value
		}
		for _, m := range regexp.MustCompile(`/run/secrets/([a-z-]+)`).FindAllStringSubmatch(said, -1) {
			if !slices.Contains(s.Secrets, m[1]) {
				t.Errorf("%s reads the secret %s, which it is not given", name, m[1])
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to other machines, in clear", name, port)
			}
			if !slices.ContainsFunc(s.Networks, func(n string) bool { return !d.compose.Networks[n].Internal }) {
				t.Errorf("%s publishes a port, and is in internal networks alone", name)
			}
		}
	}
	if !built {
		t.Error("nothing builds the image")
	}
	if len(usedVolumes) != len(d.compose.Volumes) || len(usedSecrets) != len(d.compose.Secrets) || len(usedNetworks) != len(d.compose.Networks) {
		t.Error("compose.yaml declares a volume, a secret or a network that nothing uses")
	}

	// The servers.
	addr := d.flag("addr")
	port := addr[strings.LastIndex(addr, ":")+1:]
	for _, name := range d.replicas {
		s := d.compose.Services[name]
		if !slices.Equal(s.Command, d.compose.Replica.Command) || !slices.Equal(s.Volumes, d.compose.Replica.Volumes) || len(s.Ports) > 0 {
			t.Errorf("%s is not as the other server", name)
		}
		if s.StopGrace <= api.DefaultLimits.Drain {
			t.Errorf("%s is killed after %v, and may take %v to end", name, s.StopGrace, api.DefaultLimits.Drain)
		}
		if !slices.Contains(s.Volumes, "data:"+d.flag("data")) {
			t.Errorf("%s: no volume is at %s", name, d.flag("data"))
		}
		if d.line(t, "server "+name) != name+":"+port+" cookie "+name {
			t.Errorf("the load balancer does not ask %s at port %s", name, port)
		}
	}
	if check := d.compose.Replica.Healthcheck.Test; check[len(check)-1] != "http://127.0.0.1:"+port+"/readyz" {
		t.Errorf("health is asked at %s", check[len(check)-1])
	}
	if d.line(t, "http-check send") != "meth GET uri /readyz" {
		t.Error("the load balancer asks elsewhere whether a server is ready")
	}
	most, err := strconv.Atoi(d.line(t, "maxconn"))
	each, eachErr := strconv.Atoi(d.flag("connections-each"))
	if err != nil || eachErr != nil || most >= each || d.flag("connections-each") != d.flag("connections") {
		t.Errorf("the load balancer opens %d connections, and a server takes %d of one address, %s of all", most, each, d.flag("connections"))
	}
	if !slices.Contains(d.compose.Services["balancer"].Ports, "127.0.0.1:8080:"+strings.TrimPrefix(d.line(t, "bind"), ":")) {
		t.Error("the load balancer's port is not published")
	}
	for _, line := range d.balancer {
		if strings.Contains(line, "http-buffer-request") {
			t.Error("the load balancer keeps bodies: uploads are stored twice")
		}
	}
	for _, timeout := range []string{"timeout client", "timeout server"} {
		if span, err := time.ParseDuration(d.line(t, timeout)); err != nil || span <= api.DefaultLimits.Handle {
			t.Errorf("%s is %v (%v): a request may take %v", timeout, span, err, api.DefaultLimits.Handle)
		}
	}

	// The database.
	said := strings.Join(d.compose.Services["db"].Command, " ")
	for _, setting := range []string{"fsync=on", "full_page_writes=on", "synchronous_commit=on"} {
		if !strings.Contains(said, "-c "+setting) {
			t.Errorf("the database is started without %s", setting)
		}
	}
	if !d.compose.Networks["database"].Internal {
		t.Error("the database is not in a network of its own")
	}

	// Prometheus and Grafana.
	var targets []string
	for _, s := range d.scraped.ScrapeConfigs {
		if s.Authorization.CredentialsFile != d.flag("metrics-token") || !slices.Contains(d.compose.Services["prometheus"].Secrets, filepath.Base(s.Authorization.CredentialsFile)) {
			t.Error("Prometheus has not the servers' token")
		}
		for _, c := range s.StaticConfigs {
			targets = append(targets, c.Targets...)
		}
	}
	slices.Sort(targets)
	if want := []string{d.replicas[0] + ":" + port, d.replicas[1] + ":" + port}; !slices.Equal(targets, want) {
		t.Errorf("Prometheus asks %v, not %v", targets, want)
	}
	inContainer := func(service, at string) string { // the file of deploy that a container sees there
		for _, volume := range d.compose.Services[service].Volumes {
			parts := strings.Split(volume, ":")
			if rest, ok := strings.CutPrefix(at, parts[1]); ok && strings.HasPrefix(parts[0], "./") {
				return filepath.Join(deployFolder, parts[0], rest)
			}
		}
		t.Errorf("%s has nothing at %s", service, at)
		return ""
	}
	config := strings.TrimPrefix(d.compose.Services["prometheus"].Command[0], "--config.file=")
	for _, file := range []string{
		inContainer("prometheus", config), inContainer("prometheus", d.scraped.RuleFiles[0]), inContainer("balancer", "/usr/local/etc/haproxy/haproxy.cfg"),
		inContainer("grafana", "/etc/grafana/provisioning/datasources"), inContainer("grafana", "/etc/grafana/provisioning/dashboards"), inContainer("db", "/docker-entrypoint-initdb.d/roles.sh"),
	} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	sources := fileOf[struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool `yaml:"isDefault"`
			Editable                     bool
			JSONData                     struct {
				TimeInterval time.Duration `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}](t, "grafana/provisioning/datasources/prometheus.yaml")
	providers := fileOf[struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type     string
			AllowUIUpdates bool `yaml:"allowUiUpdates"`
			Options        struct{ Path string }
		}
	}](t, "grafana/provisioning/dashboards/holdoutd.yaml")
	if file := inContainer("grafana", path.Join(providers.Providers[0].Options.Path, "holdoutd.json")); file != filepath.Join(deployFolder, "grafana/dashboards/holdoutd.json") {
		t.Errorf("Grafana reads %s", file)
	}
	source := sources.Datasources[0]
	if !slices.Contains(d.compose.Services["prometheus"].Ports, "127.0.0.1:9090:9090") || source.URL != "http://prometheus:9090" || source.JSONData.TimeInterval != d.scraped.Global.ScrapeInterval {
		t.Errorf("Grafana asks %s every %v", source.URL, source.JSONData.TimeInterval)
	}
	seen := map[int]bool{}
	for i, p := range d.panels.Panels {
		if seen[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: its number or place is taken", p.Title)
		}
		seen[p.ID] = true
		for _, o := range d.panels.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q are in one place", p.Title, o.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.DataSource == nil || *p.DataSource != (dataSource{source.Type, source.UID}) || len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("panel %q asks nobody, or does not say what it shows", p.Title)
		}
		for j, target := range p.Targets {
			if target.DataSource != *p.DataSource || target.RefID != string(rune('A'+j)) {
				t.Errorf("panel %q, target %s", p.Title, target.RefID)
			}
		}
	}

	// The image.
	text, err := os.ReadFile(filepath.Join(deployFolder, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := string(text)
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(dockerfile, -1) {
		if !pinned.MatchString(m[1]) {
			t.Errorf("Dockerfile: %s has no version", m[1])
		}
	}
	if version := regexp.MustCompile(`(?m)^go (\S+)`).FindStringSubmatch(string(module))[1]; !strings.Contains(dockerfile, "FROM golang:"+version+"-") {
		t.Errorf("Dockerfile: the module needs Go %s", version)
	}
	tags := regexp.MustCompile(`(?m)^TAGS := (\S+)`).FindStringSubmatch(string(makefile))[1]
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(dockerfile)
	if user == nil || !strings.Contains(dockerfile, fmt.Sprintf("-o %s -g %s -m 0700 %s\n", user[1], user[2], d.flag("data"))) || !strings.Contains(dockerfile, "CGO_ENABLED=0 go build -tags "+tags+" ") {
		t.Error("Dockerfile: the data directory is not its user's, or the program is built otherwise than by make")
	}
}

// TestDeploymentRuns does what compose.yaml does, without containers: it makes the secrets and the roles by the scripts, starts a PostgreSQL with the settings, prepares the ledger and starts both
// servers at once, each by its own command line. Then every health check finds its path, one question has one answer, and every metric, label and value that the alerts and the dashboard ask for is
// there: those of the alerts and of the upper panels without a key.
func TestDeploymentRuns(t *testing.T) {
	d := readDeployment(t)
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(deployFolder)); err != nil {
		t.Fatal(err)
	}
	script := func(env []string, name string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(work, name))
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	_ = os.RemoveAll(filepath.Join(work, "secrets")) // of who has started it here
	script(os.Environ(), "secrets.sh")
	secrets := filepath.Join(work, "secrets")
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of secrets is %v, %v", info.Mode(), err)
	}
	for name, secret := range d.compose.Secrets {
		text, err := os.ReadFile(filepath.Join(work, secret.File))
		if err != nil || len(text) < 48 {
			t.Errorf("the secret %s is %q, %v", name, text, err)
		}
	}
	cluster := pgtest.New(t)
	ledger := pgtest.Ledger{Cluster: cluster, Schema: "holdoutd"}
	ledger.Exec(t, false, "DROP ROLE "+pgtest.Servers) // the script makes it
	script(append(cluster.Environment(), "SECRETS="+secrets), "postgres/roles.sh")
	var settings []string
	for _, word := range d.compose.Services["db"].Command[1:] {
		if word != "-c" {
			settings = append(settings, word)
		}
	}
	cluster.WithPasswords(t, settings...)
	for _, name := range []string{"ledger", "owner-ledger"} { // what leads to the container db leads to the cluster's socket
		file := filepath.Join(secrets, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(strings.TrimSpace(string(text)))
		if err != nil || u.Host != "db:5432" {
			t.Fatalf("%s leads to %s, %v", name, u.Host, err)
		}
		socket, err := url.Parse(cluster.Address("", ""))
		if err != nil {
			t.Fatal(err)
		}
		u.Host, u.RawQuery = "", u.RawQuery+"&"+socket.RawQuery
		if err := os.WriteFile(file, []byte(u.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(work, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/run/secrets", secrets, d.flag("data"), dir, d.flag("addr"), "127.0.0.1:0")
	local := func(args []string) (all []string) {
		for _, arg := range args {
			all = append(all, here.Replace(arg))
		}
		return all
	}
	if out, errs, code := holdoutd(t, local(d.compose.Services["prepare"].Command)...); code != 0 {
		t.Fatalf("prepare: %d\n%s%s", code, out, errs)
	}
	var servers []*process
	for _, name := range d.replicas {
		servers = append(servers, beginProcess(t, exec.Command(binary, append(local(d.compose.Services[name].Command), "--any-filesystem")...)))
	}
	for _, p := range servers {
		p.await(t)
	}

	one, two := connect(t, servers[0], dir), connect(t, servers[1], dir)
	card, err := one.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Mechanism: "gaussian", Questions: 100})
	if err != nil {
		t.Fatal(err)
	}
	first, err := one.Ask(t.Context(), card.ID, above(15))
	if err != nil {
		t.Fatal(err)
	}
	again, err := two.Ask(t.Context(), card.ID, above(15))
	if err != nil || !bytes.Equal(first.Answer.Raw, again.Answer.Raw) {
		t.Errorf("one question, two answers: %s, %s, %v", first.Answer.Raw, again.Answer.Raw, err)
	}
	if _, err := one.AskBatch(t.Context(), card.ID, []any{above(16), above(17)}, false); err != nil {
		t.Fatal(err)
	}
	all, err := holdout.VerifyShared(t.Context(), dir, strings.TrimSpace(readFile(t, filepath.Join(secrets, "ledger"))), true)
	if err != nil || len(all) != 1 || all[0].Answers != 3 {
		t.Errorf("the ledger has %+v, %v", all, err)
	}

	key := strings.TrimSpace(readFile(t, filepath.Join(dir, "admin.key")))
	get := func(path, key string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, servers[0].url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, reply.Status, err)
		}
		return string(body)
	}
	check := d.compose.Replica.Healthcheck.Test
	health, err := url.Parse(check[len(check)-1])
	if err != nil {
		t.Fatal(err)
	}
	get(health.Path, "")
	get(strings.Fields(d.line(t, "http-check send"))[3], "")
	mcp, err := http.NewRequestWithContext(t.Context(), http.MethodPost, servers[0].url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	mcp.Header = http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	reply, err := http.DefaultClient.Do(mcp)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	await.Until(t, "the request is counted", func() bool { return strings.Contains(get("/metrics", key), `route="/mcp"`) }) // which it is when its reply has left

	open, everything := readSeries(get("/metrics", "")), readSeries(get("/metrics", strings.TrimSpace(readFile(t, filepath.Join(secrets, "metrics")))))
	var jobs []string
	for _, s := range d.scraped.ScrapeConfigs {
		jobs = append(jobs, s.JobName)
	}
	for _, g := range d.rules.Groups {
		for _, r := range g.Rules {
			for _, trouble := range open.lacks(r.Expr, r.Annotations.Summary, jobs) {
				t.Errorf("alert %s: %s", r.Alert, trouble)
			}
		}
	}
	known, above := open, true
	for _, p := range d.panels.Panels {
		if p.Type == "row" && p.Title == "With the token for metrics" {
			known, above = everything, false
		}
		for _, target := range p.Targets {
			for _, trouble := range known.lacks(target.Expr, target.LegendFormat, jobs) {
				t.Errorf("panel %s: %s", p.Title, trouble)
			}
			if !above && len(open.lacks(target.Expr, "", jobs)) == 0 {
				t.Errorf("panel %s needs no token, and says that it does", p.Title)
			}
		}
	}
	if above {
		t.Error("the dashboard has no panels of what the token reads")
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// series are what a server exports: by name, the labels of each.
type series map[string][]map[string]string

var (
	exported = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? `)
	labelled = regexp.MustCompile(`([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?`)
	legend   = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// promQL are the words of the language that the files use.
var promQL = []string{"sum", "count", "rate", "increase", "histogram_quantile"}

func readSeries(text string) series {
	s := series{}
	for line := range strings.Lines(text) {
		m := exported.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range labelled.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[3]
		}
		s[m[1]] = append(s[m[1]], labels)
	}
	return s
}

// lacks says what an expression, and the text that shows its labels, ask for that is not exported. Statuses need not have occurred: they must be some.
func (s series) lacks(expr, shown string, jobs []string) (troubles []string) {
	has := map[string]bool{"instance": true, "job": true} // Prometheus adds them
	var grouped []string
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			grouped = append(grouped, strings.TrimSpace(label))
		}
	}
	rest := ranges.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
	for _, m := range selector.FindAllStringSubmatch(rest, -1) {
		name := m[1]
		if slices.Contains(promQL, name) {
			continue
		}
		all, ok := s[name]
		if name == "up" { // Prometheus's own
			all, ok = []map[string]string{{}}, true
		}
		if !ok {
			troubles = append(troubles, "there is no metric "+name)
			continue
		}
		for label := range all[0] {
			has[label] = true
		}
		for _, l := range labelled.FindAllStringSubmatch(m[2], -1) {
			label, how := l[1], l[2]
			for value := range strings.SplitSeq(l[3], "|") {
				found := slices.ContainsFunc(all, func(one map[string]string) bool { return one[label] == value })
				switch label {
				case "job":
					found = slices.Contains(jobs, value)
				case "status":
					code, err := strconv.Atoi(value)
					found = err == nil && http.StatusText(code) != "" && has["status"]
				}
				if !found {
					troubles = append(troubles, fmt.Sprintf("no series of %s has %s%s%q", name, label, how, value))
				}
			}
		}
	}
	for _, label := range grouped {
		if !has[label] {
			troubles = append(troubles, "no series has the label "+label)
		}
	}
	for _, m := range legend.FindAllStringSubmatch(shown, -1) {
		if !has[m[1]] || len(grouped) > 0 && !slices.Contains(grouped, m[1]) {
			troubles = append(troubles, "the label "+m[1]+" is shown, and is not there")
		}
	}
	return troubles
}
