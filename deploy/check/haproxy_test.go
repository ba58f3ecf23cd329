package check

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// checkHAProxy has the program read a configuration. Names of servers that are not here are replaced by an address.
func checkHAProxy(t *testing.T, config string, servers ...string) {
	t.Helper()
	for _, s := range servers {
		if !strings.Contains(config, " "+s) {
			t.Errorf("%s is not balanced", s)
		}
		config = strings.ReplaceAll(config, " "+s, " 127.0.0.1:1")
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "haproxy", "-c", "-f", file).CombinedOutput(); err != nil {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
}

// TestBalancer runs the balancer of the compose file before two servers: every request about a holdout goes to one of them, whoever asks, holdouts
// are spread over both, /metrics and a client's traceparent do not get through, and a server that is not ready gets nothing.
func TestBalancer(t *testing.T) {
	text, err := os.ReadFile("../compose/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	checkHAProxy(t, string(text), "replica-1:8080", "replica-2:8080")
	var ready [2]atomic.Bool
	var mu sync.Mutex
	asked := map[string]map[int]bool{} // servers by path
	config := string(text)
	for i := range ready {
		ready[i].Store(true)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/readyz" {
				if !ready[i].Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return
			}
			if r.Header.Get("Traceparent") != "" {
				t.Error("a traceparent gets through")
			}
			mu.Lock()
			defer mu.Unlock()
			if asked[r.URL.Path] == nil {
				asked[r.URL.Path] = map[int]bool{}
			}
			asked[r.URL.Path][i] = true
		}))
		t.Cleanup(s.Close)
		config = strings.ReplaceAll(config, fmt.Sprintf("replica-%d:8080", i+1), strings.TrimPrefix(s.URL, "http://"))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	config = strings.Replace(config, "bind :8080", "bind "+address, 1)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command("haproxy", "-db", "-f", file)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Process.Kill(); proxy.Wait() })
	get := func(path string, client int) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", fmt.Sprintf("Bearer hk_%d", client))
		request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			reply, err := http.DefaultClient.Do(request)
			if err == nil {
				io.Copy(io.Discard, reply.Body)
				reply.Body.Close()
				return reply.StatusCode
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	const holdouts, clients = 40, 5
	both := map[int]int{}
	for h := range holdouts {
		path := fmt.Sprintf("/v1/holdouts/ho_%d/queries", h)
		for c := range clients {
			if status := get(path, c); status != http.StatusOK {
				t.Fatalf("%s: %d", path, status)
			}
		}
		if len(asked[path]) != 1 {
			t.Errorf("%s went to %v", path, asked[path])
		}
		for i := range asked[path] {
			both[i]++
		}
	}
	if both[0] < 5 || both[1] < 5 {
		t.Errorf("%v of %d holdouts: one server has nearly all", both, holdouts)
	}
	if status := get("/metrics", 0); status != http.StatusNotFound {
		t.Errorf("/metrics: %d", status)
	}
	ready[0].Store(false)
	time.Sleep(6 * time.Second) // two checks fail
	for h := range holdouts {
		if status := get(fmt.Sprintf("/v1/holdouts/ho_%d/budget", h), 0); status != http.StatusOK {
			t.Errorf("while one server is not ready: %d", status)
		}
	}
	for path, servers := range asked {
		if strings.HasSuffix(path, "/budget") && servers[0] {
			t.Errorf("%s went to a server that is not ready", path)
		}
	}
}
