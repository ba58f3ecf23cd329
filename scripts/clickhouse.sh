#!/usr/bin/env bash
# Installs what the tests of sources/clickhouse need, once, and prints its folder, for HOLDOUTD_CLICKHOUSE:
#   server/  ClickHouse 18.16 of Debian, unpacked and not installed: a real server, of which the tests start two shards
#   chdb/    the current engine as a library of npm, without a server: sources/clickhouse/chtest puts it behind HTTP
# The folder is under HOLDOUTD_ENGINES, /var/tmp/holdoutd-engines where that is not set. Everybody may read it: where we are root, the tests start servers as nobody.
set -euo pipefail

server_version=18.16.1
chdb_version=3.4.0

engines=${HOLDOUTD_ENGINES:-/var/tmp/holdoutd-engines}
mkdir -p "$engines"
[ -O "$engines" ] || { echo "clickhouse.sh: $engines is somebody else's; set HOLDOUTD_ENGINES to a folder of your own" >&2; exit 1; }
chmod 755 "$engines"
exec 9>"$engines/clickhouse.lock"
flock 9 # two checkouts may install at once

home=$engines/clickhouse
server=$home/server-$server_version chdb=$home/chdb-$chdb_version

needs() { # COMMAND PACKAGE…
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "clickhouse.sh: the tests of sources need the command $1; install it" >&2
		exit 1
	fi
	{ apt-get update -q && apt-get install -qy --no-install-recommends "${@:2}"; } >&2
}

if [ ! -e "$server/done" ]; then
	needs apt-get apt
	needs dpkg-deb dpkg
	rm -rf "$server"
	mkdir -p "$server/debs" "$server/root"
	{
		[ -n "$(apt-cache madison clickhouse-server 2>/dev/null)" ] || { [ "$(id -u)" != 0 ] || apt-get update -q; }
		version=$(apt-cache madison clickhouse-server | awk -v v="$server_version" '$3 ~ "^"v {print $3; exit}')
		[ -n "$version" ] || { echo "clickhouse.sh: apt has no clickhouse-server $server_version; Debian bookworm has"; exit 1; }
		# What apt would install with it, of which nothing is installed: what the machine has already is not among it.
		packages=$(apt-get install -s --no-install-recommends "clickhouse-server=$version" | awk '/^Inst/ {print $2}')
		(cd "$server/debs" && apt-get download -q ${packages:-clickhouse-server clickhouse-common})
		for package in "$server"/debs/*.deb; do dpkg-deb -x "$package" "$server/root"; done
		rm -r "$server/debs"
		touch "$server/done"
	} >&2
fi

if [ ! -e "$chdb/done" ]; then
	needs node nodejs
	needs npm nodejs npm
	rm -rf "$chdb"
	mkdir -p "$chdb"
	npm install --silent --no-fund --no-audit --no-save --prefix "$chdb" "chdb@$chdb_version" >&2
	touch "$chdb/done"
fi

ln -sfn "$server/root" "$home/server"
ln -sfn "$chdb" "$home/chdb"
chmod -R a+rX "$home"
echo "$home"
