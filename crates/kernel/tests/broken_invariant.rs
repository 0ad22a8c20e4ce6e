//! A broken invariant ends the process and prints the last signals of every thread. An armed crash point
//! kills the process.
#![cfg(not(any(loom, shuttle)))]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use junctor_kernel::real::{Node, NodeOptions};
use junctor_kernel::{
    ArmedCrash, Context, CrashPoint, Endpoints, Host, ModuleId, NodeLayout, Outbox, Priority, Signal, SignalClass,
    WorldEvent, require,
};

const ECHO: ModuleId = ModuleId::new(2);
const PLAYER: ModuleId = ModuleId::new(3);

/// Set in the process that breaks; its value says how.
const BREAKS: &str = "JUNCTOR_TEST_BREAKS";

/// Hit once for each count.
const COUNTED: CrashPoint = CrashPoint::new(7);

enum Count {
    World,
    Down(u32),
}

impl Signal for Count {
    fn class(&self) -> SignalClass {
        SignalClass::Deferrable
    }

    fn priority(&self) -> Priority {
        Priority::Normal
    }

    fn emit_max(&self) -> u16 {
        1
    }

    fn name(&self) -> &'static str {
        "Count"
    }

    fn number(&self) -> u16 {
        match self {
            Self::World => 0,
            Self::Down(_) => 1,
        }
    }

    fn from_world(_: WorldEvent) -> Self {
        Self::World
    }

    fn name_of_number(number: u16) -> Option<&'static str> {
        ["World", "CountDown"].get(usize::from(number)).copied()
    }
}

struct Bomb {
    panics: bool,
}

impl Host<Count> for Bomb {
    fn handle(
        &mut self,
        Endpoints { to, .. }: Endpoints,
        signal: Count,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Count>,
    ) {
        let other = if to.module == ECHO { PLAYER } else { ECHO };
        let other = context.directory.address(other, 0);
        match signal {
            Count::World if to.module == ECHO => outbox.send(other, Count::Down(5)),
            Count::World => {}
            Count::Down(left) => {
                outbox.crash_point(COUNTED);
                assert!(left > 0 || !self.panics, "the count is over");
                require!(left > 0, "the count is over");
                outbox.send(other, Count::Down(left - 1));
            }
        }
    }
}

fn break_here(how: &str) {
    let panics = how == "panic";
    let layout = NodeLayout::new(&[&[(ECHO, 0)], &[(PLAYER, 0)]]);
    let crash = (how == "crash").then_some(ArmedCrash { point: COUNTED, hit: 4 });
    let options = NodeOptions { pin: false, crash, ..NodeOptions::default() };
    let node = Node::start(&layout, options, move |_| Bomb { panics }).unwrap();
    node.wait_for_stop_request();
}

fn ends_with_traces(test: &str, how: &str, message: &str) {
    if let Ok(how) = std::env::var(BREAKS) {
        return break_here(&how);
    }
    let mut process = Command::new(std::env::current_exe().unwrap());
    let output = process.args(["--exact", test, "--nocapture"]).env(BREAKS, how).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{errors}");
    assert!(errors.contains(message), "{errors}");
    assert!(errors.contains("last signals of thread thread-0"), "{errors}");
    assert!(errors.contains("last signals of thread thread-1"), "{errors}");
    assert_eq!(errors.matches("1:3.0 -> 1:2.0 CountDown (1)").count(), 3, "{errors}");
    assert_eq!(errors.matches("1:2.0 -> 1:3.0 CountDown (1)").count(), 3, "{errors}");
}

#[test]
fn require_names_the_condition_and_prints_the_traces() {
    let message = "left > 0: the count is over";
    ends_with_traces("require_names_the_condition_and_prints_the_traces", "require", message);
}

#[test]
fn a_panic_in_a_handler_prints_the_traces_and_ends_the_process() {
    let message = "the count is over";
    ends_with_traces("a_panic_in_a_handler_prints_the_traces_and_ends_the_process", "panic", message);
}

#[test]
fn the_armed_hit_of_a_crash_point_kills_the_process() {
    if let Ok(how) = std::env::var(BREAKS) {
        return break_here(&how);
    }
    let mut process = Command::new(std::env::current_exe().unwrap());
    let test = "the_armed_hit_of_a_crash_point_kills_the_process";
    let output = process.args(["--exact", test, "--nocapture"]).env(BREAKS, "crash").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{errors}");
    assert!(errors.contains("killed at crash point 7") && !errors.contains("the count is over"), "{errors}");
}
