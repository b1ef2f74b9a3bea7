#!/usr/bin/env bash
# Install what the tests and the demo use beside Python: mosquitto, openssl, Java, ActiveMQ,
# Chromium with its driver.
# As root on Debian or Ubuntu it installs what is missing; elsewhere it says what is missing.
set -euo pipefail

missing=()
[ -x /usr/sbin/mosquitto ] || command -v mosquitto >/dev/null || missing+=(mosquitto)
command -v openssl >/dev/null || missing+=(openssl)
command -v java >/dev/null || missing+=(default-jre-headless)
[ -e /usr/share/java/activemq-broker.jar ] || missing+=(activemq libmqtt-client-java)
command -v chromedriver >/dev/null || missing+=(chromium chromium-driver)
"${PYTHON:-python3}" -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)

[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "not installed: ${missing[*]}; without them some tests are skipped and the demo runs shorter" >&2
  echo "to have them: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
fi
