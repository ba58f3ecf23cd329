#!/usr/bin/env bash
# Puts the SQL engines of the tests with the tag "engines" into .engines, once for each version of them, and prints that folder, for HOLDOUTD_ENGINES:
#   clickhouse-18   ClickHouse 18.16, Debian's: a real server, of which a test starts a cluster        16 MB to download, 110 MB there
#   chdb            the current ClickHouse as a library for Node, from npm                            200 MB, 550 MB
#   trino           Trino 476 from Maven Central, with few of its plugins                             821 MB, 400 MB
# Names of engines as arguments: those alone. It needs apt-get (Debian), npm and node, mvn and a JDK 24 or newer for Trino: HOLDOUTD_JAVA names its folder
# where it is not in /usr/lib/jvm. Nothing is started, and nothing is installed outside of the folder but what these commands cache.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${HOLDOUTD_ENGINES:-$PWD/.engines}
mkdir -p "$folder"

needs() { # COMMAND WHY
	command -v "$1" >/dev/null || { echo "engines.sh: $2 needs the command $1; install it" >&2; exit 1; }
}

# fresh NAME VERSION: an empty folder to fill, unless that version is there. done NAME VERSION: it is complete.
fresh() {
	[ ! -e "$folder/$1/is-$2" ] || return 1
	rm -rf "${folder:?}/$1" && mkdir -p "$folder/$1"
}
complete() { touch "$folder/$1/is-$2"; }

clickhouse18() {
	fresh clickhouse-18 1 || return 0
	needs apt-get "ClickHouse 18.16"
	needs dpkg-deb "ClickHouse 18.16"
	mkdir "$folder/clickhouse-18/debs"
	(
		cd "$folder/clickhouse-18/debs"
		packages=(clickhouse-server clickhouse-common clickhouse-client libcapnp-0.9.2 libcctz2 libcpuinfo0 libdouble-conversion3 libfarmhash0 libjemalloc2
			libmariadb3 libmetrohash1 libpcre3 libpocofoundation80 libpocodata80 libltdl7 libodbc2 libpocodataodbc80 libpoconet80 libpocomongodb80
			libpococrypto80 libpocojson80 libpocoxml80 libpocoutil80 libpoconetssl80 librdkafka1 libre2-9)
		apt-get download -qq "${packages[@]}" 2>/dev/null || { [ "$(id -u)" != 0 ] || apt-get update -q && apt-get download -qq "${packages[@]}"; }
		for deb in *.deb; do dpkg-deb -x "$deb" ../root; done
	) >&2
	rm -r "$folder/clickhouse-18/debs"
	complete clickhouse-18 1
}

chdb() {
	fresh chdb 3.4.0 || return 0
	needs npm chdb
	needs node chdb
	echo '{"private":true}' >"$folder/chdb/package.json"
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder/chdb" chdb@3.4.0 >&2
	complete chdb 3.4.0
}

trino() {
	fresh trino 476 || return 0
	needs mvn Trino
	(
		mvn -q dependency:copy -Dartifact=io.trino:trino-server:476:tar.gz -DoutputDirectory="$folder/trino/archive"
		# Of 54 plugins, those that a test has a use for.
		tar xzf "$folder/trino/archive/trino-server-476.tar.gz" -C "$folder/trino" --strip-components=1 --exclude='*/plugin/[a-ln-z]*' --exclude='*/plugin/m[a-df-z]*'
		rm -r "$folder/trino/archive"
	) >&2
	complete trino 476
}

[ $# -gt 0 ] || set -- clickhouse18 chdb trino
for engine; do
	case $engine in
	clickhouse18 | chdb | trino) "$engine" ;;
	*) echo "engines.sh: no engine $engine; there are clickhouse18, chdb and trino" >&2; exit 1 ;;
	esac
done
echo "$folder"
