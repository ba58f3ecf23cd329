package chtest

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// serverMemory is what a query of a test may use, in bytes.
const serverMemory = 1 << 30

// startCluster starts two shards that know each other.
func startCluster(more []Profile) (*Engine, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(bin, "server")
	e := &Engine{Name: "18.16 in two shards", Cluster: ClusterName}
	var native []int
	for range 2 {
		s := &Server{env: []string{"LD_LIBRARY_PATH=" + root + "/usr/lib/x86_64-linux-gnu:" + root + "/lib/x86_64-linux-gnu"}}
		if s.Dir, err = newDir(); err != nil {
			return nil, fmt.Errorf("chtest: %w", err)
		}
		e.Servers = append(e.Servers, s)
		s.command = []string{root + "/usr/sbin/clickhouse-server", "--config-file=" + s.Dir + "/config.xml"}
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		native = append(native, port)
		if s.Port, err = freePort(); err != nil {
			return nil, err
		}
	}
	for i, s := range e.Servers {
		if err := s.configure(native, i, more); err != nil {
			return nil, fmt.Errorf("chtest: %w", err)
		}
		if err := s.Start(); err != nil {
			e.Close()
			return nil, err
		}
	}
	for _, s := range e.Servers {
		for _, db := range []string{Data, Private} {
			if _, err := s.Do(Owner, "CREATE DATABASE "+db, nil); err != nil {
				e.Close()
				return nil, err
			}
		}
	}
	return e, nil
}

func (s *Server) configure(native []int, i int, more []Profile) error {
	for _, dir := range []string{"data", "tmp"} {
		path := filepath.Join(s.Dir, dir)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if err := give(path); err != nil {
			return err
		}
	}
	interserver, err := freePort()
	if err != nil {
		return err
	}
	var shards strings.Builder
	for _, port := range native {
		fmt.Fprintf(&shards, "<shard><replica><host>127.0.0.1</host><port>%d</port><user>%s</user><password>%s</password></replica></shard>", port, Owner, Password)
	}
	err = s.write("config.xml", fmt.Sprintf(`<yandex>
<logger><level>warning</level><log>%[1]s/server.log</log><errorlog>%[1]s/err.log</errorlog></logger>
<http_port>%[2]d</http_port><tcp_port>%[3]d</tcp_port><interserver_http_port>%[4]d</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host><path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path><users_config>%[1]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>67108864</mark_cache_size><timezone>Europe/Zurich</timezone>
<query_log><database>system</database><table>query_log</table><flush_interval_milliseconds>500</flush_interval_milliseconds></query_log>
<remote_servers><%[5]s>%[6]s</%[5]s></remote_servers>
</yandex>
`, s.Dir, s.Port, native[i], interserver, ClusterName, shards.String()))
	if err != nil {
		return err
	}
	return s.write("users.xml", users(more))
}

// Profiles are the settings of the three users; 18.16 and the current engine have the same.
func profiles() map[string]map[string]string {
	memory := fmt.Sprint(serverMemory)
	return map[string]map[string]string{
		Owner:  {"max_memory_usage": memory, "insert_distributed_sync": "1"},
		Loader: {"max_memory_usage": memory, "log_queries": "1"},
		Reader: {"readonly": "1", "max_memory_usage": memory, "max_execution_time": "60", "max_result_bytes": "0", "log_queries": "1",
			"max_query_size": "16777216", "max_ast_elements": "2000000", "max_expanded_ast_elements": "4000000"},
	}
}

// users is the configuration of users: the three, and those of the test. A profile of the test has the reader's settings, and its own over them.
func users(more []Profile) string {
	var out, profilesText, usersText strings.Builder
	add := func(user string, settings map[string]string, databases []string) {
		fmt.Fprintf(&profilesText, "<%s>", user)
		for _, name := range sortedKeys(settings) {
			fmt.Fprintf(&profilesText, "<%s>", name)
			_ = xml.EscapeText(&profilesText, []byte(settings[name]))
			fmt.Fprintf(&profilesText, "</%s>", name)
		}
		fmt.Fprintf(&profilesText, "</%s>", user)
		fmt.Fprintf(&usersText, "<%[1]s><password>%[2]s</password><networks><ip>127.0.0.1</ip></networks><profile>%[1]s</profile><quota>default</quota>", user, Password)
		if databases != nil {
			usersText.WriteString("<allow_databases>")
			for _, db := range databases {
				fmt.Fprintf(&usersText, "<database>%s</database>", db)
			}
			usersText.WriteString("</allow_databases>")
		}
		fmt.Fprintf(&usersText, "</%s>", user)
	}
	all := profiles()
	add("default", all[Owner], nil)
	add(Owner, all[Owner], nil)
	add(Loader, all[Loader], []string{Data, Private, "system"})
	add(Reader, all[Reader], []string{Private, "system"})
	for _, p := range more {
		add(p.User, p.merged(), []string{Private, "system"})
	}
	fmt.Fprintf(&out, "<yandex><profiles>%s</profiles><quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas><users>%s</users></yandex>\n",
		profilesText.String(), usersText.String())
	return out.String()
}

// merged are the reader's settings with those of the profile over them; "" takes one away.
func (p Profile) merged() map[string]string {
	settings := profiles()[Reader]
	if p.Alone {
		clear(settings)
	}
	for name, value := range p.Settings {
		if value == "" {
			delete(settings, name)
		} else {
			settings[name] = value
		}
	}
	return settings
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
