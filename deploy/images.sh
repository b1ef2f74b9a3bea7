#!/usr/bin/env bash
# Builds the images and prints their sizes: `make images`, or `deploy/images.sh slim` for some of them.
#   BASE    base image (debian:bookworm-slim); deploy/base-image.sh makes one without a registry
#   DOCKER  client (docker)
set -euo pipefail
cd "$(dirname "$0")/.."
base=${BASE:-debian:bookworm-slim} docker=${DOCKER:-docker}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' gateway/__init__.py)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[ $# -gt 0 ] || set -- slim jvm spark

# BuildKit is a plug-in of newer clients and a part of older ones; the builder without it works too.
if [ -z "${DOCKER_BUILDKIT:-}" ] && ! "$docker" buildx version >/dev/null 2>&1; then
  major=$("$docker" version --format '{{.Client.Version}}' | cut -d. -f1)
  export DOCKER_BUILDKIT=$((major < 23))
fi

for target in "$@"; do
  "$docker" build --quiet --file deploy/Dockerfile --build-arg "BASE=$base" --target "$target" \
    --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
    --tag "gateway:$target" . >/dev/null
done

size() { "$docker" image inspect --format '{{.Size}}' "$1"; }
printf '%-16s %8s %10s\n' image size "over $base"
for target in "$@"; do
  whole=$(size "gateway:$target")
  printf '%-16s %5d MB %7d MB\n' "gateway:$target" $((whole / 1000000)) \
    $(((whole - $(size "$base")) / 1000000))
done
