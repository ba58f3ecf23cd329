package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/gate"
	"github.com/holdoutd/holdoutd/internal/members"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/internal/printed"
)

// askFlags are those of every question.
type askFlags struct {
	serverFlags
	holdout      string
	maxQuestions int64
	explain      bool
	json         bool
	once         string // Idempotency-Key

	note    string // of questions in JSON, for which there are no flags of their members
	partial bool   // of a batch
}

// add is also a gate's.
func (f *askFlags) add(flags *pflag.FlagSet) {
	f.serverFlags.add(flags)
	flags.StringVar(&f.holdout, "holdout", "", "the holdout, by its name or id (default: HOLDOUTD_HOLDOUT, or the only one that there is)")
	flags.Int64Var(&f.maxQuestions, "max-questions", 0, "how many questions it may cost; a dearer one is refused (default: a tenth of the holdout's, or 2 where that is more)")
	flags.BoolVar(&f.explain, "explain", false, "only say the price and the width to expect; costs nothing")
	flags.BoolVar(&f.json, "json", false, "print JSON as the server has it")
	flags.StringVar(&f.once, "idempotency-key", "", "of your own, for who sends a request again by themselves (default: a new one)")
}

func askCommand() *cobra.Command {
	var f askFlags
	types := members.Types()
	cmd := &cobra.Command{
		Use:   "ask TYPE … | ask JSON",
		Short: "Ask a question about a holdout: an answer with an interval, for its price",
		Long: `Asks a running server one question about a holdout and prints its answer, with an interval that holds for all questions
together, what it cost and what is left. The same question again, in any spelling, brings the same answer at no cost.

A question is a TYPE with what it is about, and its other members as flags: every type and member of docs/QUERIES.md, and
holdoutd ask TYPE --help lists them. Or it is one JSON object, as the interface has it; @FILE reads that from a file, and -
from standard input. A JSON list of questions is a batch: all are paid or none is, or with --partial as many as the budget
allows.

A member that is a number, a text or an expression is written as it is, one of two numbers as LOW,HIGH (--range=-60,180), a
list of texts by naming the flag again, an object as NAME=VALUE or as JSON, a model as @FILE. A request is sent again by
itself only where that is safe, always with the same Idempotency-Key.

` + findingHelp + `

Types: ` + strings.Join(typeNames(types), ", "),
		Example: `  holdoutd ask fraction 'delay > 15' --where "origin == 'SFO'"
  holdoutd ask mean delay --range=-60,180 --explain
  holdoutd ask accuracy 'delay > 15' --model @model.json --holdout flights
  holdoutd ask groups delay --by origin --range=-60,180 --max-questions 150 --json
  holdoutd ask '{"type":"fraction","of":"delay > 15","note":"first look"}'
  holdoutd ask @questions.json --partial`,
		Args: cobra.ArbitraryArgs,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("ask what? A type with what it is about, or a JSON object; %s --help has examples", cmd.CommandPath())
			}
			query, err := f.given(types, args)
			if err != nil {
				return err
			}
			return f.ask(ctx, cmd, query)
		}),
	}
	f.add(cmd.PersistentFlags())
	completeFlag(cmd, "holdout", func(c *cobra.Command, _ string) []string { return f.serverFlags.holdouts(c) })
	cmd.Flags().StringVar(&f.note, "note", "", "of a question in JSON: a remark of your own, which does not change it")
	cmd.Flags().BoolVar(&f.partial, "partial", false, "of a batch in JSON: ask as many questions as the budget allows")
	for _, of := range types {
		cmd.AddCommand(f.typeCommand(of))
	}
	return cmd
}

func typeNames(types []members.Type) (names []string) {
	for _, of := range types {
		names = append(names, of.Name)
	}
	return names
}

// given is a question, or a list of them, that is written in JSON.
func (f *askFlags) given(types []members.Type, args []string) (json.RawMessage, error) {
	text := args[0]
	if !strings.HasPrefix(strings.TrimSpace(text), "{") && !strings.HasPrefix(strings.TrimSpace(text), "[") && text != "-" && !strings.HasPrefix(text, "@") {
		return nil, misuse("unknown type %q%s", text, hint(nearest.Name(text, typeNames(types)), "holdoutd ask --help names them"))
	}
	if len(args) > 1 {
		return nil, misuse("a question in JSON is one argument, not %d: put it between quotes", len(args))
	}
	query, err := members.ReadArgument(text)
	if err != nil {
		return nil, misuse("the question %w", err)
	}
	isBatch := query[0] == '['
	switch {
	case f.partial && !isBatch:
		return nil, misuse("--partial is of a batch: a JSON list of questions")
	case f.note == "":
		return query, nil
	case query[0] != '{':
		return nil, misuse("--note is of one question; in a batch each has its own")
	}
	var q map[string]json.RawMessage
	if err := json.Unmarshal(query, &q); err != nil || q["note"] != nil {
		return nil, misuse("--note: the question has a note already")
	}
	note, err := json.Marshal(f.note)
	if err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(query, []byte("}")), []byte(separator(q)+`"note":`), note, []byte("}")), nil
}

func separator(object map[string]json.RawMessage) string {
	if len(object) == 0 {
		return ""
	}
	return ","
}

// typeCommand is the command of one type, with a flag for each of its members.
func (f *askFlags) typeCommand(of members.Type) *cobra.Command {
	use, least, most := of.Name, 0, 0
	for _, m := range of.Members {
		switch {
		case m.Place && m.Needed:
			use += " " + strings.ToUpper(m.Flag())
			least, most = least+1, most+1
		case m.Place:
			use += " [" + strings.ToUpper(m.Flag()) + "]"
			most++
		case m.Needed:
			use += " --" + m.Flag() + " " + m.Form()
		}
	}
	short, _, _ := strings.Cut(of.Says, ". ")
	var examples []string
	for _, e := range of.Examples {
		examples = append(examples, "  holdoutd ask "+commandLine(of, e))
	}
	cmd := &cobra.Command{
		Use: use, Short: strings.TrimSuffix(short, "."), Long: printed.InLines(of.Says, helpWidth), Example: strings.Join(examples, "\n"),
		Args: cobra.MaximumNArgs(most),
	}
	given := addMembers(cmd, of.Members)
	for _, m := range of.Members {
		if m.Expression() {
			completeFlag(cmd, m.Flag(), func(c *cobra.Command, begun string) []string { return f.serverFlags.columns(c, f.holdout, begun) })
		}
	}
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, noFiles
		}
		m := of.Members[len(args)]
		if words := m.Choices(); words != nil {
			return words, noFiles
		}
		if !m.Expression() {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return f.serverFlags.columns(c, f.holdout, begun), noFiles | cobra.ShellCompDirectiveNoSpace
	}
	cmd.RunE = asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		for i := range args {
			if m := of.Members[i]; len(given[m.Name].texts) > 0 {
				return misuse("%s is given both as an argument and by --%s", strings.ToUpper(m.Name), m.Flag())
			}
		}
		texts := map[string][]string{}
		for name, g := range given {
			texts[name] = g.texts
		}
		for i, arg := range args {
			texts[of.Members[i].Name] = []string{arg}
		}
		values, err := readMembers(of.Members, texts)
		if err != nil {
			return err
		}
		for _, m := range of.Members {
			if m.Needed && values[m.Name] == nil {
				return misuse("%s is missing: %s; usage: %s", nameOf(m), m.Says, cmd.UseLine())
			}
		}
		return f.ask(ctx, cmd, of.Query(values))
	})
	return cmd
}

// nameOf is how a command line names a member.
func nameOf(m members.Member) string {
	if m.Place {
		return strings.ToUpper(m.Flag())
	}
	return "--" + m.Flag()
}

// A memberFlag keeps the texts that a member was given.
type memberFlag struct {
	member members.Member
	texts  []string
}

func (g *memberFlag) String() string { return strings.Join(g.texts, " ") }

// Type is what the help calls the value.
func (g *memberFlag) Type() string { return strings.ReplaceAll(g.member.Form(), " ", "") }

// Set adds a text.
func (g *memberFlag) Set(text string) error {
	g.texts = append(g.texts, text)
	return nil
}

// addMembers adds a flag for each member.
func addMembers(cmd *cobra.Command, of []members.Member) map[string]*memberFlag {
	given := map[string]*memberFlag{}
	for _, m := range of {
		g := &memberFlag{member: m}
		given[m.Name] = g
		flag := cmd.Flags().VarPF(g, m.Flag(), "", m.Says)
		if m.Switch() {
			flag.NoOptDefVal = "true"
		}
		if words := m.Choices(); words != nil {
			completeFlag(cmd, m.Flag(), func(*cobra.Command, string) []string { return words })
		}
	}
	return given
}

// readMembers are the values of the members that were given.
func readMembers(of []members.Member, texts map[string][]string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, m := range of {
		if len(texts[m.Name]) == 0 {
			continue
		}
		value, err := m.Read(texts[m.Name])
		if err != nil {
			return nil, misuse("%s %w", nameOf(m), err)
		}
		values[m.Name] = value
	}
	return values, nil
}

func completeFlag(cmd *cobra.Command, flag string, words func(c *cobra.Command, begun string) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return words(c, begun), noFiles
	})
	if err != nil {
		panic("holdoutd: " + err.Error()) // a flag that is not there
	}
}

// commandLine is a question as a person writes it.
func commandLine(of members.Type, query json.RawMessage) string {
	var q map[string]json.RawMessage
	if json.Unmarshal(query, &q) != nil {
		return shellQuoted(string(query))
	}
	words := []string{of.Name}
	for _, m := range of.Members {
		if m.Place && q[m.Name] != nil {
			words = append(words, textOf(q[m.Name]))
		}
	}
	for i := range words {
		words[i] = shellQuoted(words[i])
	}
	for _, m := range of.Members {
		value, ok := q[m.Name]
		if !ok || m.Place {
			continue
		}
		var list []json.RawMessage
		switch {
		case m.Switch():
			words = append(words, "--"+m.Flag())
		case json.Unmarshal(value, &list) == nil && len(list) > 0 && list[0][0] == '"' && len(list) > 1:
			for _, item := range list {
				words = append(words, "--"+m.Flag(), shellQuoted(textOf(item)))
			}
		case list != nil && len(list) > 0 && list[0][0] != '"' && list[0][0] != '{':
			words = append(words, "--"+m.Flag()+"="+strings.Trim(string(value), "[]"))
		default:
			words = append(words, "--"+m.Flag(), shellQuoted(textOf(value)))
		}
	}
	return strings.Join(words, " ")
}

// textOf is a text without its quotes, and other JSON as it is.
func textOf(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// shellQuoted is a text as a shell takes it for one word.
func shellQuoted(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@", r)
	}) < 0
	switch {
	case plain && text != "":
		return text
	case !strings.ContainsAny(text, `"$`+"`"+`\!`) && strings.Contains(text, "'"):
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// ask sends a question, or explains it, and prints what comes.
func (f *askFlags) ask(ctx context.Context, cmd *cobra.Command, query json.RawMessage) error {
	ctx, err := f.limited(ctx, cmd)
	if err != nil {
		return err
	}
	c, card, err := f.open(ctx, f.holdout)
	if err != nil {
		return err
	}
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if query, err = c.Short(ctx, query); err != nil {
		return err
	}
	if query[0] == '[' {
		return f.batch(ctx, c, card.ID, query, out, errs)
	}
	if f.explain {
		e, err := c.Explain(ctx, card.ID, query)
		switch {
		case err != nil:
			return err
		case f.json:
			return printJSON(out, e)
		}
		return printExplanation(out, errs, e)
	}
	reply, err := c.Ask(ctx, card.ID, query)
	switch {
	case err != nil:
		return err
	case f.json:
		return printJSON(out, reply)
	}
	return printReply(out, errs, reply)
}

// limited are the choices of a request that the client takes with its context.
func (f *askFlags) limited(ctx context.Context, cmd *cobra.Command) (context.Context, error) {
	if cmd.Flags().Changed("max-questions") {
		if f.maxQuestions < 1 {
			return nil, misuse("--max-questions must be at least 1, not %d", f.maxQuestions)
		}
		ctx = client.WithMaxQuestions(ctx, f.maxQuestions)
	}
	if f.once != "" {
		ctx = client.WithIdempotencyKey(ctx, f.once)
	}
	return ctx, nil
}

func (f *askFlags) batch(ctx context.Context, c *client.Client, id string, list json.RawMessage, out, errs io.Writer) error {
	var queries []json.RawMessage
	if err := json.Unmarshal(list, &queries); err != nil {
		return misused{err}
	}
	if f.explain {
		return f.explainAll(ctx, c, id, queries, out, errs)
	}
	all := make([]any, len(queries))
	for i, q := range queries {
		all[i] = q
	}
	reply, err := c.AskBatch(ctx, id, all, f.partial)
	switch {
	case err != nil:
		return err
	case f.json:
		return printJSON(out, reply)
	}
	paid := client.Cost{}
	t := table{header: []string{"QUESTION", "ANSWER", "COST"}}
	var items []client.Answer
	for i, item := range reply.Answers {
		if item.Answer == nil {
			t.add(queryText(queries[i]), "not asked: "+item.NotAsked, "")
			continue
		}
		if len(item.Answer.Items) > 0 {
			items = append(items, *item.Answer)
		}
		cost := gate.CostText(item.Answer.Cost)
		if item.Replayed {
			cost = "asked before"
		} else {
			paid.Questions += item.Answer.Cost.Questions
			paid.Tokens += item.Answer.Cost.Tokens
			paid.Rounds += item.Answer.Cost.Rounds
		}
		headline := headline(*item.Answer)
		if item.Per != "" {
			headline += ", per " + printable(item.Per)
		}
		t.add(queryText(queries[i]), headline, cost)
		warn(errs, item.Answer.Warnings)
	}
	if err := t.write(out, terminalWidth(out)); err != nil {
		return err
	}
	for _, a := range items {
		if err := printItems(out, a.Items); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "cost %s; left %s\n", gate.CostText(paid), gate.Left(reply.Budget))
	warn(errs, reply.Warnings)
	return nil
}

func (f *askFlags) explainAll(ctx context.Context, c *client.Client, id string, queries []json.RawMessage, out, errs io.Writer) error {
	explained := []client.Explanation{}
	for _, q := range queries {
		e, err := c.Explain(ctx, id, q)
		if err != nil {
			return err
		}
		explained = append(explained, e)
	}
	if f.json {
		return printJSON(out, explained)
	}
	t := table{header: []string{"QUESTION", "PRICE", "PLANNED", "WIDEST"}}
	for i, e := range explained {
		cost := foreseen(e.Cost)
		if e.Answered {
			cost = "nothing"
		}
		t.add(queryText(queries[i]), cost, widthText(e.HalfWidth), widestText(e.WidestHalfWidth))
		warn(errs, e.Warnings)
	}
	return t.write(out, terminalWidth(out))
}
