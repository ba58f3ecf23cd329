package oidc

import (
	"fmt"
	"slices"
	"strings"
)

// A Rule says of whom something is true: all its conditions hold for a token's claims.
type Rule []Condition

// A Condition is a claim and a value. It holds where the claim is the value, or a list that has it, letter by letter. The values true and false also
// stand for the claims true and false.
type Condition struct {
	// Claim is the name of a member of the token; if there is none, a path of names with dots, such as realm_access.roles.
	Claim string
	Value string
}

// between stands between the conditions of a rule.
const between = " AND "

// everyones are claims that all tokens that come so far have alike. At an issuer that is open to all, such as Google's and GitHub's, a rule of
// nothing else would let everyone in.
var everyones = []string{"iss", "aud"}

// ParseRule reads CLAIM=VALUE, or several with AND between them.
func ParseRule(text string) (Rule, error) {
	var rule Rule
	narrows := false
	for condition := range strings.SplitSeq(text, between) {
		claim, value, ok := strings.Cut(strings.TrimSpace(condition), "=")
		if !ok || claim == "" || value == "" || strings.ContainsAny(claim, " \t\r\n") {
			return nil, fmt.Errorf("%q is not CLAIM=VALUE, such as groups=data, or several with AND between them", text)
		}
		rule = append(rule, Condition{claim, value})
		narrows = narrows || !slices.Contains(everyones, claim)
	}
	if !narrows {
		return nil, fmt.Errorf("%q holds for everyone who can get a token for this server; name a group, a role, a repository or a subject", text)
	}
	return rule, nil
}

// within reports whether a rule asks for all that another one does, so that it holds for no token for which the other one does not.
func (r Rule) within(other Rule) bool {
	return !slices.ContainsFunc(other, func(c Condition) bool { return !slices.Contains(r, c) })
}

// String is the rule as [ParseRule] reads it.
func (r Rule) String() string {
	texts := make([]string, len(r))
	for i, c := range r {
		texts[i] = c.Claim + "=" + c.Value
	}
	return strings.Join(texts, between)
}

func anyHolds(rules []Rule, c claims) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.holds(c) })
}

func (r Rule) holds(c claims) bool {
	for _, condition := range r {
		if !condition.holds(c) {
			return false
		}
	}
	return len(r) > 0
}

// holds compares. An address counts only where the issuer says that it has verified it: at many, people may write any address.
func (t Condition) holds(c claims) bool {
	if t.Claim == "email" && !slices.Contains(c.texts("email_verified"), "true") {
		return false
	}
	return slices.Contains(textsOf(c.at(t.Claim)), t.Value)
}

// at is the claim with a name, or at the end of a path.
func (c claims) at(path string) any {
	if value, ok := c[path]; ok {
		return value
	}
	var value any = map[string]any(c)
	for name := range strings.SplitSeq(path, ".") {
		members, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = members[name]
	}
	return value
}
