#!/bin/sh
# Makes the passwords of compose.yaml, once, in a folder that you alone can enter. Containers read the files as users of their own.
set -eu
cd "$(dirname "$0")"
umask 022
mkdir -m 0700 secrets || { echo "the folder secrets is there: a database keeps the passwords that it was made with" >&2; exit 1; }
password() { od -An -tx1 -N24 /dev/urandom | tr -d ' \n'; }
for name in postgres-password owner-password servers-password grafana-password metrics; do
	password >"secrets/$name"
done
# One machine, and a network that only the database and its servers are in: sslmode=verify-full is for every other.
printf 'postgres://owner:%s@db:5432/budgets?sslmode=disable\n' "$(cat secrets/owner-password)" >secrets/owner-ledger
printf 'postgres://holdoutd:%s@db:5432/budgets?sslmode=disable\n' "$(cat secrets/servers-password)" >secrets/ledger
