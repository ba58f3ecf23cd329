package main

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/api"
)

// settingFlags are the settings of a new holdout, a flag each, and how its card is printed.
type settingFlags struct {
	serverFlags
	json bool
	once string // Idempotency-Key
}

func (f *settingFlags) add(cmd *cobra.Command, parameters []api.Parameter) {
	for _, p := range parameters {
		if p.Kind != "boolean" {
			cmd.Flags().Var(&setting{parameter: p}, flagName(p), p.Says)
		}
	}
	f.serverFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.once, "idempotency-key", "", "of your own: the same request with the same key makes one holdout, and prints its card again (default: a new one)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the card as JSON")
}

// flagName is the flag of a parameter. That of a row's key has a name of its own: --key is the API key.
func flagName(p api.Parameter) string {
	if p.Name == "key" {
		return "row-key"
	}
	return strings.ReplaceAll(p.Name, "_", "-")
}

// A setting is the flag of a parameter.
type setting struct {
	parameter api.Parameter
	value     json.RawMessage
}

func (s *setting) String() string { return strings.Trim(string(s.value), `"`) }

// Type is what the help calls the value.
func (s *setting) Type() string {
	return map[string]string{"integer": "int", "number": "number", "string": "text", "array": "text"}[s.parameter.Kind]
}

// Set reads a value. A zero that would mean "not given" is refused here as the server refuses it: it could not be sent.
func (s *setting) Set(text string) error {
	switch s.parameter.Kind {
	case "string":
		if text == "" {
			return errors.New("is empty; leave it out for the default")
		}
		s.value, _ = json.Marshal(text)
		return nil
	case "array": // a value each time
		if text == "" {
			return errors.New("is empty; leave it out for the default")
		}
		var all []string
		if s.value != nil {
			if err := json.Unmarshal(s.value, &all); err != nil {
				return err
			}
		}
		s.value, _ = json.Marshal(append(all, text))
		return nil
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("must be a whole number")
		}
		s.value = json.RawMessage(strconv.FormatInt(n, 10))
	default:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x-x != 0 || strings.ContainsAny(text, "xXpP_") {
			return errors.New("must be a number")
		}
		s.value = json.RawMessage(strconv.FormatFloat(x, 'g', -1, 64))
	}
	if string(s.value) == "0" && !s.parameter.Zero {
		return errors.New("must not be zero; leave it out for the default")
	}
	return nil
}

// settings are those that were named.
func (f *settingFlags) settings(cmd *cobra.Command) (client.Settings, error) {
	given := map[string]json.RawMessage{}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if s, ok := flag.Value.(*setting); ok {
			given[s.parameter.Name] = s.value
		}
	})
	var s client.Settings
	text, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
