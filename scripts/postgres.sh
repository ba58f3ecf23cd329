#!/usr/bin/env bash
# Prints the folder of PostgreSQL's programs, for HOLDOUTD_POSTGRES: the newest version that is installed, 13 or later. Debian keeps them off the
# PATH. Where there is none it comes from apt, as root, without the cluster that the package would start: the tests start their own, in
# temporary folders (holdout/ledger/postgres/pgtest).
set -euo pipefail

oldest=13

find_bin() {
	local dir version best= newest=0
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin "$(dirname "$(command -v initdb 2>/dev/null || echo /none/initdb)")"; do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && [ -x "$dir/pg_basebackup" ] || continue
		version=$("$dir/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
		if [ "$version" -ge "$oldest" ] && [ "$version" -gt "$newest" ]; then best=$dir newest=$version; fi
	done
	[ -n "$best" ] && echo "$best"
}

if ! find_bin; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "postgres.sh: the tests need PostgreSQL $oldest or later, with initdb and pg_basebackup; install the server (Debian: postgresql)" >&2
		exit 1
	fi
	{
		mkdir -p /etc/postgresql-common
		[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
		apt-get update -q && apt-get install -qy --no-install-recommends postgresql
	} >&2
	find_bin || { echo "postgres.sh: apt-get installed no PostgreSQL of version $oldest or later" >&2; exit 1; }
fi
