//! A client of the MySQL protocol that logs in as anybody, with any method, and keeps what the server sent.

use std::io::{Read, Write};

use junctor_model::password::{caching_sha2, native};

/// The capabilities: long passwords, 4.1, transactions, secure connections and plugins.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
/// The client can change an expired password.
const EXPIRED_PASSWORDS: u32 = 0x40_0000;

/// An error of the server: number, SQLSTATE and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub errno: u16,
    pub sqlstate: String,
    pub message: String,
}

/// How a client logs in.
#[derive(Clone, Copy, Debug)]
pub struct Login<'l> {
    pub user: &'l str,
    pub password: &'l str,
    /// The method of the client's first proof.
    pub method: &'l str,
    pub handles_expired: bool,
}

impl<'l> Login<'l> {
    /// With the method of the server's greeting.
    pub fn new(user: &'l str, password: &'l str) -> Login<'l> {
        Login { user, password, method: "caching_sha2_password", handles_expired: false }
    }
}

/// A session.
pub struct Client<S> {
    stream: S,
    sequence: u8,
    /// The packets of the login after the greeting.
    pub transcript: Vec<Vec<u8>>,
}

impl<S: Read + Write> Client<S> {
    pub fn log_in(stream: S, login: Login<'_>) -> (Vec<Vec<u8>>, Result<Client<S>, Fault>) {
        let mut client = Client { stream, sequence: 0, transcript: Vec::new() };
        let outcome = client.authenticate(login);
        let transcript = client.transcript.clone();
        (transcript, outcome.map(|()| client))
    }

    fn authenticate(&mut self, login: Login<'_>) -> Result<(), Fault> {
        let greeting = self.packet();
        if let [0xFF, rest @ ..] = greeting.as_slice() {
            return Err(fault(rest));
        }
        let salt = salt_of(&greeting);
        let capabilities = CAPABILITIES | if login.handles_expired { EXPIRED_PASSWORDS } else { 0 };
        let proof = proof(login, login.method.as_bytes(), &salt);
        let mut payload = [&capabilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
        payload.extend_from_slice(login.user.as_bytes());
        payload.extend_from_slice(&[0, proof.len() as u8]);
        payload.extend_from_slice(&proof);
        payload.extend_from_slice(login.method.as_bytes());
        payload.push(0);
        self.send(&payload);
        loop {
            let packet = self.packet();
            self.transcript.push(packet.clone());
            match packet.as_slice() {
                [0xFF, rest @ ..] => return Err(fault(rest)),
                [0, ..] => return Ok(()),
                [0xFE, rest @ ..] => {
                    let end = rest.iter().position(|byte| *byte == 0).expect("a name");
                    let (method, salt) = rest.split_at(end);
                    let salt: [u8; 20] = salt[1..21].try_into().expect("a challenge");
                    self.send(&self::proof(login, method, &salt));
                }
                // The proof of the cache is right; the answer follows.
                [1, 3] => {}
                [1, 4] => self.send(&[login.password.as_bytes(), &[0]].concat()),
                other => panic!("a packet of the login: {other:?}"),
            }
        }
    }

    /// Sends a command, and returns the first packet of the answer.
    pub fn command(&mut self, payload: &[u8]) -> Result<Vec<u8>, Fault> {
        self.sequence = 0;
        self.send(payload);
        let answer = self.packet();
        match answer.as_slice() {
            [0xFF, rest @ ..] => Err(fault(rest)),
            _ => Ok(answer),
        }
    }

    /// Executes a text, and returns the values of its rows as text.
    pub fn query(&mut self, text: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        let first = self.command(&[b"\x03", text.as_bytes()].concat())?;
        let [columns @ 1..=250, ..] = first.as_slice() else { return Ok(Vec::new()) };
        // The columns and their end.
        for _ in 0..=*columns {
            self.packet();
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.packet();
            match packet.as_slice() {
                [0xFF, rest @ ..] => return Err(fault(rest)),
                [0xFE, ..] if packet.len() < 9 => return Ok(rows),
                row => rows.push(values_of(row)),
            }
        }
    }

    /// The number of the error of a statement.
    pub fn errno(&mut self, text: &str) -> u16 {
        self.query(text).err().map_or(0, |fault| fault.errno)
    }

    fn send(&mut self, payload: &[u8]) {
        let packet = [&(payload.len() as u32).to_le_bytes()[..3], &[self.sequence], payload].concat();
        // A server that has closed the connection has said why.
        let _ = self.stream.write_all(&packet);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a packet");
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).expect("a packet");
        self.sequence = header[3].wrapping_add(1);
        payload
    }
}

/// The proof of a method; a method that the client does not know sends nothing.
fn proof(login: Login<'_>, method: &[u8], salt: &[u8; 20]) -> Vec<u8> {
    match (method, login.password) {
        (_, "") => Vec::new(),
        (b"mysql_native_password", password) => native::proof_of_password(password.as_bytes(), salt).to_vec(),
        (b"caching_sha2_password", password) => caching_sha2::proof_of_password(password.as_bytes(), salt).to_vec(),
        _ => Vec::new(),
    }
}

fn salt_of(greeting: &[u8]) -> [u8; 20] {
    let end = 1 + greeting[1..].iter().position(|byte| *byte == 0).expect("a version");
    let first = end + 5;
    let second = first + 8 + 19;
    let salt = [&greeting[first..first + 8], &greeting[second..second + 12]].concat();
    salt.try_into().expect("20 bytes")
}

fn fault(rest: &[u8]) -> Fault {
    let errno = u16::from_le_bytes([rest[0], rest[1]]);
    let text = String::from_utf8_lossy(&rest[2..]).into_owned();
    match text.strip_prefix('#') {
        Some(text) => {
            let (sqlstate, message) = text.split_at(5);
            Fault { errno, sqlstate: sqlstate.into(), message: message.into() }
        }
        None => Fault { errno, sqlstate: String::new(), message: text },
    }
}

fn values_of(mut row: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    while let [length, rest @ ..] = row {
        let (value, rest) = match length {
            0xFB => (None, rest),
            0xFC => {
                let (length, rest) = rest.split_at(2);
                let (value, rest) = rest.split_at(usize::from(u16::from_le_bytes([length[0], length[1]])));
                (Some(value), rest)
            }
            length => {
                let (value, rest) = rest.split_at(usize::from(*length));
                (Some(value), rest)
            }
        };
        values.push(value.map(|value| String::from_utf8_lossy(value).into_owned()));
        row = rest;
    }
    values
}
