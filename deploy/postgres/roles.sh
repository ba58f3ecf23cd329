#!/bin/sh
# Runs once, when the database is made. The role holdoutd, which servers have, owns nothing: holdoutd ledger prepare gives it what servers need.
set -eu
export SECRETS="${SECRETS:-/run/secrets}"
psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set owner `cat "$SECRETS/owner-password"`
\set servers `cat "$SECRETS/servers-password"`
CREATE ROLE owner LOGIN PASSWORD :'owner';
CREATE ROLE holdoutd LOGIN PASSWORD :'servers';
CREATE DATABASE budgets OWNER owner;
REVOKE ALL ON DATABASE budgets FROM PUBLIC;
GRANT CONNECT ON DATABASE budgets TO holdoutd;
SQL
