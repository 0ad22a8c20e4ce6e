#!/bin/sh
# Installs what the tests and comparisons use from outside the project, where it is missing: sysbench, the mysql client,
# MariaDB as a yardstick, valgrind. MariaDB's packaged service is never started: the tests run the server by themselves, in
# temporary folders and on free ports.
#
#   sh tests/install-tools.sh
set -eu

missing=
need() { # program package
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}
need sysbench sysbench
need mysql mariadb-client
need mariadbd mariadb-server
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

# While packages are installed nothing may start a service; later nothing shall start MariaDB when the machine starts.
policy=/usr/sbin/policy-rc.d
made_policy=
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    made_policy=yes
fi
remove_policy() { [ -z "$made_policy" ] || rm -f "$policy"; }
trap remove_policy EXIT
case "$missing" in
*mariadb-server*)
    if [ -d /etc/systemd/system ] && [ ! -e /etc/systemd/system/mariadb.service ]; then
        ln -s /dev/null /etc/systemd/system/mariadb.service
        echo "mariadb.service is masked; remove /etc/systemd/system/mariadb.service to use it" >&2
    fi
    ;;
esac

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# The list is words.
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing
