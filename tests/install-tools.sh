#!/bin/sh
# Installs what the tests and comparisons use from outside the project, where it is missing: sysbench, the mysql client,
# MariaDB as a yardstick, valgrind. Of MariaDB the package without a service is taken, so that installing it starts nothing,
# now or later: the tests run the server by themselves, in temporary folders and on free ports.
#
#   sh tests/install-tools.sh
set -eu

missing=
need() { # program package
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}
need sysbench sysbench
need mysql mariadb-client-core
need mariadbd mariadb-server-core
need valgrind valgrind
need cc gcc
need setpriv util-linux

if ! command -v cargo >/dev/null 2>&1; then
    echo "cargo is missing: install Rust from https://rustup.rs" >&2
    exit 1
fi
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "missing:$missing; install these packages, or run this as root on Debian 12" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# The list is words. gcc needs the headers of the C library beside it.
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing libc6-dev
