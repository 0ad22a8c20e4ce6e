//! A start tells how far it is: lines of the log, and a bar on a terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use super::server::{Server, command, folder, read_until, rows, run, terminate};

/// Phases of every start of a directory that has data.
const PHASES: [&str; 7] =
    ["read manifest", "read log", "make partitions", "replay log", "build indexes", "start log", "publish schema"];

fn fill(folder: &Path) {
    let server = Server::start(folder);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, KEY (n))"]);
    run(&mut session, &["INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3)"]);
    server.kill();
}

#[test]
fn each_phase_of_a_start_is_in_the_log_and_in_restart_info() {
    let folder = folder("progress");
    fill(&folder);
    let server = Server::start(&folder);
    let info = "SELECT phase, state, rows_applied, bytes > 0 FROM junctor_info.restart_info";
    let info = rows(&mut server.session(), info);
    let ended = server.stop();
    assert!(ended.status.success(), "{ended:?}");
    let lines: Vec<&str> = ended.errors.lines().filter(|line| line.contains("recovery phase")).collect();
    assert_eq!((lines.len(), info.len()), (2 * PHASES.len(), PHASES.len()), "{ended:?}");
    for (phase, (lines, shown)) in PHASES.iter().zip(lines.chunks(2).zip(&info)) {
        assert_eq!(lines[0], format!("level=info recovery phase=\"{phase}\" begins"));
        assert!(lines[1].starts_with(&format!("level=info recovery phase=\"{phase}\" ended seconds=")), "{}", lines[1]);
        assert_eq!(shown[..2], [*phase, "DONE"]);
        let rows = format!(" rows={} ", shown[2]);
        assert!(lines[1].contains(&rows), "{}, {rows}", lines[1]);
    }
    assert_eq!((&*info[3][2], &*info[3][3]), ("3", "1"), "the rows are replayed: {info:?}");
    assert_eq!(info[4][2], "3", "and indexed: {info:?}");
    assert!(!ended.errors.contains(['\r', '\u{1b}']), "a bar is for terminals: {:?}", ended.errors);
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_terminal_gets_a_bar_beside_the_lines() {
    let folder = folder("progress-terminal");
    fill(&folder);
    let inner = command(&folder);
    let words = [inner.get_program()].into_iter().chain(inner.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().expect("UTF-8")).collect();
    // The shell in the terminal sets the terminal's width, and becomes the server.
    let line = format!("stty cols 100 rows 30; echo process $$; exec {}", words.join(" "));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let mut terminal =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("script runs");
    let mut output = terminal.stdout.take().expect("a pipe");
    let shown = read_until(&mut output, "ready: mysql ");
    let process = shown.split_once("process ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    terminate(process.unwrap_or_else(|| panic!("{shown:?}")));
    read_until(&mut output, "level=info stopped");
    assert!(terminal.wait().expect("script ends").success());
    assert!(shown.contains("level=info recovery phase=\"read log\" begins"), "{shown:?}");
    let bars = shown.replace("phase=\"publish schema\"", "");
    assert!(bars.contains("publish schema") && shown.contains('\u{1b}'), "{shown:?}");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
