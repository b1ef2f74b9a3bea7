#!/usr/bin/env bash
# Pin the packages of the images with hashes: `make lock`, after a change of pyproject.toml or
# constraints.txt. The versions are those of constraints.txt, which the tests use.
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

compile slim solace nats rabbitmq kafka otel
compile jvm solace nats rabbitmq kafka otel jms
compile spark solace nats rabbitmq kafka otel jms reconcile
{
  echo "# build tools for the wheels of the gateway, of NumPy and PySpark; pinned by \`make lock\`; do not edit"
  uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 \
    --python-platform linux - <<<$'hatchling>=1.25\nsetuptools>=77\ncython>=3.0.6\nmeson-python>=0.18\nninja\npip>=25'
} >deploy/lock/build.txt
