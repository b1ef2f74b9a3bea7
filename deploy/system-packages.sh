#!/usr/bin/env bash
# Install the programs that the tests and the demo use beside Python: mosquitto, nats-server, rabbitmq-server, openssl, Java,
# ActiveMQ, Chromium with its driver, Spin with a C compiler for the model of the lease, and shells
# mandoc for completion and the man page, and debootstrap for a RabbitMQ 4.
# Missing packages are installed by root on Debian or Ubuntu, and only listed elsewhere.
set -euo pipefail

missing=()
[ -x /usr/sbin/mosquitto ] || command -v mosquitto >/dev/null || missing+=(mosquitto)
command -v mosquitto_pub >/dev/null || missing+=(mosquitto-clients)
command -v nats-server >/dev/null || missing+=(nats-server)
command -v rabbitmq-server >/dev/null || [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
command -v openssl >/dev/null || missing+=(openssl)
command -v java >/dev/null || missing+=(default-jre-headless)
[ -e /usr/share/java/activemq-broker.jar ] || missing+=(activemq libmqtt-client-java)
command -v chromedriver >/dev/null || missing+=(chromium chromium-driver)
command -v spin >/dev/null || missing+=(spin)
command -v debootstrap >/dev/null || missing+=(debootstrap)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v zsh >/dev/null || missing+=(zsh)
command -v fish >/dev/null || missing+=(fish)
command -v mandoc >/dev/null || missing+=(mandoc)
"${PYTHON:-python3}" -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)

[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  policy=/usr/sbin/policy-rc.d  # no package starts its service: tests start what they need
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "not installed: ${missing[*]}; without them some tests are skipped, and the demo includes fewer systems" >&2
  echo "to install them: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
fi
