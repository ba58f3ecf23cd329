#!/usr/bin/env bash
# Runs once, when the database is made: a role of its own for holdoutd, which owns its database and nothing else. docs/OPERATIONS.md says how a
# role that can change nothing serves the ledger, where another one migrates it.
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --set password="$(cat /run/secrets/holdoutd_password)" <<'SQL'
CREATE ROLE holdoutd LOGIN PASSWORD :'password';
CREATE DATABASE holdoutd OWNER holdoutd ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
REVOKE ALL ON DATABASE holdoutd FROM PUBLIC;
SQL
