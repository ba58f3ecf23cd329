package check

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const (
	chart      = "../helm/holdoutd"
	kubernetes = "1.31.0" // that the chart is rendered for
	ledgerURL  = "postgres://holdoutd@db.example:5433/holdoutd?sslmode=verify-full"
)

// helm runs the program that HOLDOUTD_HELM names.
func helm(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	program := os.Getenv("HOLDOUTD_HELM")
	if program == "" {
		t.Fatal("HOLDOUTD_HELM is not set: run scripts/deploy.sh, which installs helm")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// objects are what a release is made of, decoded strictly: a member that Kubernetes does not have is an error.
type objects struct {
	kinds       map[string]int
	set         apps.StatefulSet
	deployments []apps.Deployment
	services    []core.Service
	claims      []core.PersistentVolumeClaim
	configs     []core.ConfigMap
	policies    []networking.NetworkPolicy
	ingresses   []networking.Ingress
	disruptions []policy.PodDisruptionBudget
}

func render(t *testing.T, values ...string) objects {
	t.Helper()
	args := []string{"template", "hd", chart, "--namespace", "stats", "--kube-version", kubernetes}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	out, errs, err := helm(t, args...)
	if err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, errs)
	}
	o := objects{kinds: map[string]int{}}
	for text := range strings.SplitSeq(out, "\n---\n") {
		text += "\n" // which the separator began with
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if head.Kind == "" {
			continue
		}
		o.kinds[head.Kind]++
		strictly := func(into any) {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Errorf("%s: %v\n%s", head.Kind, err, text)
			}
		}
		switch head.Kind {
		case "StatefulSet":
			strictly(&o.set)
		case "Deployment":
			o.deployments = append(o.deployments, decoded[apps.Deployment](strictly))
		case "Service":
			o.services = append(o.services, decoded[core.Service](strictly))
		case "PersistentVolumeClaim":
			o.claims = append(o.claims, decoded[core.PersistentVolumeClaim](strictly))
		case "ConfigMap":
			o.configs = append(o.configs, decoded[core.ConfigMap](strictly))
		case "NetworkPolicy":
			o.policies = append(o.policies, decoded[networking.NetworkPolicy](strictly))
		case "Ingress":
			o.ingresses = append(o.ingresses, decoded[networking.Ingress](strictly))
		case "PodDisruptionBudget":
			o.disruptions = append(o.disruptions, decoded[policy.PodDisruptionBudget](strictly))
		case "ServiceMonitor", "PrometheusRule":
		default:
			t.Errorf("an object of the kind %s", head.Kind)
		}
	}
	return o
}

func decoded[T any](by func(any)) (v T) {
	by(&v)
	return v
}

// TestLint: helm itself finds nothing wrong, warnings included.
func TestLint(t *testing.T) {
	if out, errs, err := helm(t, "lint", chart, "--strict", "--kube-version", kubernetes, "--set", "ledger.url="+ledgerURL); err != nil {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

// TestReplicas renders two replicas with all that can be switched on.
func TestReplicas(t *testing.T) {
	o := render(t, "ledger.url="+ledgerURL, "ledger.caSecret=ca", "traces.url=http://collector:4318", "traces.headersSecret=otlp",
		"ingress.enabled=true", "ingress.tlsSecret=tls", "serviceMonitor.enabled=true", "prometheusRule.enabled=true", "dashboard.enabled=true")
	for kind, n := range map[string]int{"StatefulSet": 1, "Deployment": 1, "Service": 2, "PersistentVolumeClaim": 1, "ConfigMap": 2, "NetworkPolicy": 2,
		"PodDisruptionBudget": 1, "Ingress": 1, "ServiceMonitor": 1, "PrometheusRule": 1} {
		if o.kinds[kind] != n {
			t.Errorf("%d objects of the kind %s, not %d", o.kinds[kind], kind, n)
		}
	}
	pods := []core.PodSpec{o.set.Spec.Template.Spec, o.deployments[0].Spec.Template.Spec}
	for _, pod := range pods {
		secure(t, pod)
	}
	c := pods[0].Containers[0]
	for path, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path {
			t.Errorf("%s is not probed: %+v", path, probe)
		}
	}
	if c.StartupProbe == nil || c.ReadinessProbe.TimeoutSeconds <= 10 {
		t.Errorf("a start is not waited for, or a ledger that is slow: %+v", c.ReadinessProbe)
	}
	for _, flag := range []string{"--ledger=" + ledgerURL, "--server-key=/etc/holdoutd/key/server.key", "--tables=/srv/tables/holdouts", "--data=/var/lib/holdoutd/data", "--traces=http://collector:4318"} {
		if !slices.Contains(c.Args, flag) {
			t.Errorf("the replicas are started without %s: %v", flag, c.Args)
		}
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for name, at := range map[string]string{"data": "/var/lib/holdoutd", "tables": "/srv/tables", "key": "/etc/holdoutd/key", "password": "/etc/holdoutd/password", "ledger-ca": "/etc/holdoutd/ledger", "tmp": "/tmp"} {
		if mounts[name] != at {
			t.Errorf("%s is mounted at %q, not %s", name, mounts[name], at)
		}
	}
	if len(o.claims) != 1 || !slices.Equal(o.claims[0].Spec.AccessModes, []core.PersistentVolumeAccessMode{core.ReadWriteMany}) || o.claims[0].Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("tables: %+v", o.claims)
	}
	if *o.set.Spec.Replicas != 2 || o.set.Spec.ServiceName != "hd-replicas" || len(o.set.Spec.VolumeClaimTemplates) != 1 {
		t.Errorf("%+v", o.set.Spec)
	}
	selects(t, o)
	for _, p := range o.policies {
		if !slices.Contains(p.Spec.PolicyTypes, networking.PolicyTypeEgress) || !slices.Contains(p.Spec.PolicyTypes, networking.PolicyTypeIngress) {
			t.Errorf("%s leaves a direction open", p.Name)
		}
	}
	if !slices.ContainsFunc(o.policies[0].Spec.Egress, func(r networking.NetworkPolicyEgressRule) bool { return r.Ports[0].Port.IntValue() == 5433 }) {
		t.Errorf("the ledger's port is closed: %+v", o.policies[0].Spec.Egress)
	}
	if o.ingresses[0].Spec.TLS[0].SecretName != "tls" {
		t.Error("the ingress has no TLS")
	}
	balanced := false
	for _, m := range o.configs {
		if config, ok := m.Data["haproxy.cfg"]; ok {
			balanced = true
			checkHAProxy(t, config, "hd-0.hd-replicas.stats.svc:8080", "hd-1.hd-replicas.stats.svc:8080")
		}
	}
	if !balanced {
		t.Error("no configuration of the balancer")
	}
}

// selects: each service, policy and disruption budget is about pods that there are.
func selects(t *testing.T, o objects) {
	t.Helper()
	pods := []map[string]string{o.set.Spec.Template.Labels}
	for _, d := range o.deployments {
		pods = append(pods, d.Spec.Template.Labels)
	}
	matches := func(selector map[string]string) bool {
		return slices.ContainsFunc(pods, func(labels map[string]string) bool {
			for k, v := range selector {
				if labels[k] != v {
					return false
				}
			}
			return true
		})
	}
	for _, s := range o.services {
		if !matches(s.Spec.Selector) {
			t.Errorf("the service %s selects nothing", s.Name)
		}
	}
	for _, p := range o.policies {
		if !matches(p.Spec.PodSelector.MatchLabels) {
			t.Errorf("the policy %s selects nothing", p.Name)
		}
	}
	for _, d := range o.disruptions {
		if !matches(d.Spec.Selector.MatchLabels) || d.Spec.MinAvailable.IntValue() < 1 {
			t.Errorf("%+v", d)
		}
	}
}

// secure: a pod has no rights that it does not need, limits, and no secret in an argument or in the environment.
func secure(t *testing.T, pod core.PodSpec) {
	t.Helper()
	s := pod.SecurityContext
	if s == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || *pod.AutomountServiceAccountToken {
		t.Errorf("%+v", pod)
	}
	for _, c := range pod.Containers {
		x := c.SecurityContext
		if x == nil || *x.AllowPrivilegeEscalation || !*x.ReadOnlyRootFilesystem || !slices.Equal(x.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("%s: %+v", c.Name, x)
		}
		if c.Resources.Limits.Memory().IsZero() || c.LivenessProbe == nil || c.ReadinessProbe == nil {
			t.Errorf("%s has no limit of memory, or is not probed", c.Name)
		}
		for _, word := range c.Args {
			if strings.Contains(strings.ToLower(word), "password") || strings.Contains(word, "hk_") {
				t.Errorf("%s has a secret among its arguments: %s", c.Name, word)
			}
		}
		for _, e := range c.Env {
			if name := strings.ToUpper(e.Name); e.Value != "" && (strings.HasSuffix(name, "PASSWORD") || strings.Contains(name, "HEADERS")) {
				t.Errorf("%s has a secret in its environment: %s", c.Name, e.Name)
			}
		}
	}
}

// TestOne renders a server with a ledger of its own, which is as small as it gets.
func TestOne(t *testing.T) {
	o := render(t, "replicas=1", "serverKeySecret.name=", "balancer.enabled=false", "networkPolicy.enabled=false")
	if len(o.kinds) != 2 || o.kinds["Service"] != 2 || o.kinds["StatefulSet"] != 1 {
		t.Errorf("%v", o.kinds)
	}
	secure(t, o.set.Spec.Template.Spec)
	selects(t, o)
	for _, word := range o.set.Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(word, "--ledger") || strings.HasPrefix(word, "--server-key") || strings.HasPrefix(word, "--tables") {
			t.Errorf("%s without a ledger", word)
		}
	}
}

// TestRefused: values with which something would go wrong later are refused when the chart is rendered.
func TestRefused(t *testing.T) {
	for says, values := range map[string][]string{
		"they need one ledger":       {"replicas=2"},
		"all replicas need the same": {"ledger.url=" + ledgerURL, "serverKeySecret.name="},
		"/ledger/url":                {"ledger.url=postgres://holdoutd:secret@db/holdoutd"}, // a password
		"keys would travel in clear": {"ledger.url=" + ledgerURL, "ingress.enabled=true"},
		"replica":                    {"replica=3"}, // a misspelt value
		"serve":                      {"ledger.url=" + ledgerURL, "serve.metrics=everyone"},
	} {
		args := []string{"template", "hd", chart, "--kube-version", kubernetes}
		for _, v := range values {
			args = append(args, "--set", v)
		}
		if _, errs, err := helm(t, args...); err == nil || !strings.Contains(errs, says) {
			t.Errorf("%v: %v: %s", values, err, errs)
		}
	}
}
