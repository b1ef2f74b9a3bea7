#!/usr/bin/env bash
# Makes .servers/SUITE, the root of the servers of a Debian suite (tests/brokers/servers.py); as root:
#   tests/brokers/server-root.sh SUITE
# It is kept; that of sid, which moves daily, is made again after a day.
set -euo pipefail
suite=${1:?the suite, for example trixie}
cd "$(dirname "$0")/../.."
root=.servers/$suite
old=$(find "$root" -maxdepth 0 -mmin +1440 2>/dev/null || true)
if [ -d "$root" ] && { [ "$suite" != sid ] || [ -z "$old" ]; }; then exit 0; fi

if ! command -v debootstrap >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "$root is not made: that needs root and debootstrap; without it the tests of its servers are skipped" >&2
  exit 0
fi
deploy/debian-root.sh "$suite" "$root" mosquitto nats-server rabbitmq-server
