#!/usr/bin/env bash
# Has the programs themselves read what is here: Prometheus's promtool (the configuration, the alerts, their tests, and each expression of the dashboard) and HAProxy;
# Debian's packages prometheus and haproxy have them. Where Docker's compose is, it reads compose.yaml. The tests (TestDeployment) need none of them.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r . "$work/deploy"
cd "$work/deploy"

[ -e secrets ] || ./secrets.sh
sed -i "s|/etc/prometheus/|$PWD/prometheus/|; s|/run/secrets/|$PWD/secrets/|" prometheus/prometheus.yml
promtool check config prometheus/prometheus.yml
promtool test rules prometheus/rules_test.yml
{
	echo 'groups: [{name: dashboard, rules: ['
	grep -ho '"expr": ".*"' grafana/dashboards/*.json | sed 's/\$__rate_interval/1m/g; s/^"expr": \(.*\)/{record: "panel", expr: \1},/' # a string of JSON is one of YAML
	echo ']}]'
} >panels.yml
promtool check rules --lint=none panels.yml

sed -i 's/ one:8080 / 127.0.0.1:8081 /; s/ two:8080 / 127.0.0.1:8082 /' haproxy/haproxy.cfg # names of containers are known among them alone
haproxy -c -f haproxy/haproxy.cfg

compose=(docker compose)
"${compose[@]}" version >/dev/null 2>&1 || compose=(docker-compose)
if "${compose[@]}" version >/dev/null 2>&1; then
	"${compose[@]}" -f compose.yaml config --quiet
	echo "compose.yaml is valid"
else
	echo "compose.yaml was not read by docker compose, which is not here"
fi
