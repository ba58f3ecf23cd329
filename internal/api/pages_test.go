package api

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd"
	"github.com/holdoutd/holdoutd/internal/site"
)

var (
	addresses = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids       = regexp.MustCompile(` id="([^"]*)"`)
)

// TestDocumentationIsServed follows every link, figure and anchor from the contents on, as a stranger without a key. It notices a link to a file
// that the server does not have, an anchor that no heading has, a page that no other leads to, and anything that is loaded from elsewhere.
func TestDocumentationIsServed(t *testing.T) {
	s := start(t, Options{})
	anchors, wanted := map[string]map[string]bool{}, map[string]string{} // by address; "address#anchor" to a page that has it
	for queue := []string{site.Root}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if anchors[path] != nil {
			continue
		}
		anchors[path] = map[string]bool{"": true}
		r := s.get(path, "Authorization: ")
		media, policy := r.Header.Get("Content-Type"), r.Header.Get("Content-Security-Policy")
		if r.StatusCode != 200 && path != "/readyz" {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		if strings.HasPrefix(media, "image/") && (!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script")) {
			t.Errorf("%s: policy %q", path, policy)
		}
		if !strings.HasPrefix(media, "text/html") {
			continue
		}
		body := string(r.body)
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, " style=") || strings.Contains(body, "<!-- raw HTML") {
			t.Errorf("%s has what its policy forbids, or HTML that was left out", path)
		}
		for _, id := range ids.FindAllStringSubmatch(body, -1) {
			anchors[path][id[1]] = true
		}
		for _, m := range addresses.FindAllStringSubmatch(body, -1) {
			to := m[1]
			if strings.HasPrefix(to, "http") {
				if strings.HasPrefix(m[0], "src") {
					t.Errorf("%s loads %s", path, to)
				}
				continue
			}
			page, anchor, _ := strings.Cut(to, "#")
			if page == "" {
				page = path
			}
			if !strings.HasPrefix(page, "/") {
				t.Errorf("%s: the link %q is not an address of the server", path, to)
				continue
			}
			wanted[page+"#"+anchor] = path
			queue = append(queue, page)
		}
	}
	for to, from := range wanted {
		if page, anchor, _ := strings.Cut(to, "#"); !anchors[page][anchor] {
			t.Errorf("%s links to %s, which nothing there is called", from, to)
		}
	}
	urls, err := site.URLs(holdoutd.Texts, guides)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range urls {
		if anchors[url] == nil && !strings.HasPrefix(url, "/docs/figures/") {
			t.Errorf("no page leads to %s", url)
		}
	}
}

// TestUnknownPaths: a browser at an address that is none gets a page with ways on, and a program a problem.
func TestUnknownPaths(t *testing.T) {
	s := start(t, Options{})
	for _, c := range []struct {
		path, accept string
		page         bool
	}{
		{"/nowhere", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", true},
		{"/docs/nowhere", "text/html", true},
		{"/nowhere", "*/*", false},
		{"/nowhere", "application/json", false},
		{"/v1/nowhere", "text/html", false},
	} {
		r := s.get(c.path, "Authorization: ", "Accept: "+c.accept)
		page := strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && strings.Contains(string(r.body), `href="/docs"`)
		problem := strings.HasPrefix(r.Header.Get("Content-Type"), problemType) && strings.Contains(string(r.body), "not-found")
		if r.StatusCode != 404 || page != c.page || problem == c.page {
			t.Errorf("%s as %s: %d %s %s", c.path, c.accept, r.StatusCode, r.Header.Get("Content-Type"), r.body)
		}
	}
}
