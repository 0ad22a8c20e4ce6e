use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use junctor_kernel::transport::security::{Agreed, ClientSecurity, Encryption};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ProtocolVersion, RootCertStore, SupportedProtocolVersion};

use crate::certificate::{create_authority_for_clients, issue_for_clients};
use crate::client_tls::{CertificateFiles, ClientTls};
use crate::session::Session;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("junctor-tls-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join("tls").join(name)).unwrap()
    }

    fn open(&self) -> ClientTls {
        ClientTls::open(Some(&self.0), CertificateFiles::default()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A client that trusts an authority, and shows a certificate if it has one.
fn client(authority: &[u8], shown: Option<(&[u8], &[u8])>, version: &'static SupportedProtocolVersion) -> Session {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(&[version]).unwrap().with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key).unwrap()).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    Session::new(Connection::Client(ClientConnection::new(Arc::new(config), name).unwrap()))
}

/// Carries bytes both ways until neither side has any. False if a side ends the connection.
fn settle(client: &mut Session, server: &mut dyn Encryption) -> (bool, [Vec<u8>; 2]) {
    let mut plain = [Vec::new(), Vec::new()];
    loop {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        client.write(&mut to_server);
        server.write(&mut to_client);
        if to_server.is_empty() && to_client.is_empty() {
            return (true, plain);
        }
        // Records arrive in pieces.
        for piece in to_server.chunks(100) {
            if server.receive(piece, &mut plain[1]).is_err() {
                return (false, plain);
            }
        }
        if client.receive(&to_client, &mut plain[0]).is_err() {
            return (false, plain);
        }
    }
}

#[test]
fn clients_of_both_versions_exchange_encrypted_bytes() {
    let folder = Folder::new("versions");
    let tls = folder.open();
    for version in VERSIONS {
        let mut client = client(&folder.read("ca.pem"), None, version);
        let mut server = tls.accept().unwrap();
        assert_eq!(server.agreed(), None);
        client.send(b"question");
        let (is_good, [_, received]) = settle(&mut client, &mut *server);
        assert!(is_good);
        assert_eq!(received, b"question");
        let long = vec![7; 100_000];
        server.send(&long);
        server.close();
        let (is_good, [received, _]) = settle(&mut client, &mut *server);
        assert!(is_good && received == long);
        let Some(Agreed { version: name, cipher, has_certificate }) = server.agreed() else { panic!("agreed") };
        let expected = match version.version {
            ProtocolVersion::TLSv1_2 => ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            _ => ("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
        };
        assert_eq!(((name, cipher), has_certificate), (expected, false));
    }
}

#[test]
fn a_client_may_show_a_certificate_of_the_authority_and_no_other() {
    let folder = Folder::new("certificates");
    let tls = folder.open();
    let authority = folder.read("ca.pem");
    for version in VERSIONS {
        let (certificate, key) = (folder.read("client-cert.pem"), folder.read("client-key.pem"));
        let mut own = client(&authority, Some((&certificate, &key)), version);
        let mut server = tls.accept().unwrap();
        assert!(settle(&mut own, &mut *server).0);
        assert!(server.agreed().unwrap().has_certificate);

        let stranger = create_authority_for_clients().unwrap();
        let stranger = issue_for_clients(&stranger.key, false).unwrap();
        let shown = (stranger.certificate.as_bytes(), stranger.key.as_bytes());
        let mut client = client(&authority, Some(shown), version);
        let mut server = tls.accept().unwrap();
        assert!(!settle(&mut client, &mut *server).0);
    }
}

#[test]
fn the_status_counts_handshakes_and_has_the_dates_of_the_certificate() {
    let folder = Folder::new("status");
    let tls = folder.open();
    assert_eq!((tls.status().accepts, tls.status().finished_accepts), (0, 0));
    for version in VERSIONS {
        let mut server = tls.accept().unwrap();
        settle(&mut client(&folder.read("ca.pem"), None, version), &mut *server);
    }
    // A client that does not trust the server, and one that sends nothing.
    let stranger = create_authority_for_clients().unwrap().certificate;
    settle(&mut client(stranger.as_bytes(), None, VERSIONS[0]), &mut *tls.accept().unwrap());
    drop(tls.accept());
    let status = tls.status();
    assert_eq!((status.accepts, status.finished_accepts), (4, 2));
    assert_eq!(status.validity.each_ref().map(|time| time.ends_with(" GMT")), [true, true]);
    assert!(status.validity[1].contains(" 4096 "), "{status:?}");
    assert!(status.ciphers.starts_with("TLS_AES_256_GCM_SHA384:"), "{status:?}");
    assert_eq!(status.verify_depth, Some(6));
    assert_eq!(ClientTls::open(None, CertificateFiles::default()).unwrap().status().verify_depth, None);
}

#[test]
fn bytes_without_tls_end_the_connection() {
    let tls = ClientTls::open(None, CertificateFiles::default()).unwrap();
    let mut server = tls.accept().unwrap();
    assert!(server.receive(b"\x20\0\0\x01 a login without TLS, long enough", &mut Vec::new()).is_err());
}

#[test]
fn a_restart_keeps_certificates_and_keys() {
    let folder = Folder::new("restart");
    let tls = folder.open();
    let key = wait_for_key(&tls);
    let names = ["ca.pem", "server-cert.pem", "server-key.pem", "client-cert.pem"];
    let before = names.map(|name| folder.read(name));
    drop(tls);
    let tls = folder.open();
    assert_eq!(names.map(|name| folder.read(name)), before);
    assert_eq!(tls.public_key().expect("the key of the first start"), key);
    assert_eq!(folder.read("public_key.pem"), key.as_bytes());
    for name in ["ca-key.pem", "server-key.pem", "client-key.pem", "private_key.pem"] {
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(folder.0.join("tls").join(name)).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn open_makes_no_key_for_passwords() {
    let folder = Folder::new("no_key");
    let tls = folder.open();
    assert!(tls.public_key().is_none() && !folder.0.join("tls/private_key.pem").exists());
    drop(tls);
    let names = |folder: &Folder| {
        let mut names: Vec<_> = fs::read_dir(folder.0.join("tls")).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(&folder);
    drop(folder.open());
    assert_eq!(names(&folder), before);
}

/// The public key, once a thread has made it.
fn wait_for_key(tls: &ClientTls) -> Arc<str> {
    tls.make_password_key().unwrap();
    loop {
        match tls.public_key() {
            Some(key) => return key,
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn the_key_decrypts_what_its_public_half_encrypted() {
    let tls = ClientTls::open(None, CertificateFiles::default()).unwrap();
    let public = pem::parse(wait_for_key(&tls).as_bytes()).unwrap();
    let public = PublicEncryptingKey::from_der(public.contents()).unwrap();
    let der: PublicKeyX509Der<'_> = public.as_der().unwrap();
    assert!(!der.as_ref().is_empty());
    let public = OaepPublicEncryptingKey::new(public).unwrap();
    let mut encrypted = vec![0; public.ciphertext_size()];
    public.encrypt(&OAEP_SHA1_MGF1SHA1, b"secret\0", &mut encrypted, None).unwrap();
    assert_eq!(tls.decrypt(&encrypted).as_deref(), Some(&b"secret\0"[..]));
    encrypted[9] ^= 1;
    assert_eq!(tls.decrypt(&encrypted), None);
    assert_eq!(tls.decrypt(&encrypted[1..]), None);
    assert_eq!(tls.decrypt(b""), None);
}

#[test]
fn new_certificates_apply_without_a_restart() {
    let folder = Folder::new("reload");
    let tls = folder.open();
    let old = folder.read("ca.pem");
    let authority = create_authority_for_clients().unwrap();
    let server = issue_for_clients(&authority.key, true).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.0.join("tls").join(name), text).unwrap();
    write("server-key.pem", &server.key);
    // The key and the certificate do not belong together.
    assert!(tls.reload().is_err());
    assert!(settle(&mut client(&old, None, VERSIONS[1]), &mut *tls.accept().unwrap()).0, "the old ones remain");
    write("server-cert.pem", &server.certificate);
    tls.reload().unwrap();
    assert!(!settle(&mut client(&old, None, VERSIONS[1]), &mut *tls.accept().unwrap()).0);
    let new = authority.certificate.as_bytes();
    assert!(settle(&mut client(new, None, VERSIONS[1]), &mut *tls.accept().unwrap()).0);
}

#[test]
fn unusable_files_are_named() {
    let folder = Folder::new("unusable");
    let missing = |name: &str| Some(Path::new("/nonexistent").join(name));
    let files = CertificateFiles { certificate: missing("cert"), key: missing("key"), authority: None };
    let error = ClientTls::open(Some(&folder.0), files.clone()).unwrap_err();
    assert!(error.0.contains("/nonexistent/cert"), "{error}");
    let error = ClientTls::open(None, CertificateFiles { key: None, ..files }).unwrap_err();
    assert!(error.0.contains("ssl_key"), "{error}");
    folder.open();
    fs::write(folder.0.join("tls/server-cert.pem"), "no certificate").unwrap();
    assert!(ClientTls::open(Some(&folder.0), CertificateFiles::default()).is_err());
}
