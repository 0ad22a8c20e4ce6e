#!/bin/sh
# Installs the external programs that the tests and comparisons need, if they are missing: sysbench, the mysql
# client, MariaDB for comparison, valgrind, strace and openssl. The MariaDB package is the one without a service,
# so nothing is started now or at boot: the tests run the server themselves, in temporary directories and on
# free ports.
#
#   sh tests/install-tools.sh
#   sh tests/install-tools.sh clients     what the tests of clients in other languages need, too
#   sh tests/install-tools.sh suite       MariaDB's storage_engine suite, too
#   sh tests/install-tools.sh cluster     the clusters that cluster-cost compares, too: Galera, and Java for Ignite
set -eu

missing=
need() { # program package
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}
need sysbench sysbench
need mysql mariadb-client-core
need mariadb-dump mariadb-client
need mariadbd mariadb-server-core
need valgrind valgrind
need strace strace
need cc gcc
need setpriv util-linux
need nsenter util-linux
need ip iproute2
need openssl openssl
[ -e /usr/share/zoneinfo/Europe/Berlin ] || missing="$missing tzdata"
python3 -c "import ensurepip" 2>/dev/null || missing="$missing python3-venv"
if [ "${1:-}" = clients ]; then
    need node nodejs
    need npm npm
    need javac default-jdk-headless
    need mvn maven
    # mysqlclient is compiled.
    need pkg-config pkg-config
    pkg-config --exists libmariadb 2>/dev/null || missing="$missing libmariadb-dev"
    headers=$(python3 -c "import sysconfig; print(sysconfig.get_path('include'))")
    [ -e "$headers/Python.h" ] || missing="$missing python3-dev"
fi
target=${CARGO_TARGET_DIR:-$(dirname "$0")/../target}
# The script that copies the data of a node of Galera comes with the server and its service, so the package is
# unpacked, not installed.
galera=
if [ "${1:-}" = cluster ]; then
    [ -e /usr/lib/galera/libgalera_smm.so ] || missing="$missing galera-4"
    need garbd galera-arbitrator-4
    need rsync rsync
    need javac default-jdk-headless
    need mvn maven
    galera=$target/galera
    if command -v wsrep_sst_rsync >/dev/null 2>&1 || [ -x "$galera/usr/bin/wsrep_sst_rsync" ]; then
        galera=
    fi
fi

# The packages of the suite depend on the server with its service, so they are unpacked, not installed.
suite=
if [ "${1:-}" = suite ]; then
    suite=$target/mariadb-test
    ldconfig -p | grep -q libpcre2-posix.so.3 || missing="$missing libpcre2-posix3"
    [ ! -x "$suite/usr/bin/mariadb-test" ] || suite=
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "cargo is missing: install Rust from https://rustup.rs" >&2
    exit 1
fi
[ -n "$missing$suite$galera" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "missing:$missing; install these packages, or run this as root on Debian 12" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# $missing is a list of words. gcc also needs the headers of the C library.
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing libc6-dev
unpack() { # folder, packages
    folder=$1
    shift
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    downloads=$(mktemp -d)
    (cd "$downloads" && apt-get download -q "$@")
    for package in "$downloads"/*.deb; do
        dpkg-deb --extract "$package" "$folder"
    done
    rm -rf "$downloads"
}
[ -z "$suite" ] || unpack "$suite" mariadb-test mariadb-test-data
[ -z "$galera" ] || unpack "$galera" mariadb-server
