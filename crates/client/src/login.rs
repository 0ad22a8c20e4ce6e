//! The login: greeting, TLS, and the proofs of the password.

use junctor_model::password::caching_sha2::proof_of_password;
use junctor_wire::login::{WANTED_PROOF, WantedProof, encode_proof, encode_start_tls};
use junctor_wire::proof::password_proof;
use junctor_wire::reply::{self, Greeting};
use junctor_wire::request::Login;
use junctor_wire::{Frame, LOGIN_PAYLOAD_BYTES_MAX, Reply, VERSION, frame, next_frame};

use super::connection::Options;
use super::error::{Error, Result};
use super::transport::Transport;

/// A session that has just begun.
pub(super) struct LoggedIn {
    pub transport: Box<dyn Transport>,
    /// Bytes that followed the answer to the login.
    pub received: Vec<u8>,
    pub id: u32,
    pub server_version: Box<str>,
    /// Bits of `STATUS_...`.
    pub status: u8,
}

/// A transport, and the bytes that have arrived on it.
struct Stream {
    transport: Box<dyn Transport>,
    received: Vec<u8>,
    /// Number of bytes at the front that belong to the last frame.
    taken: usize,
}

/// Logs in over a transport.
pub(super) async fn log_in(transport: Box<dyn Transport>, options: &Options) -> Result<LoggedIn> {
    // Half of the payload leaves enough space for the other fields of the login.
    if options.user.len() + options.database.len() > LOGIN_PAYLOAD_BYTES_MAX / 2 {
        return Err(Error::value("The names of the user and the database are too long".into()));
    }
    let mut stream = Stream { transport, received: Vec::new(), taken: 0 };
    let frame = stream.next_frame().await?;
    let greeting = match frame.kind {
        reply::kind::GREETING => Greeting::parse(frame.payload)?,
        _ => return Err(refusal(frame)),
    };
    let (id, server_version, salt) = (greeting.connection, greeting.server_version.into(), greeting.salt);
    if let Some(tls) = &options.tls {
        stream = stream.start_tls(tls).await?;
    }
    let proof = password_proof(options.password.as_bytes(), &salt);
    let login = Login { version: VERSION, user: &options.user, proof: &proof, database: &options.database };
    let mut is_whole = true;
    stream.send(&mut |out| is_whole = login.encode(out)).await?;
    if !is_whole {
        return Err(Error::too_long());
    }
    let status = loop {
        let frame = stream.next_frame().await?;
        let proof = match frame.kind {
            WANTED_PROOF => match WantedProof::parse(frame.payload)? {
                WantedProof::CachingSha2 => proof_of_password(options.password.as_bytes(), &salt).to_vec(),
                // Never in plain text, whatever the node says.
                WantedProof::Password if !stream.transport.is_private() => return Err(exposed_password()),
                WantedProof::Password => options.password.as_bytes().to_vec(),
            },
            _ => match Reply::parse(frame)? {
                (0, Reply::Done(done)) => break done.status,
                _ => return Err(refusal(frame)),
            },
        };
        if proof.len() > LOGIN_PAYLOAD_BYTES_MAX / 2 {
            return Err(Error::value("The password is too long".into()));
        }
        stream.send(&mut |out| encode_proof(&proof, out)).await?;
    };
    let Stream { transport, mut received, taken } = stream;
    received.drain(..taken);
    Ok(LoggedIn { transport, received, id, server_version, status })
}

impl Stream {
    /// Begins a TLS session in this stream, and continues in it.
    async fn start_tls(mut self, tls: &super::tls::Tls) -> Result<Stream> {
        if self.received.len() > self.taken {
            // They would have come before the session, from whoever stands between.
            return Err(Error::protocol("bytes before TLS"));
        }
        self.send(&mut encode_start_tls).await?;
        let transport = Box::new(tls.connect(self.transport).await?);
        Ok(Stream { transport, received: Vec::new(), taken: 0 })
    }

    /// Sends a frame.
    async fn send(&mut self, encode: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        let sent = std::future::poll_fn(|context| self.transport.poll_send(context, &mut bytes)).await;
        sent.map_err(|error| Error::lost(&error.to_string()))
    }

    /// The next frame of the node, which is short before the login.
    async fn next_frame(&mut self) -> Result<Frame<'_>> {
        self.received.drain(..std::mem::take(&mut self.taken));
        loop {
            if let Some((_, length)) = frame::decode_header(&self.received) {
                if length > LOGIN_PAYLOAD_BYTES_MAX {
                    return Err(Error::protocol("greeting"));
                }
                if self.received.len() >= frame::HEADER_BYTES + length {
                    self.taken = frame::HEADER_BYTES + length;
                    break;
                }
            }
            let bytes = std::future::poll_fn(|context| self.transport.poll_receive(context)).await;
            let bytes = bytes.map_err(|error| Error::lost(&error.to_string()))?;
            if bytes.is_empty() {
                return Err(Error::lost("the node closed the connection before the login"));
            }
            self.received.extend_from_slice(&bytes);
            self.transport.recycle_buffer(bytes);
        }
        next_frame(&self.received).map(|(frame, _)| frame).ok_or(Error::protocol("greeting"))
    }
}

/// The error of a frame that refuses the login.
fn refusal(frame: Frame<'_>) -> Error {
    match Reply::parse(frame) {
        Ok((_, Reply::Failed { errno, sqlstate, message })) => Error::server(errno, sqlstate, message),
        _ => Error::protocol("greeting"),
    }
}

fn exposed_password() -> Error {
    let message = "Authentication plugin 'caching_sha2_password' reported error: Authentication requires secure \
                   connection.";
    Error::server(2061, *b"HY000", message)
}
