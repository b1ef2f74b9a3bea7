#!/usr/bin/env bash
# Makes a base image from Debian's packages, where no registry of images can be reached; as root:
#   deploy/base-image.sh NAME [SUITE]       and then: make images BASE=NAME
#   SUITE     of Debian (bookworm)
#   MIRROR    of the packages, as for debian-root.sh
#   PIP_CERT  file of the authorities that sign the package index, if they are not public ones
#   DOCKER    client (docker)
set -euo pipefail
name=${1:?the name of the image} suite=${2:-bookworm}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
"$(dirname "$0")/debian-root.sh" "$suite" "$root"

# As in the published slim images: no manuals, and of the documents only the licences.
cat >"$root/etc/dpkg/dpkg.cfg.d/slim" <<'CONFIG'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
CONFIG
find "$root/usr/share/doc" -type f ! -name copyright -delete
rm -rf "$root"/usr/share/{info,locale,man}/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* \
  "$root"/var/log/*
if [ -n "${PIP_CERT:-}" ]; then
  install -D -m 0644 "$PIP_CERT" "$root/etc/ssl/package-index.pem"
  printf '[global]\ncert = /etc/ssl/package-index.pem\n' >"$root/etc/pip.conf"
fi
tar -C "$root" -c . | "${DOCKER:-docker}" import - "$name" >/dev/null
