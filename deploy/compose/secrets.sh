#!/usr/bin/env bash
# Makes the secrets of compose.yaml that are not there yet, in deploy/compose/secrets (which git ignores). The server key seals what the ledger
# keeps secret: keep a copy of it where the database's backups are not.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
random() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
for name in server.key postgres holdoutd grafana; do
	[ -e "secrets/$name" ] || random >"secrets/$name"
done
printf 'postgres:5432:holdoutd:holdoutd:%s\n' "$(cat secrets/holdoutd)" >secrets/pgpass
# Prometheus reads what an admin may read: made once the servers run, with holdoutd key create metrics --scope admin.
[ -e secrets/metrics.key ] || echo "not made yet" >secrets/metrics.key
# Containers read them as their own users, who are not you: files of a directory that only you can enter.
chmod 0444 secrets/*
