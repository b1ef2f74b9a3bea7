#!/usr/bin/env bash
# Pin what the images install, with hashes: `make lock`, after a change of pyproject.toml or
# constraints.txt. Versions are those of constraints.txt, which the tests ran with.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() { # NAME EXTRA...
  local name=$1 extras=("${@:2}")
  {
    echo "# gateway[$(IFS=,; echo "${extras[*]}")], pinned by \`make lock\`; do not edit"
    uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 \
      --python-platform linux --constraint constraints.txt \
      "${extras[@]/#/--extra=}" pyproject.toml
  } >"deploy/lock/$name.txt"
}

compile slim solace otel
compile jvm solace otel jms
compile spark solace otel jms reconcile
{
  echo "# what builds the wheel of the gateway, and PySpark's; pinned by \`make lock\`; do not edit"
  uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 \
    --python-platform linux - <<<$'hatchling>=1.25\nsetuptools>=77'
} >deploy/lock/build.txt
