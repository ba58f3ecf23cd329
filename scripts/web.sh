#!/usr/bin/env bash
# Installs what building and testing the dashboard needs, and prints the folder of node, for HOLDOUTD_NODE: node and npm, Chromium, and the
# packages of web/package-lock.json, once for each version of that list. What the machine lacks comes from apt, as root. A node or npm that is
# too old for the build is left alone: newer ones are put into .node, from npm's registry.
set -euo pipefail
cd "$(dirname "$0")/.."

needs() { # COMMAND PACKAGE…
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "web.sh: the tests of the dashboard need the command $1; install it" >&2
		exit 1
	fi
	{ apt-get update -q && apt-get install -qy --no-install-recommends "${@:2}"; } >&2
}
needs npm nodejs npm
needs node nodejs
needs chromium chromium

bin=$(dirname "$(command -v node)")
npm=(npm)
new_enough='const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'
if ! node -e "$new_enough" || [ "$(npm --version | cut -d. -f1)" -lt 11 ]; then
	tools=$PWD/.node kind=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
	bin=$tools/node_modules/node-linux-$kind/bin
	npm=("$bin/node" "$tools/node_modules/npm/bin/npm-cli.js")
	[ -x "$bin/node" ] || npm install --silent --no-save --prefix "$tools" "node-linux-$kind@22" npm@11 >&2
fi

stamp=web/node_modules/.$(sha256sum web/package-lock.json | cut -c1-16)
if [ ! -e "$stamp" ]; then
	(cd web && PATH=$bin:$PATH "${npm[@]}" ci --silent --no-fund --no-audit) >&2
	touch "$stamp"
fi
echo "$bin"
