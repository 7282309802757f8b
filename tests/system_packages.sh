#!/bin/sh
# Installs the Debian packages that some tests need: a browser, jq, a virtual display; with the argument arm, what builds
# and runs the engine for ARM.
# Only as root and with apt; elsewhere those tests are skipped and say what to install. A package that can't be
# installed does not stop the others.
missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need chromium chromium
need chromedriver chromium-driver
need jq jq
need Xvfb xvfb
[ "${1:-}" != arm ] || [ "$(uname -m)" = aarch64 ] || { need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu; need qemu-aarch64-static qemu-user-static; }

[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "[setup] some tests will be skipped; as root on Debian: apt-get install$missing"
    exit 0
fi
echo "[setup] installing packages for the tests:$missing"
apt-get update -qq || true
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
# shellcheck disable=SC2086
install $missing 2>/dev/null || for package in $missing; do
    install "$package" || echo "[setup] $package could not be installed: tests that need it are skipped"
done
