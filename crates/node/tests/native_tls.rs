//! TLS of the native protocol, and the logins that need it, with the Rust driver.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use junctor_client::{Connection, Options, Result, Tls, Verification, block_on, params};
use junctor_node::{NodeConfig, RunningServer, start};

/// A node with a data folder, and thus with certificates, and its folder.
struct Node {
    server: Option<RunningServer>,
    folder: PathBuf,
}

impl Node {
    fn new(change: impl FnOnce(&mut NodeConfig)) -> Node {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("junctor-native-tls-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let mut config = NodeConfig {
            data_directory: folder.to_string_lossy().into_owned(),
            is_durable: true,
            port: 0,
            native_port: Some(0),
            cpu_binding: false,
            cpu_count_max: Some(2),
            total_memory_bytes: Some(64 << 20),
            ..NodeConfig::default()
        };
        change(&mut config);
        Node { server: Some(start(&config).expect("the node starts")), folder }
    }

    fn address(&self) -> SocketAddr {
        self.server.as_ref().and_then(RunningServer::native_address).expect("it listens")
    }

    fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join("tls").join(name)).expect("the node has made it")
    }

    /// Trusts the node's own authority, and demands the certificate of this machine.
    fn tls(&self) -> Tls {
        Tls::new(Verification::Identity(&self.file("ca.pem"), "localhost")).expect("certificates")
    }

    async fn connect(&self, options: Options) -> Result<Connection> {
        Connection::connect(self.address(), &options).await
    }

    async fn root(&self) -> Connection {
        self.connect(Options::new("root").tls(&self.tls())).await.expect("root may log in")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _ = server.stop();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn errno<T>(result: Result<T>) -> (u16, String) {
    result.err().map_or((0, String::new()), |error| (error.errno(), error.message().to_owned()))
}

async fn run(connection: &Connection, statements: &[&str]) {
    for statement in statements {
        connection.execute(statement, params![]).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

async fn status(connection: &Connection, name: &str) -> String {
    let rows = connection.query(&format!("SHOW SESSION STATUS LIKE '{name}'"), params![]).await.expect("rows");
    rows.iter().next().map(|row| row.get::<String>(1).expect("a text")).expect("a variable")
}

#[test]
fn rows_and_requests_of_many_records_pass() {
    let node = Node::new(|_| {});
    block_on(async {
        let root = node.root().await;
        assert_eq!(status(&root, "Ssl_version").await, "TLSv1.3");
        assert_eq!(status(&root, "Ssl_cipher").await, "TLS_AES_256_GCM_SHA384");
        let long = "x".repeat(3 << 20);
        let rows = root.query("SELECT ?, LENGTH(?)", params![&long, &long]).await.expect("a row");
        let row = rows.iter().next().expect("a row");
        assert_eq!(
            (row.get::<&str>(0).expect("a text").len(), row.get::<i64>(1).expect("a number")),
            (3 << 20, 3 << 20)
        );
        let plain = node.connect(Options::new("root")).await.expect("TLS is not required");
        assert_eq!(status(&plain, "Ssl_version").await, "");
    });
}

#[test]
fn tls_1_2_carries_logins_and_rows_of_the_native_protocol_too() {
    let node = Node::new(|_| {});
    let authority = node.file("ca.pem");
    block_on(async {
        let root = node.root().await;
        run(&root, &["CREATE USER ann@localhost IDENTIFIED BY 'secret' REQUIRE SSL"]).await;
        let tls = Tls::only_1_2(Verification::Identity(&authority, "localhost")).expect("certificates");
        assert_eq!(errno(node.connect(Options::new("ann").password("other").tls(&tls)).await).0, 1045);
        // The first login sends the password, the second proves that the client has it.
        for _ in 0..2 {
            let ann = node.connect(Options::new("ann").password("secret").tls(&tls)).await.expect("the password");
            assert_eq!(status(&ann, "Ssl_version").await, "TLSv1.2");
            assert!(status(&ann, "Ssl_cipher").await.starts_with("ECDHE-"));
            let long = "x".repeat(3 << 20);
            let rows = ann.query("SELECT ?", params![&long]).await.expect("a row");
            assert_eq!(rows.iter().next().expect("a row").get::<&str>(0).expect("a text").len(), 3 << 20);
        }
        let accepts = status(&root, "Ssl_finished_accepts").await.parse::<u64>().expect("a number");
        assert!(accepts >= 4, "{accepts}");
        assert_eq!(status(&root, "Ssl_accepts").await, accepts.to_string());
        assert!(status(&root, "Ssl_server_not_after").await.ends_with(" 4096 GMT"));
        assert!(status(&root, "Ssl_cipher_list").await.contains(":ECDHE-ECDSA-AES256-GCM-SHA384:"));
        assert_eq!(
            (status(&root, "Ssl_verify_mode").await, status(&root, "Ssl_verify_depth").await),
            ("5".into(), "6".into())
        );
        let foreign = Tls::only_1_2(Verification::Identity(&authority, "db.example")).expect("certificates");
        assert_eq!(errno(node.connect(Options::new("root").tls(&foreign)).await).0, 2026);
    });
}

#[test]
fn a_node_is_trusted_as_far_as_its_certificate_goes() {
    let (node, stranger) = (Node::new(|_| {}), Node::new(|_| {}));
    let (own, foreign) = (node.file("ca.pem"), stranger.file("ca.pem"));
    let outcome = |verification| {
        let tls = Tls::new(verification).expect("certificates");
        errno(block_on(node.connect(Options::new("root").tls(&tls)))).0
    };
    assert_eq!(outcome(Verification::None), 0);
    assert_eq!(outcome(Verification::Authority(&own)), 0);
    assert_eq!(outcome(Verification::Authority(&foreign)), 2026);
    assert_eq!(outcome(Verification::Identity(&own, "localhost")), 0);
    assert_eq!(outcome(Verification::Identity(&own, "127.0.0.1")), 0);
    assert_eq!(outcome(Verification::Identity(&own, "db.example")), 2026);
    assert_eq!(outcome(Verification::Identity(&foreign, "localhost")), 2026);
    assert_eq!(errno(Tls::new(Verification::Authority(b"no certificate"))).0, 2026);
    assert_eq!(errno(Tls::new(Verification::Identity(&own, "no name"))).0, 2026);
}

#[test]
fn a_client_shows_its_certificate_to_an_account_that_demands_one() {
    let (node, stranger) = (Node::new(|_| {}), Node::new(|_| {}));
    block_on(async {
        let root = node.root().await;
        run(&root, &["CREATE USER encrypted@localhost REQUIRE SSL", "CREATE USER shown@localhost REQUIRE X509"]).await;
        let authority = node.file("ca.pem");
        let with = |of: &Node| {
            let (certificate, key) = (of.file("client-cert.pem"), of.file("client-key.pem"));
            Tls::with_certificate(Verification::Authority(&authority), &certificate, &key).expect("a certificate")
        };
        let outcome = async |user, tls: Option<Tls>| {
            let options = Options::new(user);
            errno(node.connect(tls.map_or(options.clone(), |tls| options.tls(&tls))).await).0
        };
        assert_eq!(outcome("encrypted", None).await, 1045);
        assert_eq!(outcome("encrypted", Some(node.tls())).await, 0);
        assert_eq!(outcome("shown", Some(node.tls())).await, 1045);
        assert_eq!(outcome("shown", Some(with(&node))).await, 0);
        // The node refuses the certificate of another authority when the handshake is over for the client.
        assert!([2013, 2026].contains(&outcome("shown", Some(with(&stranger))).await));
        let mixed = Tls::with_certificate(Verification::None, &node.file("client-cert.pem"), &node.file("ca-key.pem"));
        assert_eq!(errno(mixed).0, 2026);
    });
}

#[test]
fn an_account_may_demand_an_owner_an_issuer_and_a_cipher() {
    let node = Node::new(|_| {});
    block_on(async {
        let root = node.root().await;
        let (certificate, key) = (node.file("client-cert.pem"), node.file("client-key.pem"));
        let with = Tls::with_certificate(Verification::Authority(&node.file("ca.pem")), &certificate, &key);
        let (with, without) = (with.expect("a certificate"), node.tls());
        let login = async |tls: &Tls| errno(node.connect(Options::new("u").tls(tls)).await).0;
        run(&root, &["CREATE USER u@localhost"]).await;
        let cipher = status(&root, "Ssl_cipher").await;
        let (subject, issuer) = ("/CN=Junctor client", "/CN=Junctor cluster clients");
        for (required, outcome) in [
            (format!("SUBJECT '{subject}'"), [0, 1045]),
            (format!("ISSUER '{issuer}'"), [0, 1045]),
            (format!("CIPHER '{cipher}'"), [0, 0]),
            (format!("SUBJECT '{subject}' AND ISSUER '{issuer}' AND CIPHER '{cipher}'"), [0, 1045]),
            (format!("SUBJECT '{issuer}'"), [1045, 1045]),
            (format!("ISSUER '{subject}'"), [1045, 1045]),
            (format!("SUBJECT '{subject}' AND ISSUER '/CN=x'"), [1045, 1045]),
            (format!("SUBJECT '{}'", subject.to_lowercase()), [1045, 1045]),
            ("CIPHER 'none'".to_owned(), [1045, 1045]),
        ] {
            run(&root, &[&format!("ALTER USER u@localhost REQUIRE {required}")]).await;
            assert_eq!([login(&with).await, login(&without).await], outcome, "{required}");
            assert_eq!(errno(node.connect(Options::new("u")).await).0, 1045, "{required} without TLS");
        }
        let rows = root.query("SHOW CREATE USER u@localhost", params![]).await.expect("a row");
        let text: String = rows.iter().next().expect("a row").get(0).expect("a text");
        assert!(text.contains(" REQUIRE CIPHER 'none' "), "{text}");
    });
}

#[test]
fn passwords_of_caching_sha2_travel_over_tls_only() {
    let node = Node::new(|_| {});
    block_on(async {
        let root = node.root().await;
        run(&root, &["CREATE USER ann@localhost IDENTIFIED BY 'a long secret'"]).await;
        let login = async |password: &str, tls: Option<Tls>| {
            let options = Options::new("ann").password(password);
            errno(node.connect(tls.map_or(options.clone(), |tls| options.tls(&tls))).await).0
        };
        // The node has not seen the password yet.
        assert_eq!(login("a long secret", None).await, 2061);
        assert_eq!(login("wrong", Some(node.tls())).await, 1045);
        assert_eq!(login("", Some(node.tls())).await, 1045);
        assert_eq!(login("a long secret", Some(node.tls())).await, 0);
        // Now it has, and a proof suffices.
        assert_eq!(login("a long secret", None).await, 0);
        assert_eq!(login("wrong", None).await, 2061);
        // An unknown user gets the same answers.
        let unknown = Options::new("nobody").password("x");
        assert_eq!(errno(node.connect(unknown.clone()).await).0, 2061);
        assert_eq!(errno(node.connect(unknown.tls(&node.tls())).await).0, 1045);
        // Within the process nobody listens.
        let connector = node.server.as_ref().expect("it runs").connector();
        let inside = connector.open(&Options::new("ann").password("a long secret")).await;
        assert_eq!(errno(inside).0, 0);
    });
}

#[test]
fn both_passwords_of_a_change_are_accepted() {
    let node = Node::new(|_| {});
    block_on(async {
        let root = node.root().await;
        let change = "ALTER USER ann@localhost IDENTIFIED BY 'second' RETAIN CURRENT PASSWORD";
        run(&root, &["CREATE USER ann@localhost IDENTIFIED BY 'first'", change]).await;
        for (password, expected) in [("second", 0), ("first", 0), ("third", 1045)] {
            let options = Options::new("ann").password(password).tls(&node.tls());
            assert_eq!(errno(node.connect(options).await).0, expected, "{password}");
        }
    });
}

#[test]
fn a_required_secure_transport_refuses_plain_logins() {
    let node = Node::new(|_| {});
    block_on(async {
        let root = node.root().await;
        run(&root, &["SET GLOBAL require_secure_transport = ON"]).await;
        assert_eq!(errno(node.connect(Options::new("root")).await).0, 3159);
        let again = node.root().await;
        run(&again, &["SET GLOBAL require_secure_transport = OFF"]).await;
        assert_eq!(errno(node.connect(Options::new("root")).await).0, 0);
    });
}

#[test]
fn new_certificates_hold_for_new_connections() {
    let (node, stranger) = (Node::new(|_| {}), Node::new(|_| {}));
    let before = node.tls();
    block_on(async {
        let root = node.root().await;
        for name in ["ca.pem", "server-cert.pem", "server-key.pem"] {
            std::fs::write(node.folder.join("tls").join(name), stranger.file(name)).expect("a file");
        }
        // The files alone change nothing.
        assert_eq!(errno(node.connect(Options::new("root").tls(&before)).await).0, 0);
        run(&root, &["ALTER INSTANCE RELOAD TLS"]).await;
        assert_eq!(errno(node.connect(Options::new("root").tls(&before)).await).0, 2026);
        assert_eq!(errno(node.connect(Options::new("root").tls(&stranger.tls())).await).0, 0);
        // Open connections keep their certificates.
        assert_eq!(errno(root.ping().await).0, 0);
    });
}

#[test]
fn a_node_without_tls_refuses_to_begin_it() {
    let (node, other) = (Node::new(|config| config.has_tls = false), Node::new(|_| {}));
    let (errno, message) = errno(block_on(node.connect(Options::new("root").tls(&other.tls()))));
    assert_eq!((errno, message.contains("no TLS")), (2026, true), "{message}");
}

#[test]
fn sessions_of_an_account_count_until_they_end() {
    let node = Node::new(|_| {});
    block_on(async {
        let root = node.root().await;
        run(&root, &["CREATE USER ann@localhost WITH MAX_USER_CONNECTIONS 1"]).await;
        let first = node.connect(Options::new("ann")).await.expect("it is the only one");
        assert_eq!(errno(node.connect(Options::new("ann")).await).0, 1226);
        assert_eq!(errno(first.ping().await).0, 0);
    });
}
