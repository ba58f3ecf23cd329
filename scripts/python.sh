#!/usr/bin/env bash
# Makes .venv with the packages of requirements.txt in the versions of constraints.txt, once for each version of these lists, and prints the path of
# its interpreter. Installs Python itself where it is missing and the machine lets us (apt, as root).
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$PWD/.venv
stamp=$venv/$(cat scripts/requirements.txt scripts/constraints.txt | sha256sum | cut -c1-16)

if [ ! -e "$stamp" ]; then
	if ! python3 -c 'import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
			echo "python.sh: the tests need Python 3.11 or newer with the venv module; install python3 and python3-venv" >&2
			exit 1
		fi
		{ apt-get update -q && apt-get install -qy --no-install-recommends python3 python3-venv; } >&2
	fi
	rm -rf "$venv"
	python3 -m venv "$venv" >&2
	packages=(-r scripts/requirements.txt -c scripts/constraints.txt)
	# uv takes a third of pip's time, and has no build for some machines.
	{ "$venv/bin/pip" install --quiet --disable-pip-version-check uv==0.9.18 &&
		"$venv/bin/uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" "${packages[@]}"; } >&2 ||
		"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}" >&2
	# LightGBM loads the compiler's OpenMP library, which a slim image has not.
	if ! "$venv/bin/python" -c 'import lightgbm' 2>/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		{ apt-get update -q && apt-get install -qy --no-install-recommends libgomp1; } >&2
	fi
	touch "$stamp"
fi
echo "$venv/bin/python"
