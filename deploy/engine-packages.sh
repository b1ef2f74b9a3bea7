#!/usr/bin/env bash
# Install what `make test-images` uses beside the packages of system-packages.sh: a Docker engine with
# its networks, Compose, and debootstrap for a base image where no registry is reached.
set -euo pipefail

missing=()
command -v docker >/dev/null || missing+=(docker.io)
command -v dockerd >/dev/null || docker version >/dev/null 2>&1 || missing+=(docker.io)
command -v iptables >/dev/null || missing+=(iptables)
docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || missing+=(docker-compose)
command -v debootstrap >/dev/null || missing+=(debootstrap)

[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "not installed: ${missing[*]}; without them the tests of the images are skipped" >&2
fi
