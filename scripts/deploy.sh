#!/usr/bin/env bash
# Checks deploy/ with the programs and libraries that read it where it is used: renders the Helm chart and decodes it as Kubernetes does, loads the
# compose file with Compose's loader, runs the balancer, and evaluates the alerts with Prometheus' engine (deploy/check, a module of its own). Installs
# what it needs: helm by go install into .tools, once; haproxy from apt, as root.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} version=v3.22.0 tools=$PWD/.tools

helm=$tools/helm-$version
if [ ! -x "$helm" ]; then
	mkdir -p "$tools"
	GOFLAGS='' GOBIN=$tools "$go" install "helm.sh/helm/v3/cmd/helm@$version" >&2 || { echo "deploy.sh: helm $version cannot be installed" >&2; exit 1; }
	mv "$tools/helm" "$helm"
fi
if ! command -v haproxy >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "deploy.sh: the check of the load balancer needs the command haproxy, 2.6 or later; install it" >&2
		exit 1
	fi
	{ apt-get update -q && apt-get install -qy --no-install-recommends haproxy; } >&2
fi
cd deploy/check
"$go" vet ./...
HOLDOUTD_HELM=$helm "$go" test -count=1 ./...
