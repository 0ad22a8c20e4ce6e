//! TLS for clients, and the key with which they encrypt passwords on connections without TLS.
//!
//! A node with a data folder makes its own certificates at the first start, as MySQL does, in the subfolder
//! `tls`: an authority, and certificates of a server and a client that it issued. `ssl_cert` and `ssl_key`
//! name other files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};
use std::{fmt, thread};

use junctor_kernel::transport::security::{ClientSecurity, Encryption, SecurityStatus};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Connection, Error, RootCertStore, ServerConfig, ServerConnection};

use crate::certificate::{Certificate, create_authority_for_clients, issue_for_clients};
use crate::password_key::PasswordKey;
use crate::session::{Session, cipher_name};
use crate::validity::validity;

/// The subfolder of the data folder.
const FOLDER: &str = "tls";

const AUTHORITY: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca-key.pem";
const SERVER: &str = "server-cert.pem";
const SERVER_KEY: &str = "server-key.pem";
const CLIENT: &str = "client-cert.pem";
const CLIENT_KEY: &str = "client-key.pem";
const PASSWORD_KEY: &str = "private_key.pem";
const PASSWORD_PUBLIC_KEY: &str = "public_key.pem";

/// Files of certificates that the user names, all in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The authorities of clients' certificates.
    pub authority: Option<PathBuf>,
    /// The certificate of the server, and those that lead to its authority.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate.
    pub key: Option<PathBuf>,
}

/// Why a node has no TLS for clients, as a sentence for the user.
#[derive(Debug)]
pub struct TlsError(pub String);

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// Certificates between that of a client and its authority, which the verifier follows.
const VERIFY_DEPTH: u32 = 6;

/// The certificates in use.
struct Loaded {
    config: Arc<ServerConfig>,
    validity: [Box<str>; 2],
    verifies_clients: bool,
}

/// TLS for the clients of a node.
pub struct ClientTls {
    files: CertificateFiles,
    /// The subfolder of the data folder, if the node has one.
    folder: Option<PathBuf>,
    /// Replaced when the files are read again.
    loaded: RwLock<Arc<Loaded>>,
    accepts: AtomicU64,
    finished_accepts: Arc<AtomicU64>,
    /// Set by a thread, because making the key takes about a tenth of a second.
    password_key: Arc<OnceLock<PasswordKey>>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientTls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Reads the certificates, or makes them. A node without a data folder makes certificates that last as
    /// long as its process.
    ///
    /// # Errors
    /// A file is missing, damaged or not accessible, or a key does not belong to its certificate.
    pub fn open(data: Option<&Path>, mut files: CertificateFiles) -> Result<ClientTls, TlsError> {
        let folder = data.map(|data| data.join(FOLDER));
        if let Some(folder) = &folder {
            make_folder(folder)?;
        }
        let mut made = None;
        match (&files.certificate, &files.key, &folder) {
            (Some(_), Some(_), _) => {}
            (None, None, Some(folder)) => {
                files.certificate = Some(folder.join(SERVER));
                files.key = Some(folder.join(SERVER_KEY));
                files.authority.get_or_insert(folder.join(AUTHORITY));
            }
            (None, None, None) => {
                let authority = create_authority_for_clients().map_err(|error| TlsError(error.to_string()))?;
                let server = issue_for_clients(&authority.key, true).map_err(|error| TlsError(error.to_string()))?;
                made = Some(configure(None, server.certificate.as_bytes(), server.key.as_bytes()));
            }
            _ => return Err(TlsError("ssl_cert and ssl_key need each other".into())),
        }
        let loaded = match made {
            Some(loaded) => loaded.map_err(|error| TlsError(error.to_string()))?,
            None => read(&files)?,
        };
        let tls = ClientTls {
            files,
            folder,
            loaded: RwLock::new(loaded),
            accepts: AtomicU64::new(0),
            finished_accepts: Arc::default(),
            password_key: Arc::default(),
        };
        tls.read_password_key()?;
        Ok(tls)
    }

    /// The paths of authority, certificate and private key; empty for certificates that are in no file.
    pub fn file_names(&self) -> [String; 3] {
        let CertificateFiles { authority, certificate, key } = &self.files;
        [authority, certificate, key].map(|file| file.as_ref().map_or_else(String::new, |it| it.display().to_string()))
    }

    fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.read().unwrap_or_else(|error| error.into_inner()))
    }

    /// Reads the key for passwords of an earlier start.
    fn read_password_key(&self) -> Result<(), TlsError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(PASSWORD_KEY);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let key = PasswordKey::from_pem(&text)
                    .ok_or_else(|| TlsError(format!("{} is not a private key of RSA", path.display())))?;
                let _ = self.password_key.set(key);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("read", &path, &error)),
        }
    }

    /// Makes the key for passwords in a thread of its own, unless an earlier start did. The node must have
    /// recovered: a recovery that is stopped changes no file.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn make_password_key(&self) -> Result<(), TlsError> {
        if self.password_key.get().is_some() {
            return Ok(());
        }
        let folder = self.folder.clone();
        let slot = Arc::clone(&self.password_key);
        let make = move || {
            let Some(key) = PasswordKey::generate() else { return };
            if let Some(folder) = &folder {
                let written = replace(&folder.join(PASSWORD_PUBLIC_KEY), key.public_pem().as_bytes(), 0o644)
                    .and_then(|()| replace(&folder.join(PASSWORD_KEY), key.private_pem().as_bytes(), 0o600));
                if let Err(error) = written {
                    eprintln!("level=warning cannot keep the key for passwords in {}: {error}", folder.display());
                }
            }
            let _ = slot.set(key);
        };
        let started = thread::Builder::new().name("password_key".into()).spawn(make);
        started.map(drop).map_err(|error| TlsError(format!("cannot start a thread: {error}")))
    }
}

impl ClientSecurity for ClientTls {
    fn accept(&self) -> Option<Box<dyn Encryption>> {
        let connection = ServerConnection::new(Arc::clone(&self.loaded().config)).ok()?;
        self.accepts.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(Session::counted(Connection::Server(connection), &self.finished_accepts)))
    }

    fn public_key(&self) -> Option<Arc<str>> {
        self.password_key.get().map(PasswordKey::public_pem)
    }

    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        self.password_key.get()?.decrypt(encrypted)
    }

    fn status(&self) -> SecurityStatus {
        let loaded = self.loaded();
        let suites = &loaded.config.crypto_provider().cipher_suites;
        let ciphers: Vec<_> = suites.iter().map(|suite| cipher_name(suite.suite())).collect();
        SecurityStatus {
            accepts: self.accepts.load(Ordering::Relaxed),
            finished_accepts: self.finished_accepts.load(Ordering::Relaxed),
            validity: loaded.validity.clone(),
            ciphers: ciphers.join(":").into(),
            verify_depth: loaded.verifies_clients.then_some(VERIFY_DEPTH),
        }
    }

    fn reload(&self) -> Result<(), String> {
        if self.files.certificate.is_none() {
            return Ok(());
        }
        let loaded = read(&self.files).map_err(|error| error.0)?;
        *self.loaded.write().unwrap_or_else(|error| error.into_inner()) = loaded;
        Ok(())
    }
}

/// Makes the folder with its certificates, unless it exists. A crash leaves all of them or none.
fn make_folder(folder: &Path) -> Result<(), TlsError> {
    if folder.exists() {
        return Ok(());
    }
    let made = create_authority_for_clients().and_then(|authority| {
        let server = issue_for_clients(&authority.key, true)?;
        let client = issue_for_clients(&authority.key, false)?;
        Ok([(authority, AUTHORITY, AUTHORITY_KEY), (client, CLIENT, CLIENT_KEY), (server, SERVER, SERVER_KEY)])
    });
    let made = made.map_err(|error| TlsError(format!("cannot make certificates: {error}")))?;
    let write = || -> io::Result<()> {
        let new = folder.with_extension("new");
        fs::create_dir_all(&new)?;
        for (Certificate { certificate, key }, certificate_name, key_name) in &made {
            replace(&new.join(key_name), key.as_bytes(), 0o600)?;
            replace(&new.join(certificate_name), certificate.as_bytes(), 0o644)?;
        }
        fs::rename(&new, folder)?;
        folder.parent().map_or(Ok(()), |data| File::open(data)?.sync_all())
    };
    write().map_err(|error| failed("write to", folder, &error))
}

/// Writes a file so that a crash leaves the old one, the new one or none.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn read(files: &CertificateFiles) -> Result<Arc<Loaded>, TlsError> {
    let file = |path: &Option<PathBuf>| match path {
        Some(path) => fs::read(path).map(Some).map_err(|error| failed("read", path, &error)),
        None => Ok(None),
    };
    let [authority, certificate, key] = [&files.authority, &files.certificate, &files.key].map(file);
    let (certificate, key) = (certificate?.unwrap_or_default(), key?.unwrap_or_default());
    configure(authority?.as_deref(), &certificate, &key).map_err(|error| {
        let path = files.certificate.as_deref().unwrap_or(Path::new(""));
        TlsError(format!("the certificate {} or its key cannot be used: {error}", path.display()))
    })
}

fn configure(authority: Option<&[u8]>, certificate: &[u8], key: &[u8]) -> Result<Arc<Loaded>, Error> {
    let damaged = |error: rustls::pki_types::pem::Error| Error::General(error.to_string());
    let certificates = |bytes| CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>().map_err(damaged);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match authority {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authority)? {
                roots.add(certificate)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            // An account may demand a certificate; the connection does not.
            let verifier = verifier.allow_unauthenticated().build();
            builder.with_client_cert_verifier(verifier.map_err(|error| Error::General(error.to_string()))?)
        }
    };
    let chain = certificates(certificate)?;
    let validity = chain.first().and_then(|first| validity(first)).unwrap_or_default();
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(key).map_err(damaged)?)?;
    // A resumed session would survive the reload of certificates.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(Loaded { config: Arc::new(config), validity, verifies_clients: authority.is_some() }))
}

fn failed(action: &str, path: &Path, error: &io::Error) -> TlsError {
    TlsError(format!("cannot {action} {}: {error}", path.display()))
}
