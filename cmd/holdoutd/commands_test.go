package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/internal/api"
	"github.com/holdoutd/holdoutd/internal/members"
)

var update = flag.Bool("update", false, "rewrite docs/COMMANDS.md")

const commandsPage = "../../docs/COMMANDS.md"

// shownExamples are how many examples of a command the page has; its help has the others, and its flags.
const shownExamples = 2

// commandsMarkdown is the page of all commands, made of their helps.
func commandsMarkdown() string {
	root := rootCommand()
	var b strings.Builder
	b.WriteString(`# Commands

What each command is for. ` + "`holdoutd COMMAND --help`" + ` says the rest, with its flags. This page is made of the helps (make generate).

` + root.Long + "\n")
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		purpose(&b, c)
		if c.Name() == "ask" { // its commands are the types of queries
			b.WriteString("\nTYPE is one of [QUERIES.md](QUERIES.md); `holdoutd ask TYPE --help` has its members.\n")
			continue
		}
		if subs := c.Commands(); len(subs) > 0 {
			b.WriteString("\n| command | what |\n|---|---|\n")
			for _, sub := range subs {
				fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSuffix(sub.UseLine(), " [flags]"), "|", `\|`), sub.Short)
			}
		}
	}
	return b.String()
}

// purpose is the part of one command.
func purpose(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s: `%s`\n", c.CommandPath(), c.Short, strings.TrimSuffix(c.UseLine(), " [flags]"))
	b.WriteString("\n```text\n")
	shown := 0
	for line := range strings.Lines(c.Example) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "holdoutd ") {
			if shown++; shown > shownExamples {
				break
			}
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("```\n")
}

// TestCommandsPage keeps docs/COMMANDS.md as the helps are.
func TestCommandsPage(t *testing.T) {
	got := commandsMarkdown()
	if *update {
		if err := os.WriteFile(commandsPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(commandsPage)
	if err != nil || got != string(want) {
		t.Errorf("docs/COMMANDS.md is not what the helps say (%v); if they are meant: make generate", err)
	}
}

// everyCommand visits each command that a person can call.
func everyCommand(c *cobra.Command, visit func(*cobra.Command)) {
	if !c.Hidden {
		visit(c)
		for _, sub := range c.Commands() {
			everyCommand(sub, visit)
		}
	}
}

// TestExamplesAreCommands: every help has examples, and every line of them is a command that exists, with flags that it has and as many
// arguments as it takes. It notices an example of a flag that was renamed.
func TestExamplesAreCommands(t *testing.T) {
	lines, root := 0, rootCommand()
	everyCommand(rootCommand(), func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "holdoutd ") {
				continue
			}
			lines++
			words := shellWords(line)
			if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains([]string{"|", "||", ">", "#"}, w) }); i > 0 {
				words = words[:i]
			}
			called, rest, err := root.Find(words[1:])
			if err != nil || called.Name() != "holdoutd" && !strings.HasPrefix(called.CommandPath(), strings.Join(words[:min(2, len(words))], " ")) {
				t.Errorf("%s: %s: %v", c.CommandPath(), line, err)
				continue
			}
			if err := called.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", c.CommandPath(), line, err)
				continue
			}
			if called.Args != nil {
				if err := called.Args(called, called.Flags().Args()); err != nil {
					t.Errorf("%s: %s: %v", c.CommandPath(), line, err)
				}
			}
		}
	})
	if lines < 90 {
		t.Errorf("%d examples", lines)
	}
}

// shellWords are the words of a line, as a shell has them without expansions.
func shellWords(line string) (words []string) {
	var word strings.Builder
	begun := false
	var quote rune
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// TestQuestionsAreCommands: every query type is a command, and every member of it a flag or an argument. It notices a member that a flag of
// ask itself hides.
func TestQuestionsAreCommands(t *testing.T) {
	ask, _, err := rootCommand().Find([]string{"ask"})
	if err != nil {
		t.Fatal(err)
	}
	types := members.Types()
	if len(ask.Commands()) != len(types) {
		t.Errorf("%d commands for %d types", len(ask.Commands()), len(types))
	}
	for _, of := range types {
		c, _, err := ask.Find([]string{of.Name})
		if err != nil || c.Name() != of.Name {
			t.Errorf("%s: %v", of.Name, err)
			continue
		}
		for _, m := range of.Members {
			if f := c.LocalFlags().Lookup(m.Flag()); f == nil || f.Usage != m.Says {
				t.Errorf("ask %s has no --%s of its own", of.Name, m.Flag())
			}
			if ask.PersistentFlags().Lookup(m.Flag()) != nil {
				t.Errorf("--%s of ask hides that of %s", m.Flag(), of.Name)
			}
		}
	}
}

// TestUploadFlagsAreParameters: every parameter of an upload is a flag, with the words of the interface.
func TestUploadFlagsAreParameters(t *testing.T) {
	upload := uploadCommand()
	for _, p := range api.UploadParameters() {
		f := upload.Flags().Lookup(strings.ReplaceAll(p.Name, "_", "-"))
		if f == nil || f.Usage != p.Says || p.Says == "" {
			t.Errorf("%s: %+v", p.Name, f)
			continue
		}
		if err := f.Value.Set(p.Example); err != nil {
			t.Errorf("--%s %s: %v", f.Name, p.Example, err)
		}
	}
}

// TestSettingsAreSent: what a flag says arrives in the settings, and a zero that could not be sent is refused.
func TestSettingsAreSent(t *testing.T) {
	var f uploadFlags
	cmd := uploadCommand()
	if err := cmd.ParseFlags([]string{"--name", "a b", "--check=0", "--questions", "12", "--half-width=.5", "--label", `say "x"`}); err != nil {
		t.Fatal(err)
	}
	s, err := f.settings(cmd)
	if err != nil || s.Name != "a b" || s.Check == nil || *s.Check != 0 || s.Questions != 12 || s.HalfWidth != 0.5 || s.Label != `say "x"` || s.Holdout != 0 {
		t.Errorf("%+v %v", s, err)
	}
	for _, wrong := range []string{"--questions=0", "--questions=1e3", "--holdout=0", "--holdout=NaN", "--holdout=0x1p-1", "--name=", "--tokens=-0"} {
		if err := uploadCommand().ParseFlags([]string{wrong}); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// TestFilesOf: a whole table or its parts, and nothing between.
func TestFilesOf(t *testing.T) {
	for args, want := range map[string]string{
		"a.parquet":                      "map[:a.parquet]",
		"x=y.parquet":                    "map[:x=y.parquet]",
		"training=a holdout=b":           "map[holdout:b training:a]",
		"holdout=b check=c training=a=b": "map[check:c holdout:b training:a=b]",
		"a b":                            "!each once",
		"training=a":                     "!or the parts",
		"training=a check=b":             "!or the parts",
		"training=a holdout=b c":         "!or the parts",
		"training=a holdout=b holdout=b": "!each once",
		"training= holdout=b":            "!names no file",
	} {
		files, err := filesOf(strings.Fields(args))
		if part, wrong := strings.CutPrefix(want, "!"); wrong {
			if err == nil || !strings.Contains(err.Error(), part) || exitCode(err) != exitMisused {
				t.Errorf("%s: %v %v", args, files, err)
			}
		} else if err != nil || fmt.Sprint(files) != want {
			t.Errorf("%s: %v %v", args, files, err)
		}
	}
}

// TestTables: a terminal gets lines of its width, a pipe gets everything, and neither gets what would move it.
func TestTables(t *testing.T) {
	long := strings.Repeat("delay > 15 && ", 20)
	made := func() table {
		return table{header: []string{"A", "QUESTION"}, rows: [][]string{{"x\x1b[2J\ny", long}}, wide: 1}
	}
	for width, want := range map[int]int{0: 7 + 2 + len(strings.TrimSpace(long)) + 10, 60: 60} {
		var b bytes.Buffer
		one := made()
		if err := one.write(&b, width); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != 2 || strings.ContainsRune(b.String(), 0x1b) {
			t.Errorf("%q", b.String())
		}
		for _, line := range lines {
			if len([]rune(line)) > want {
				t.Errorf("width %d: %d characters: %q", width, len([]rune(line)), line)
			}
		}
		if width == 0 && !strings.Contains(b.String(), strings.TrimSpace(long)) {
			t.Errorf("cut where there is no terminal: %q", b.String())
		}
	}
}

// TestShellQuoted: what a help shows is what a shell reads.
func TestShellQuoted(t *testing.T) {
	for _, text := range []string{"delay", "delay > 15", "origin == 'SFO'", `{"a":"b"}`, `it's "x" $y`, "", "-60,180"} {
		if got := shellWords("x " + shellQuoted(text)); !strings.Contains(text, `"x"`) && (len(got) != 2 || got[1] != text) {
			t.Errorf("%q: %s", text, shellQuoted(text))
		}
	}
	if got := shellQuoted(`it's "x" $y`); got != `'it'\''s "x" $y'` {
		t.Error(got)
	}
}
