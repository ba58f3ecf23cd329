package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
)

// TestGrants goes from a key that sees nothing to a grant that is used up, passed on and ended, with the program alone. It notices a grant that pays more than it has, one
// that goes to somebody else, and a budget that is not there again.
func TestGrants(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 100, Tokens: 10})
	keys, made := map[string]string{}, map[string]string{} // secrets by name; ids of grants, and of bob's key
	for name, args := range map[string]string{"ana": "", "bot": " --only-granted", "bob": " --only flights"} {
		stdout, stderr, code := s.call(t, nil, shellWords("key create "+name+args)...)
		if keys[name] = strings.TrimSpace(stdout); code != 0 || !strings.HasPrefix(keys[name], "hk_") {
			t.Fatalf("key create %s: %d %s%s", name, code, stdout, stderr)
		}
		made["THE-"+name] = regexp.MustCompile(`key_[0-9a-f-]+`).FindString(stderr)
	}
	for _, c := range []struct {
		as, args string
		code     int
		out      string // a regular expression; NAME= keeps what is printed under a name
		errs     string
	}{
		{"", "key list", 0, `(?s)ana +analyst +all holdouts .*`, ``},
		{"", "key list", 0, `bot +analyst +what it is granted `, ``},
		{"", "key list", 0, `bob +analyst +1 of the holdouts `, ``},
		{"", "key create eve --scope admin --only-granted", 2, `^$`, `cannot be limited`},
		{"", "key create eve --only nosuch", 1, `^$`, `there is no holdout "nosuch"`},
		{"", "grant list", 0, `^HOLDER .*\n$`, ``},
		{"bot", "holdouts", 0, `^NAME .*\n$`, `no holdout yet`},
		{"ana", "grant create bob --questions 5", 2, `^$`, `only an admin can name a key by its name`},
		{"ana", "grant create THE-bob --questions 5", 1, `^$`, `scope`},
		{"", "grant create nobody --questions 5", 1, `^$`, `no valid key has the id or the name "nobody"`},
		{"", "grant create ana --questions 101", 5, `^$`, `100`},
		{"", "grant create ana --questions 5 --shows all", 2, `^$`, `full, value or bit`},
		{"", "grant create ana --questions 5 --expires tomorrow", 2, `^$`, `--expires "tomorrow" is no time`},
		{"", "grant create ana --questions 5 --expires 2020-01-01", 2, `^$`, `expire`},
		{"", "grant create ana --questions 20 --may-grant", 0, "ANA=", ``},
		{"", "grant create bot --questions 3 --tokens 1 --shows bit --expires 7d --name nightly", 0, "BOT=", ``},
		{"", "budget", 0, `questions +77 +100\ntokens +7 +10\n23 more questions are with grants\n`, ``},
		{"ana", "budget", 0, `(?s)questions +20 +20\ntokens +2 +2\n.*your grant ANA has`, ``},
		{"bot", "budget", 0, `(?s)questions +3 +3\n.*your grant shows of answers the verdict alone`, ``},
		{"ana", "grant create THE-bob --questions 4", 0, "BOB=", ``},
		{"ana", "grant create THE-bob --questions 17", 5, `^$`, `.`},
		{"", "grant list", 0, `(?m)^ana +16 of 20 +1 of 2 +full +live, may grant +ANA\n  bob +4 of 4 +1 of 1 +full +live +BOB\nbot +nightly +3 of 3 +1 of 1 +bit +until `, ``},
		{"bob", "grant list", 0, `(?m)^bob +4 of 4`, ``},
		{"bot", "ask fraction 'delay > 15'", 1, `^$`, `the verdict of an answer alone`},
		{"bot", "ask compare '{\"type\":\"mean\",\"of\":\"delay\",\"range\":[-60,180]}' '{\"type\":\"mean\",\"of\":\"delay + 30.0\",\"range\":[-60,180]}' --by 5", 0, `^yes`, ``},
		{"bob", "ask fraction 'delay > 15'", 0, `left 3 of 4 questions`, ``},
		{"bob", "ask fraction 'delay > 15' --grant ANA", 2, `^$`, `no such grant`},
		{"", "budget", 0, `questions +77 +100\n`, ``},
		{"", "grant revoke nobody", 1, `^$`, `no live grant`},
		{"bob", "grant revoke ANA", 1, `^$`, `.`},
		{"", "grant revoke ana", 0, `^$`, ``},
		{"bob", "ask fraction 'delay > 20'", 5, `^$`, `ended`},
		{"bob", "ask fraction 'delay > 15'", 0, `cost nothing: asked before`, ``},
		{"", "budget", 0, `questions +96 +100\n`, ``}, // one of bob's, and what the bot has been granted
		{"", "grant list --all", 0, `(?m)^ana .* ended 20.*\n  bob .* ended 20`, ``},
		{"", "grant list --json", 0, `"holder"`, ``},
		{"", "grant revoke BOT", 0, `^$`, ``},
		{"", "budget", 0, `questions +98 +100\n`, ``},
		{"bot", "holdouts", 0, `^NAME .*\n$`, `no holdout yet`},
	} {
		var environment []string
		if c.as != "" {
			environment = []string{"HOLDOUTD_URL=" + s.url, "HOLDOUTD_KEY=" + keys[c.as]}
		}
		args, out, errs := c.args, c.out, c.errs
		for name, id := range made {
			args, out = strings.ReplaceAll(args, name, id), strings.ReplaceAll(out, name, id)
		}
		stdout, stderr, code := s.call(t, environment, shellWords(args)...)
		if name, ok := strings.CutSuffix(out, "="); ok {
			made[name], out = strings.TrimSpace(stdout), `^gr_[0-9a-f-]+\n$`
		}
		if code != c.code || !regexp.MustCompile(out).MatchString(stdout) || !regexp.MustCompile(errs).MatchString(stderr) || errs == "" && stderr != "" {
			t.Errorf("%s: holdoutd %s: exit code %d, want %d\nstdout: %s\nstderr: %s", c.as, c.args, code, c.code, stdout, stderr)
		}
	}
}

// TestExpiry: when a grant ends, in each way to say it. A day ends at its end where the command is typed.
func TestExpiry(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	day := time.Date(2026, 12, 31, 23, 59, 59, 0, time.Local).UTC()
	for text, want := range map[string]string{
		"": "never", "36h": "2026-11-25T00:00:00Z", "90m": "2026-11-23T13:30:00Z", "7d": "2026-11-30T12:00:00Z", "2026-12-31": day.Format(time.RFC3339),
		"2026-12-31T12:00:00+01:00": "2026-12-31T11:00:00Z", "7": "", "-1h": "", "0d": "", "-3d": "", "d": "", "soon": "", "2026-13-01": "", "99999999999d": "",
	} {
		at, err := expiry(text, now)
		got := "never"
		switch {
		case err != nil:
			got = ""
		case at != nil:
			got = at.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, fmt.Sprint(got, " ", err), want)
		}
	}
}
