package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdoutd/holdoutd/client"
)

const pipelines = "../../examples/ci/"

// readYAML reads a file strictly: a key that the type does not have is an error.
func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	contents, err := os.ReadFile(pipelines + file)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(contents))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// An action is what GitHub reads of a composite action.
type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description string
		Required    bool
		Default     *string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, Shell, Run string
			Env            map[string]string
		}
	}
}

// A workflow is what GitHub reads of one.
type workflow struct {
	Name string
	On   map[string]struct{ Paths []string }
	Jobs map[string]struct {
		RunsOn      string `yaml:"runs-on"`
		Permissions map[string]string
		Steps       []struct {
			Uses, Run string
			Env, With map[string]string
		}
	}
}

// A gitlabJob is what GitLab reads of one.
type gitlabJob struct {
	Stage, Image string
	Rules        []struct {
		If      string
		Changes []string
	}
	Variables    map[string]string
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	Artifacts    struct {
		When     string
		ExposeAs string `yaml:"expose_as"`
		Paths    []string
	}
}

var inputName = regexp.MustCompile(`^\$\{\{ inputs\.([a-z]+) \}\}$`)

// TestAction reads the action as GitHub does and runs its script with the real program against a real server. It notices a script that goes on
// with what is not shown, an input that nobody reads, and a workflow that gives what the action does not take.
func TestAction(t *testing.T) {
	var a action
	readYAML(t, "github/action.yml", &a)
	if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" || len(a.Runs.Steps) != 1 {
		t.Fatalf("%+v", a)
	}
	step := a.Runs.Steps[0]
	if step.Shell != "bash" || a.Outputs["verdict"].Value != "${{ steps."+step.ID+".outputs.verdict }}" || strings.Contains(step.Run, "${{") {
		t.Errorf("%+v", a) // an input within a script would be run as one
	}
	read := map[string]string{} // variable by input
	for variable, value := range step.Env {
		m := inputName.FindStringSubmatch(value)
		if m == nil {
			t.Fatalf("%s is %s", variable, value)
		}
		if _, ok := a.Inputs[m[1]]; !ok {
			t.Errorf("there is no input %s", m[1])
		}
		read[m[1]] = variable
	}
	for name, in := range a.Inputs {
		if read[name] == "" || in.Description == "" || in.Required == (in.Default != nil) {
			t.Errorf("input %s: %+v, read as %q", name, in, read[name])
		}
	}
	var w workflow
	readYAML(t, "github/workflow.yml", &w)
	used := false
	for _, s := range w.Jobs["gate"].Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("a branch's name would be run: %s", s.Run)
		}
		if !strings.Contains(s.Uses, "holdout-gate") {
			continue
		}
		used = true
		for name := range s.With {
			if _, ok := a.Inputs[name]; !ok {
				t.Errorf("the workflow gives %s, which the action does not take", name)
			}
		}
		for name, in := range a.Inputs {
			if in.Required && s.With[name] == "" {
				t.Errorf("the workflow does not give %s", name)
			}
		}
	}
	if !used {
		t.Error("the workflow does not use the action")
	}

	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 100})
	for _, c := range []struct {
		candidate string
		code      int
		verdict   string
	}{{"sure.json", 0, "passed"}, {"half.json", 3, "not shown"}, {"nosuch.json", 2, "none"}} {
		given := map[string]string{"url": s.url, "key": s.key, "baseline": "half.json", "candidate": c.candidate, "metric": "brier", "label": "delay > 15"}
		output, page := filepath.Join(t.TempDir(), "output"), filepath.Join(t.TempDir(), "page")
		environment := []string{"HOME=" + s.dir, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "GITHUB_OUTPUT=" + output, summaryVariable + "=" + page}
		for name, in := range a.Inputs {
			value := given[name]
			if _, ok := given[name]; !ok && in.Default != nil {
				value = *in.Default
			}
			environment = append(environment, read[name]+"="+value)
		}
		script := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run) // as GitHub runs it
		script.Dir, script.Env = t.TempDir(), environment
		for name, model := range gateModels {
			if err := os.WriteFile(filepath.Join(script.Dir, name), []byte(model), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := script.CombinedOutput()
		said, _ := os.ReadFile(output)
		if script.ProcessState.ExitCode() != c.code || string(said) != "verdict="+c.verdict+"\n" {
			t.Errorf("%s: %v, output %q\n%s", c.candidate, err, said, out)
		}
		if shown, _ := os.ReadFile(page); (c.verdict != "none") != strings.Contains(string(shown), "Holdout gate: "+c.verdict) {
			t.Errorf("%s: the page is %s", c.candidate, shown)
		}
	}
}

// TestGitLabJob reads the job and runs its script, as TestAction does.
func TestGitLabJob(t *testing.T) {
	var file map[string]gitlabJob
	readYAML(t, "gitlab-ci.yml", &file)
	job := file["holdout-gate"]
	if len(file) != 1 || job.Stage == "" || job.Image == "" || len(job.Rules) == 0 || len(job.BeforeScript) == 0 || len(job.Script) != 1 || job.Artifacts.When != "always" {
		t.Fatalf("%+v", file)
	}
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 100, Label: "origin"})
	for candidate, code := range map[string]int{"sfo.json": 0, "jfk.json": 4} {
		dir := t.TempDir()
		for name, model := range map[string]string{
			"baseline.json": `{"prediction":"true"}`, "model.json": map[string]string{"sfo.json": `{"prediction":"false"}`, "jfk.json": `{"prediction":"true"}`}[candidate],
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(model), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if candidate == "jfk.json" { // the better one is the baseline now
			if err := os.WriteFile(filepath.Join(dir, "baseline.json"), []byte(`{"prediction":"false"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		script := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", job.Script[0]+" --label \"origin == 'SFO'\"")
		script.Dir = dir
		script.Env = []string{"HOME=" + dir, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), urlVariable + "=" + s.url, keyVariable + "=" + s.key}
		for name, value := range job.Variables {
			script.Env = append(script.Env, name+"="+value)
		}
		out, err := script.CombinedOutput()
		page, _ := os.ReadFile(filepath.Join(dir, job.Artifacts.Paths[0]))
		if script.ProcessState.ExitCode() != code || !strings.Contains(string(page), "### Holdout gate: ") {
			t.Errorf("%s: %v\n%s\nartifact: %s", candidate, err, out, page)
		}
	}
}
