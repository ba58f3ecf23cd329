#!/usr/bin/env bash
# Makes everything that is generated anew, what others are made from first: the OpenAPI document and the tables of the pages, the clients of
# Go and Python, the dashboard's types and forms, the pages of docs, the numbers of docs/examples, and the dashboard as it is built. make generate
# calls it. HOLDOUTD_PYTHON and HOLDOUTD_NODE are what scripts/python.sh and scripts/web.sh print.
set -euo pipefail
cd "$(dirname "$0")/.."

make() { # PACKAGE TESTS
	echo "generate: $1"
	"${GO:-go}" test -vet=off -count=1 -tags "${TAGS:?}" "$1" -run "^($2)\$" -update
}
make ./internal/api 'TestDocument|TestDocumentOfTools|TestDocumentedParameters'
make ./internal/clientgen 'TestTypesAreGenerated|TestPythonIsGenerated|TestTypeScriptIsGenerated'
make ./queries TestReference
make ./thresholdout TestPage
make ./thresholdout/compare 'TestPage|TestChoosing'
make ./cmd/holdoutd TestCommandsPage
PATH=${HOLDOUTD_NODE:?}:$PATH npm --prefix web run build --silent
make ./tests 'TestMomentsAgainstNumPy|TestDecisionsAgainstSciPy|TestModelsAgainstScikitLearn'
git status --short
