#!/usr/bin/env bash
# Extract Debian's prometheus and promtool into a folder, for the tests of alerts and scrapes.
# Installing the package would start a service. Without the programs these tests are skipped.
set -euo pipefail

folder=$(realpath "$1")
if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
  exit 0
fi
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
cd "$download"
if apt-get download -qq prometheus 2>/dev/null; then
  dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x -C "$folder" --strip-components=3 \
    ./usr/bin/prometheus ./usr/bin/promtool
else
  echo "prometheus and promtool are not available; the tests of alerts are skipped" >&2
fi
