//! The servers under load: a node that is started for the run, or servers that already run.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::binding::{CpuBinding, has_numactl};
use super::configuration::ServerPart;
use crate::failure::Explain;
use crate::process::junctor::start_with_ready_line;
use crate::process::server::command_killed_with_parent;
use crate::process::{Server, TemporaryFolder, command};
use crate::{Failure, Outcome};

const SETTINGS_TIME_MAX: Duration = Duration::from_secs(60);
/// Seconds until a node must be ready. A node that reserves much memory touches it all first, which takes
/// long.
const READY_TIMEOUT_S: u64 = 600;

/// The servers that the clients connect to.
pub struct Target {
    /// Hosts and ports of the servers.
    pub addresses: Vec<(String, u16)>,
    /// The started node, if any.
    server: Option<Server>,
}

impl Target {
    /// Starts a node below `data_folder` of the configuration, or uses the running servers that the file
    /// names. Prints the address of a started node.
    ///
    /// # Errors
    /// The node does not start. The error includes the end of its log.
    pub fn begin(part: &ServerPart, binding: &CpuBinding, folder: &Path, binary: &Path) -> Outcome<Target> {
        let Some(data_folder) = &part.data_folder else {
            let port = |place: usize| part.ports.get(place).or(part.ports.first()).copied().unwrap_or(3306);
            let addresses = part.hosts.iter().enumerate().map(|(place, host)| (host.clone(), port(place))).collect();
            return Ok(Target { addresses, server: None });
        };
        let server = start(part, binding, &folder.join(data_folder), binary)?;
        println!("started {} at {}, process {}", binary.display(), server.address, server.process_id());
        Ok(Target { addresses: vec![(server.address.ip().to_string(), server.address.port())], server: Some(server) })
    }

    /// Checks that a started node still runs.
    ///
    /// # Errors
    /// The node has ended.
    pub fn require_alive(&mut self) -> Outcome<()> {
        self.server.as_mut().map_or(Ok(()), Server::require_alive)
    }

    /// Stops a started node.
    ///
    /// # Errors
    /// The node did not stop cleanly.
    pub fn end(self) -> Outcome<()> {
        self.server.map_or(Ok(()), Server::stop)
    }
}

fn start(part: &ServerPart, binding: &CpuBinding, base: &Path, binary: &Path) -> Outcome<Server> {
    let folder = TemporaryFolder::within(base, "node")?;
    let mut words = binding.server_words(part.thread_config.as_deref(), has_numactl());
    words.push(binary.to_string_lossy().into_owned());
    words.extend(serve_words(part, &folder.path().join("data"))?);
    let (settings, notices) = settings_file(part, &known_settings(binary)?);
    for notice in notices {
        println!("{notice}");
    }
    if !settings.is_empty() {
        let path = folder.path().join("junctor.toml");
        fs::write(&path, settings).explain(path.display())?;
        words.extend(["--config".into(), path.to_string_lossy().into_owned()]);
    }
    let mut command = command_killed_with_parent(&words[0]);
    // In its own process group, the node does not receive the terminal's SIGINT; it is stopped after
    // sysbench.
    command.args(&words[1..]).process_group(0);
    start_with_ready_line("Junctor", command, "ready: mysql ", folder, READY_TIMEOUT_S)
}

fn serve_words(part: &ServerPart, data_folder: &Path) -> Outcome<Vec<String>> {
    let host = part.hosts.first().map_or("127.0.0.1", String::as_str);
    let address: IpAddr = match host {
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        _ => host.parse().explain(format!("SERVER_HOST={host}: a node is started at an IP address or localhost"))?,
    };
    let mut words = vec!["serve".to_string()];
    let mut add = |option: &str, value: String| words.extend([option.to_string(), value]);
    add("--listen", address.to_string());
    add("--port", part.ports.first().map_or(0, |port| *port).to_string());
    add("--data-dir", data_folder.to_string_lossy().into_owned());
    add("--max-connections", part.connections_max.to_string());
    for (option, value) in [
        ("--total-memory", part.total_memory.clone()),
        ("--thread-config", part.thread_config.clone()),
        ("--num-cpus", part.cpus_max.map(|count| count.to_string())),
        ("--user", (!part.password.is_empty()).then(|| format!("{}:{}", part.user, part.password))),
    ] {
        if let Some(value) = value {
            add(option, value);
        }
    }
    Ok(words)
}

/// Asks the binary for the names of all its settings.
fn known_settings(binary: &Path) -> Outcome<Vec<String>> {
    let finished = command::run(Command::new(binary).arg("settings"), SETTINGS_TIME_MAX)?;
    let name_of = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_string());
    let names: Vec<String> = finished.output.lines().filter_map(name_of).collect();
    if names.is_empty() {
        return Err(Failure::new(format!("{} settings: {}", binary.display(), finished.errors)));
    }
    Ok(names)
}

/// Writes a configuration file with the settings that the server has, and a notice for each that it lacks.
fn settings_file(part: &ServerPart, known: &[String]) -> (String, Vec<String>) {
    let (mut file, mut notices) = (String::new(), Vec::new());
    for (name, value, key) in &part.settings {
        if known.iter().any(|known| known == name) {
            file += &format!("{name} = {value}\n");
        } else {
            notices.push(format!("{key} means nothing here: the server has no setting {name}"));
        }
    }
    (file, notices)
}

/// The options with which clients connect to a server.
pub fn connection_options(address: &(String, u16), part: &ServerPart) -> Vec<String> {
    // sysbench reads "localhost" as a request for the socket file.
    let host = if address.0 == "localhost" { "127.0.0.1" } else { &address.0 };
    vec![
        "--db-driver=mysql".into(),
        format!("--mysql-host={host}"),
        format!("--mysql-port={}", address.1),
        format!("--mysql-user={}", part.user),
        format!("--mysql-password={}", part.password),
    ]
}

/// The binary to start: the one that the option names, or else this program.
///
/// # Errors
/// The binary does not exist.
pub fn server_binary(given: Option<&PathBuf>) -> Outcome<PathBuf> {
    let path = match given {
        Some(path) => path.clone(),
        None => std::env::current_exe()?,
    };
    let path = fs::canonicalize(&path).explain(path.display())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> ServerPart {
        ServerPart {
            hosts: vec!["localhost".into()],
            ports: vec![0],
            user: "root".into(),
            data_folder: Some("data".into()),
            connections_max: 100,
            ..ServerPart::default()
        }
    }

    #[test]
    fn a_node_starts_with_the_settings_of_the_file() {
        let mut part = part();
        part.total_memory = Some("2G".into());
        part.thread_config = Some("ldm={count=1}".into());
        let words = serve_words(&part, Path::new("/d")).expect("an address").join(" ");
        let expected = "serve --listen 127.0.0.1 --port 0 --data-dir /d --max-connections 100 --total-memory 2G \
                        --thread-config ldm={count=1}";
        assert_eq!(words, expected);
        part.hosts = vec!["somewhere".into()];
        assert!(serve_words(&part, Path::new("/d")).is_err());
    }

    #[test]
    fn unknown_server_settings_are_reported() {
        let mut part = part();
        part.settings = vec![
            ("PartitionsPerNode", "4".into(), "NDB_PARTITIONS_PER_NODE"),
            ("SpinMethod", "\"x\"".into(), "NDB_SPIN_METHOD"),
        ];
        let (file, notices) = settings_file(&part, &["PartitionsPerNode".into()]);
        assert_eq!(file, "PartitionsPerNode = 4\n");
        assert_eq!(notices, ["NDB_SPIN_METHOD means nothing here: the server has no setting SpinMethod"]);
    }

    #[test]
    fn clients_get_an_address_and_a_user() {
        let options = connection_options(&("localhost".into(), 3307), &part()).join(" ");
        let expected = "--db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3307 --mysql-user=root --mysql-password=";
        assert_eq!(options, expected);
    }
}
