package main

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/user"

	"github.com/go-sql-driver/mysql"
)

// Logins by every method over TCP, TLS and the Unix socket, the modes of TLS, and refusals. The folder has the
// server's socket and its folder `tls`. SSL_CERT_FILE names the server's authority, for the mode `true`.

const password = "a pass, word"

type place struct{ address, folder, addressWithoutTLS string }

// The second value of the row of a statement over a new connection.
func one(config *mysql.Config, text string) (string, error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var name, value string
	err = db.QueryRow(text).Scan(&name, &value)
	return value, err
}

func (p place) config(way, name, word string) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd = name, word
	config.Net, config.Addr = "tcp", p.address
	switch way {
	case "tcp":
	case "socket":
		config.Net, config.Addr = "unix", p.folder+"/mysql.sock"
	default:
		config.TLSConfig = way
	}
	return config
}

func (p place) administrator(texts ...string) {
	config := p.config("socket", "root", "")
	connector, err := mysql.NewConnector(config)
	must(err)
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, text := range texts {
		_, err := db.Exec(text)
		must(err)
	}
}

// A new account, whose password the server has not seen yet.
func (p place) account(method, conditions string) {
	p.administrator("DROP USER IF EXISTS client_go",
		fmt.Sprintf("CREATE USER client_go IDENTIFIED WITH %s BY '%s' %s", method, password, conditions))
}

func admitted(config *mysql.Config, isEncrypted bool) {
	value, err := one(config, "SELECT 1, CURRENT_USER()")
	must(err)
	expect("user", value, config.User+"@%")
	version, err := one(config, "SHOW STATUS LIKE 'Ssl_version'")
	must(err)
	expect("TLS", version != "", isEncrypted)
}

// The login fails with this error of the server, or with an error of the client (0).
func refused(number uint16, config *mysql.Config) {
	_, err := one(config, "SELECT 1, 2")
	var problem *mysql.MySQLError
	isFromServer := errors.As(err, &problem)
	if err == nil || (number != 0 && (!isFromServer || problem.Number != number)) || (number == 0 && isFromServer) {
		panic(fmt.Sprintf("%s %s: got %v, wanted error %d", config.TLSConfig, config.Addr, err, number))
	}
}

func (p place) methods() {
	for _, way := range []string{"tcp", "skip-verify", "authority", "socket"} {
		right, wrong := p.config(way, "client_go", password), p.config(way, "client_go", password+"?")
		isEncrypted := way != "tcp" && way != "socket"
		// The first login with caching_sha2_password sends the password, the second proves that the client has it.
		for _, method := range []string{"mysql_native_password", "caching_sha2_password"} {
			p.account(method, "")
			refused(1045, wrong)
			admitted(right, isEncrypted)
			admitted(right, isEncrypted)
			refused(1045, wrong)
			refused(1045, p.config(way, "client_go", ""))
			refused(1045, p.config(way, "nobody_go", password))
		}
	}
	system, err := user.Current()
	must(err)
	p.administrator("DROP USER client_go", fmt.Sprintf("CREATE USER client_go IDENTIFIED WITH auth_socket AS '%s'", system.Username))
	admitted(p.config("socket", "client_go", ""), false)
	refused(1045, p.config("tcp", "client_go", ""))
	refused(1045, p.config("authority", "client_go", ""))
	p.administrator(fmt.Sprintf("ALTER USER client_go IDENTIFIED WITH auth_socket AS 'nobody_%s'", system.Username))
	refused(1045, p.config("socket", "client_go", ""))
}

// A login that sends the password needs the server's RSA key; one that proves it does not.
func (p place) wrongKey() {
	for name, path := range map[string]string{"right": p.folder + "/tls/public_key.pem", "foreign": p.folder + "/foreign-public.pem"} {
		text, err := os.ReadFile(path)
		must(err)
		block, _ := pem.Decode(text)
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		must(err)
		mysql.RegisterServerPubKey(name, key.(*rsa.PublicKey))
	}
	right, foreign := p.config("tcp", "client_go", password), p.config("tcp", "client_go", password)
	right.ServerPubKey, foreign.ServerPubKey = "right", "foreign"
	p.account("caching_sha2_password", "")
	refused(1045, foreign)
	admitted(right, false)
	admitted(foreign, false)
}

func (p place) register(name string, certificate string, change func(*tls.Config)) {
	authorities := x509.NewCertPool()
	text, err := os.ReadFile(p.folder + "/tls/ca.pem")
	must(err)
	expect("authority", authorities.AppendCertsFromPEM(text), true)
	config := &tls.Config{RootCAs: authorities, ServerName: "localhost"}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate+".pem", certificate+"-key.pem")
		if err != nil {
			pair, err = tls.LoadX509KeyPair(certificate+"-cert.pem", certificate+"-key.pem")
		}
		must(err)
		// Shown even if the server does not name its authority.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	if change != nil {
		change(config)
	}
	must(mysql.RegisterTLSConfig(name, config))
}

func (p place) tlsModes() {
	p.account("caching_sha2_password", "")
	modes := []string{"true", "skip-verify", "preferred", "authority", "certificate", "tls12", "tls13"}
	for _, mode := range modes {
		admitted(p.config(mode, "client_go", password), true)
	}
	admitted(p.config("false", "client_go", password), false)
	for _, mode := range []string{"no-authority", "other-name", "stranger"} {
		refused(0, p.config(mode, "client_go", password))
	}
	p.account("caching_sha2_password", "REQUIRE SSL")
	refused(1045, p.config("false", "client_go", password))
	admitted(p.config("preferred", "client_go", password), true)
	p.account("caching_sha2_password", "REQUIRE X509")
	refused(1045, p.config("authority", "client_go", password))
	admitted(p.config("certificate", "client_go", password), true)

	p.account("caching_sha2_password", "")
	p.administrator("SET GLOBAL require_secure_transport = ON")
	defer p.administrator("SET GLOBAL require_secure_transport = OFF")
	refused(3159, p.config("tcp", "client_go", password))
	admitted(p.config("skip-verify", "client_go", password), true)
	admitted(p.config("socket", "client_go", password), false)
}

// A server without TLS: the mode `preferred` goes on, the others do not.
func (p place) withoutTLS() {
	plain := place{address: p.addressWithoutTLS}
	for _, mode := range []string{"false", "preferred"} {
		_, err := one(plain.config(mode, "root", ""), "SELECT 1, 2")
		must(err)
	}
	for _, mode := range []string{"true", "skip-verify", "authority"} {
		_, err := one(plain.config(mode, "root", ""), "SELECT 1, 2")
		expect(mode, errors.Is(err, mysql.ErrNoTLS), true)
	}
}

func logins(port, folder, portWithoutTLS string) {
	must(mysql.SetLogger(log.New(io.Discard, "", 0)))
	p := place{"127.0.0.1:" + port, folder, "127.0.0.1:" + portWithoutTLS}
	p.register("authority", "", nil)
	p.register("certificate", folder+"/tls/client", nil)
	p.register("stranger", folder+"/foreign", nil)
	p.register("no-authority", "", func(config *tls.Config) { config.RootCAs = x509.NewCertPool() })
	p.register("other-name", "", func(config *tls.Config) { config.ServerName = "other" })
	p.register("tls12", "", func(config *tls.Config) { config.MaxVersion = tls.VersionTLS12 })
	p.register("tls13", "", func(config *tls.Config) { config.MinVersion = tls.VersionTLS13 })
	p.methods()
	p.wrongKey()
	p.tlsModes()
	p.withoutTLS()
	p.administrator("DROP USER client_go")
	fmt.Println("go: logins as expected")
}
