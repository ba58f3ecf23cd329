#!/usr/bin/env bash
# Questions over rows in ClickHouse 18.16, beside SQL that was written by hand, in turns in one run: 10 aggregates over ROWS rows (default: 30 million), a tenth and a hundredth of them, and 100 over the latter.
# Then a table of ROWS rows and ten columns is taken from there into a file. The medians of RUNS runs (default: 3), and the bytes of statements and answers. 30 million rows need 1 GB below TMPDIR. HOLDOUTD_ENGINES as scripts/engines.sh prints it; without it the script is run.
set -euo pipefail
cd "$(dirname "$0")/.."
export HOLDOUTD_ENGINES=${HOLDOUTD_ENGINES:-$(scripts/engines.sh clickhouse18)} HOLDOUTD_ROWS=${ROWS:-30000000} HOLDOUTD_RUNS=${RUNS:-3}
uptime
${GO:-go} test -tags nomsgpack,engines -run '^$' -bench 'BenchmarkBesideSQL$|BenchmarkTableOfAnEngine$' -benchtime 1x -timeout 3h ./queries/engine/remote
uptime
