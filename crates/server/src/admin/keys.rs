//! `junctor admin key` and `certificate`: what the nodes of a cluster need before they start.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use junctor_kernel::NodeId;
use junctor_tls::certificate::{create_authority, issue};

use super::Result;

/// Shown after the options of `junctor admin certificate`.
pub const CERTIFICATE_HELP: &str = "\
The folder gets authority.crt, authority.key, and node-N.crt and node-N.key for each node. An authority that is there
already is used again. Node N needs authority.crt (tls_authority), node-N.crt (tls_certificate) and node-N.key
(tls_private_key). Keep authority.key away from the nodes.

Try it:
  junctor admin certificate certificates --nodes 1,2,3";

/// The options of `junctor admin certificate`.
#[derive(Debug, Args)]
pub struct CertificateOptions {
    /// The folder of the certificates
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Nodes that get a certificate, with commas between them
    #[arg(long, value_name = "N", value_delimiter = ',', required = true, value_parser = clap::value_parser!(u8).range(1..))]
    nodes: Vec<u8>,
    /// Name of the cluster, for readers of the certificates
    #[arg(long, value_name = "NAME", default_value = "junctor")]
    cluster_name: String,
}

/// Makes the file of a new key.
///
/// # Errors
/// The file exists or cannot be written.
pub fn make_key(file: &Path) -> Result<()> {
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    write_secret(file, &format!("{digits}\n"))
}

/// Makes the authority, if it is missing, and the certificates of nodes.
///
/// # Errors
/// A file exists or cannot be written, or the authority's key cannot be read.
pub fn make_certificates(options: &CertificateOptions) -> Result<()> {
    let CertificateOptions { folder, nodes, cluster_name } = options;
    std::fs::create_dir_all(folder)?;
    let key_file = folder.join("authority.key");
    let key = match std::fs::read_to_string(&key_file) {
        Ok(key) => key,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let authority = create_authority(cluster_name)?;
            write_secret(&key_file, &authority.key)?;
            write_new(&folder.join("authority.crt"), &authority.certificate, 0o644)?;
            authority.key
        }
        Err(error) => return Err(format!("{}: {error}", key_file.display()).into()),
    };
    for node in nodes {
        let certificate = issue(cluster_name, &key, NodeId(*node))?;
        write_secret(&folder.join(format!("node-{node}.key")), &certificate.key)?;
        write_new(&folder.join(format!("node-{node}.crt")), &certificate.certificate, 0o644)?;
    }
    Ok(())
}

/// Writes a new file that only its owner may read.
fn write_secret(file: &Path, text: &str) -> Result<()> {
    write_new(file, text, 0o600)
}

fn write_new(file: &Path, text: &str, mode: u32) -> Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all()));
    written.map_err(|error| format!("{}: {error}", file.display()).into())
}
