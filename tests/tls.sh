#!/bin/sh
# A real client with TLS: versions, certificates on both ends, required transport, certificates read again.
#
#   sh tests/tls.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
folder=$(mktemp -d)
process=
stop() {
    [ -z "$process" ] || kill "$process" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$(dirname "$0")/server.sh"

client() { # options
    mysql --no-defaults --host=127.0.0.1 --port="$port" --user=root --batch --skip-column-names "$@" 2>&1
}

expect() { # what, expected, then a command
    what=$1
    expected=$2
    shift 2
    seen=$("$@") || true
    case $seen in
    $expected) ;;
    *) fail "$what: expected $expected, but the answer is: $seen" ;;
    esac
}

version="SHOW STATUS LIKE 'Ssl_version'"
start data
tls=$folder/data/tls
trusting="--ssl --ssl-ca=$tls/ca.pem --ssl-verify-server-cert"
# The client of an older MariaDB writes an empty value without TLS.
expect "no TLS" "Ssl_version	" client --skip-ssl -e "$version"
expect "TLS 1.3" "Ssl_version	TLSv1.3" client $trusting --tls-version=TLSv1.3 -e "$version"
expect "TLS 1.2" "Ssl_version	TLSv1.2" client $trusting --tls-version=TLSv1.2 -e "$version"
expect "TLS 1.1" "*ERROR 20*" client $trusting --tls-version=TLSv1.1 -e "$version"
expect "a certificate of the client" "1" \
    client $trusting --ssl-cert="$tls/client-cert.pem" --ssl-key="$tls/client-key.pem" -e "SELECT 1"
name() { # which of the two
    openssl x509 -in "$tls/client-cert.pem" -noout "$1" -nameopt compat | sed 's/^[a-z]* *= *//'
}
expect "accounts" "" client $trusting -e "CREATE USER owner@localhost REQUIRE SUBJECT '$(name -subject)' AND ISSUER '$(name -issuer)';
    CREATE USER stranger@localhost REQUIRE SUBJECT '/CN=stranger'"
owning="--ssl-cert=$tls/client-cert.pem --ssl-key=$tls/client-key.pem"
expect "the owner's certificate" "owner@localhost" client $trusting $owning --user=owner -e "SELECT CURRENT_USER()"
expect "the certificate of somebody else" "*ERROR 1045*" client $trusting $owning --user=stranger -e "SELECT 1"
expect "no certificate" "*ERROR 1045*" client $trusting --user=owner -e "SELECT 1"
expect "no certificate and no TLS" "*ERROR 1045*" client --skip-ssl --user=owner -e "SELECT 1"
expect "what the account demands" "*REQUIRE SUBJECT '$(name -subject)' ISSUER '$(name -issuer)'*" \
    client $trusting -e "SHOW CREATE USER owner@localhost"
start_of_rows="SELECT REPEAT('x', 1000000), REPEAT('y', 1000000)"
expect "rows of several records" "2000001" sh -c "mysql --no-defaults --host=127.0.0.1 --port=$port --user=root \
    --batch --skip-column-names $trusting -e \"$start_of_rows\" | tr -d '\\n' | wc -c"

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stranger -keyout "$folder/stranger-key.pem" \
    -out "$folder/stranger.pem" 2>/dev/null
expect "a foreign authority" "*ERROR 2026*" client --ssl --ssl-ca="$folder/stranger.pem" --ssl-verify-server-cert -e "SELECT 1"
expect "a foreign client" "*ERROR 20*" \
    client $trusting --ssl-cert="$folder/stranger.pem" --ssl-key="$folder/stranger-key.pem" -e "SELECT 1"

expect "required" "" client $trusting -e "SET GLOBAL require_secure_transport = ON"
expect "without TLS" "*ERROR 3159*" client --skip-ssl -e "SELECT 1"
expect "with TLS" "1" client $trusting -e "SELECT 1"
expect "not required" "" client $trusting -e "SET GLOBAL require_secure_transport = OFF"

cp "$tls/server-cert.pem" "$folder/good.pem"
echo damaged >"$tls/server-cert.pem"
expect "damaged files" "*ERROR 3888*" client --skip-ssl -e "ALTER INSTANCE RELOAD TLS"
expect "the certificates of before" "1" client $trusting -e "SELECT 1"
cp "$folder/good.pem" "$tls/server-cert.pem"
cp "$folder/stranger-key.pem" "$tls/server-key.pem"
cp "$folder/stranger.pem" "$tls/server-cert.pem"
expect "new files" "" client --skip-ssl -e "ALTER INSTANCE RELOAD TLS"
expect "the old authority" "*ERROR 2026*" client $trusting -e "SELECT 1"
expect "the new certificate" "1" client --ssl --ssl-ca="$folder/stranger.pem" -e "SELECT 1"
echo "tls: as expected"
