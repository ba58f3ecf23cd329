#!/usr/bin/env bash
# Answers a second of one server with its ledger in a file, and in PostgreSQL on the same disk, in turns. It makes a PostgreSQL cluster for it, and removes it again.
# PLACE is a folder on the disk to measure (default: a temporary one), POSTGRES PostgreSQL's folder of programs; arguments are those of holdoutd bench.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${POSTGRES:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)}
place=$(mktemp -d "${PLACE:-${TMPDIR:-/tmp}}/ledgers.XXXXXX")
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid postgres --regid postgres --clear-groups) # PostgreSQL refuses root
trap '"${as[@]}" "$bin/pg_ctl" -D "$place/pg/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
trap 'exit 1' INT TERM
mkdir "$place/pg"
chmod 755 "$place"
[ ${#as[@]} = 0 ] || chown postgres "$place/pg"
"${as[@]}" "$bin/initdb" -D "$place/pg/data" -U owner -A trust -E UTF8 --locale=C >/dev/null
"${as[@]}" "$bin/pg_ctl" -D "$place/pg/data" -w -l "$place/pg/log" -o "-k $place/pg -c listen_addresses=" start >/dev/null
"$bin/psql" -q -h "$place/pg" -U owner postgres -c 'CREATE ROLE holdoutd LOGIN'
holdoutd=$place/holdoutd
${GO:-go} build -tags nomsgpack -o "$holdoutd" ./cmd/holdoutd
"$holdoutd" ledger prepare "postgres://owner@/postgres?host=$place/pg" --role holdoutd >/dev/null
uptime
TMPDIR=$place "$holdoutd" bench --ledger "postgres://holdoutd@/postgres?host=$place/pg" "${@:---clients=1,32,256}"
uptime
