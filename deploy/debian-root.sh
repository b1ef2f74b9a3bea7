#!/usr/bin/env bash
# Makes a folder with the Debian of a suite, of its packages; as root:
#   deploy/debian-root.sh SUITE FOLDER [PACKAGE...]      an older FOLDER is replaced
#   MIRROR    of the packages (the machine's own; http://deb.debian.org/debian where it is no Debian)
set -euo pipefail
suite=${1:?the suite, for example trixie} folder=${2:?the folder}
shift 2
own() {
  command -v apt-get >/dev/null || return 0
  apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}
mirror=${MIRROR:-$(own)} packages=$*
options=(--variant=minbase)
[ -z "$packages" ] || options+=("--include=${packages// /,}")

# The folder is whole or old: it gets its name at the end.
rm -rf "$folder.part"
mkdir -p "$(dirname "$folder")"
log=$(mktemp)
trap 'rm -rf "$log" "$folder.part"' EXIT
# Its own mount namespace: an interrupted run leaves no /proc mounted below the folder.
unshare --mount debootstrap "${options[@]}" "$suite" "$folder.part" \
  "${mirror:-http://deb.debian.org/debian}" >"$log" 2>&1 || {
  tail "$log" >&2
  exit 1
}
rm -rf "$folder.part"/var/cache/apt/archives/*.deb "$folder"
touch "$folder.part"
mv "$folder.part" "$folder"
