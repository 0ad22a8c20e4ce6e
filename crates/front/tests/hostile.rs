//! Every file of `hostile/` is an attack on the protocol, with its expected outcome. A file has comment lines
//! (`#`), settings (`name: value`) and hexadecimal bytes. `*n` after a byte repeats it; `--` ends a payload.
//!
//! Settings: `machine` (the decoder that gets the bytes: packets, command, execute or handshake), `outcome`,
//! and, depending on the machine, `limit` (maximum payload in bytes), `sequence` (first expected),
//! `parameters`, `attributes` (on), `peer`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use junctor_front::account::{Account, Accounts, Peer};
use junctor_front::mysql::login::{Handshake, HandshakeStep, LoginContext};
use junctor_front::mysql::wire::parameter::decode_parameters;
use junctor_front::mysql::wire::{Capabilities, Command, PacketReader, ProtocolError};

/// One file of the folder.
struct Attack {
    name: String,
    settings: BTreeMap<String, String>,
    payloads: Vec<Vec<u8>>,
}

impl Attack {
    fn read(path: &Path) -> Self {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a readable file");
        assert!(text.starts_with("# "), "{name}: the first line says what is wrong with the bytes");
        let mut settings = BTreeMap::new();
        let mut payloads = vec![Vec::new()];
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((setting, value)) = line.split_once(": ") {
                settings.insert(setting.to_owned(), value.to_owned());
            } else if line == "--" {
                payloads.push(Vec::new());
            } else {
                let payload = payloads.last_mut().expect("one payload at least");
                for word in line.split_whitespace() {
                    let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
                    let byte = u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("{name}: {word}"));
                    payload.resize(payload.len() + times.parse::<usize>().expect("a count"), byte);
                }
            }
        }
        Self { name, settings, payloads }
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    fn number(&self, name: &str, otherwise: usize) -> usize {
        self.setting(name).map_or(otherwise, |value| value.parse().expect("a number"))
    }

    fn capabilities(&self) -> Capabilities {
        match self.setting("attributes") {
            Some(_) => Capabilities::SERVER,
            None => Capabilities::SERVER.without(Capabilities::QUERY_ATTRIBUTES),
        }
    }

    fn outcome(&self) -> String {
        match self.setting("machine") {
            Some("packets") => {
                let whole = self.packets(usize::MAX);
                for fragment_bytes in [1, 2, 3, 5] {
                    assert_eq!(self.packets(fragment_bytes), whole, "{}: in fragments", self.name);
                }
                whole
            }
            Some("command") => self.command(),
            Some("execute") => self.execute(),
            Some("handshake") => self.handshake(),
            other => panic!("{}: machine {other:?}", self.name),
        }
    }

    fn packets(&self, fragment_bytes: usize) -> String {
        let stream = &self.payloads[0];
        let mut reader = PacketReader::new(self.number("sequence", 0) as u8, self.number("limit", 1024));
        let mut outcome = String::new();
        for fragment in stream.chunks(fragment_bytes.min(stream.len().max(1))) {
            let mut input = fragment;
            loop {
                match reader.next_packet(&mut input) {
                    Ok(Some(packet)) => write!(outcome, "payload of {}, ", packet.payload.len()).expect("memory"),
                    Ok(None) => break,
                    Err(error) => return outcome + &describe(error),
                }
            }
            assert!(reader.buffered_bytes() <= 2 * stream.len(), "{}: memory for bytes that never came", self.name);
        }
        outcome + if reader.is_idle() { "idle" } else { "waiting" }
    }

    fn command(&self) -> String {
        match Command::parse(&self.payloads[0], self.capabilities()) {
            Ok(Command::ChangeUser(change)) => format!("ChangeUser {}", String::from_utf8_lossy(change.user)),
            Ok(command) => format!("{command:?}"),
            Err(error) => describe(error),
        }
    }

    /// Every payload is an execution of the same statement.
    fn execute(&self) -> String {
        let (mut types, mut outcomes) = (Vec::new(), Vec::new());
        for payload in &self.payloads {
            let execute = match Command::parse(payload, self.capabilities()) {
                Ok(Command::StmtExecute(execute)) => execute,
                Ok(command) => panic!("{}: not an execution but {command:?}", self.name),
                Err(error) => return describe(error),
            };
            let mut values = Vec::new();
            let count = self.number("parameters", 1);
            let mut sink = |_, value| values.push(format!("{value:?}"));
            let decoded = decode_parameters(&execute.parameters, count, &mut types, |_| None, &mut sink);
            outcomes.push(decoded.map_or_else(describe, |()| values.join(" ")));
        }
        outcomes.join(", ")
    }

    /// Every payload is a packet of the client. The packets are numbered 1, 3, 5 and so on.
    fn handshake(&self) -> String {
        let mut accounts = Accounts::with_local_root();
        accounts.insert("anna", Account::with_password(b"secret"));
        let peer = Peer::new(self.setting("peer").unwrap_or("127.0.0.1").parse().expect("an address"));
        let mut handshake = Handshake::new(peer, *b"abcdefghijklmnopqrst");
        let mut outcomes = Vec::new();
        for (payload, sequence) in self.payloads.iter().zip((1..).step_by(2)) {
            let mut out = Vec::new();
            let mut context = LoginContext {
                tls: None,
                encryption: None,
                now_us: 0,
                accounts: &accounts,
                security: None,
                is_private_required: false,
                is_private: false,
                has_tls: false,
                sequence,
                out: &mut out,
            };
            outcomes.push(match handshake.on_packet(payload, &mut context) {
                HandshakeStep::Replied { expected_sequence } => format!("replied, expects {expected_sequence}"),
                HandshakeStep::Checking => "checks the password".into(),
                HandshakeStep::Delayed(milliseconds) => format!("waits {milliseconds} ms"),
                HandshakeStep::StartTls => "starts TLS".into(),
                HandshakeStep::Authenticated(authenticated) => format!("authenticated {}", authenticated.user),
                HandshakeStep::Refused(refusal) => {
                    assert_eq!((out[3], out[4]), (sequence + 1, 0xff), "{}: an error packet", self.name);
                    format!("refused {} {}", refusal.errno, String::from_utf8_lossy(&refusal.sqlstate))
                }
            });
        }
        outcomes.join(", ")
    }
}

fn describe(error: ProtocolError) -> String {
    let (errno, sqlstate) = (error.errno(), error.sqlstate());
    let field = match error {
        ProtocolError::Malformed { field } => format!(" {field}"),
        _ => String::new(),
    };
    format!("error {errno} {}{field}", String::from_utf8_lossy(&sqlstate))
}

#[test]
fn every_attack_has_its_defined_outcome() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut attacks: Vec<Attack> = std::fs::read_dir(folder)
        .expect("the folder of attacks")
        .map(|entry| Attack::read(&entry.expect("an entry").path()))
        .collect();
    attacks.sort_by(|left, right| left.name.cmp(&right.name));
    assert!(attacks.len() >= 25, "only {} attacks found", attacks.len());
    let wrong: Vec<String> = attacks
        .iter()
        .filter_map(|attack| {
            let (expected, outcome) = (attack.setting("outcome"), attack.outcome());
            (expected != Some(&outcome)).then(|| format!("{}: {outcome}, not {expected:?}", attack.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
