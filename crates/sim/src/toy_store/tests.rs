use std::collections::{BTreeMap, BTreeSet};

use junctor_kernel::simulated::{ClientSocket, NodeEnd, SimulationOptions};
use junctor_kernel::{ArmedCrash, Duration, NodeId, Random};

use super::*;
use crate::ledger::{Durability, EntryId, Ledger};

const NODE: NodeId = NodeId(1);
const CLIENTS: i64 = 3;
const KEYS: i64 = 12;
const LIVES: usize = 24;

/// The points that the store marks.
const STEPS: [crash_point::CrashStep; 4] =
    [crash_point::LOG_WRITE, crash_point::LOG_SYNC, crash_point::LOG_PUBLISH, crash_point::RECOVERY_SCAN];

struct Client {
    socket: ClientSocket,
    input: Vec<u8>,
    waits_for: Option<Request>,
}

#[derive(Clone, Copy)]
enum Request {
    Put(EntryId),
    Next,
    Get,
}

struct Run {
    simulation: Simulation<FakeSignal, ToyStore>,
    random: Random,
    ledger: Ledger,
    durability: Durability,
    numbers: BTreeSet<i64>,
    clients: Vec<Client>,
    next_value: i64,
    found: Option<BTreeMap<i64, i64>>,
}

impl Run {
    fn connect(&mut self) {
        let simulation = &mut self.simulation;
        let client = |_| Client { socket: simulation.connect(NODE, 0).unwrap(), input: Vec::new(), waits_for: None };
        self.clients = (0..CLIENTS).map(client).collect();
    }

    fn send(&mut self, client: usize, text: &str, request: Request) {
        self.clients[client].waits_for = Some(request);
        self.simulation.write(self.clients[client].socket, format!("{text}\n").as_bytes());
    }

    /// Lets an idle client write some of its own keys, or take a number.
    fn act(&mut self, client: usize) {
        if self.random.one_in(5) {
            return self.send(client, "next", Request::Next);
        }
        let mut writes = BTreeMap::new();
        for _ in 0..1 + self.random.below(4) {
            let key = self.random.below((KEYS / CLIENTS) as u64) as i64 * CLIENTS + client as i64;
            self.next_value += 1;
            let value = (!self.random.one_in(5)).then_some(self.next_value);
            writes.insert(key, value);
        }
        let value = |value: &Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
        let words: Vec<String> = writes.iter().map(|(key, new)| format!("{key} {}", value(new))).collect();
        let writes: Vec<_> = writes.into_iter().collect();
        let entry = self.ledger.send(&writes);
        self.send(client, &format!("put {}", words.join(" ")), Request::Put(entry));
    }

    fn receive(&mut self, client: usize) -> Result<(), String> {
        let socket = self.clients[client].socket;
        self.clients[client].input.extend(self.simulation.read(socket));
        let Some(end) = self.clients[client].input.iter().position(|&byte| byte == b'\n') else { return Ok(()) };
        let line = self.clients[client].input.drain(..=end).collect::<Vec<u8>>();
        let line = String::from_utf8(line).unwrap();
        match self.clients[client].waits_for.take().unwrap() {
            Request::Put(entry) => self.ledger.acknowledge(entry),
            Request::Next => {
                let number = line.trim_end().parse().unwrap();
                if !self.numbers.insert(number) {
                    return Err(format!("number {number} was given twice"));
                }
            }
            Request::Get => {
                let pairs = line.trim_end().split(',').filter_map(|pair| pair.split_once(' '));
                self.found = Some(pairs.map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).collect());
            }
        }
        Ok(())
    }

    /// One life: recovery and check, then writes until the node dies.
    fn live(&mut self) -> Result<(), String> {
        let end = if self.random.one_in(2) { NodeEnd::Power } else { NodeEnd::Process };
        let step = STEPS[self.random.below(4) as usize];
        let point = if self.random.one_in(2) { step.before() } else { step.after() };
        let armed = ArmedCrash { point, hit: 1 + self.random.below(8) };
        self.simulation.arm_crash(NODE, self.random.one_in(2).then_some(armed), end);
        self.connect();
        self.send(0, "get", Request::Get);
        // Many lives end before their first sync, so that the next one finds what the last one left unsynced.
        let steps = if self.random.one_in(2) { 3 } else { 200 };
        let mut steps_left = 1 + self.random.below(steps);
        let mut is_checked = false;
        while self.simulation.is_up(NODE) {
            self.simulation.run_for(Duration::from_micros(self.random.below(300)));
            for client in 0..self.clients.len() {
                self.receive(client)?;
            }
            if let Some(found) = self.found.take() {
                self.ledger.check(&found, self.durability)?;
                is_checked = true;
            }
            if is_checked {
                let idle: Vec<usize> =
                    (0..self.clients.len()).filter(|&client| self.clients[client].waits_for.is_none()).collect();
                idle.into_iter().for_each(|client| self.act(client));
                steps_left -= 1;
                if steps_left == 0 {
                    self.simulation.crash(NODE, end);
                }
            }
        }
        for client in 0..self.clients.len() {
            self.receive(client)?;
        }
        for client in std::mem::take(&mut self.clients) {
            if let Some(Request::Put(entry)) = client.waits_for {
                self.ledger.leave_unknown(entry);
            }
        }
        self.simulation.restart(NODE);
        Ok(())
    }
}

fn run(defect: Defect, durability: Durability, seed: u64) -> Result<(), String> {
    let options = SimulationOptions { file_ns_max: 200_000, ..SimulationOptions::new(seed) };
    let mut run = Run {
        simulation: start(options, defect),
        random: Random::new(seed ^ 0x0074_6f79),
        ledger: Ledger::default(),
        durability,
        numbers: BTreeSet::new(),
        clients: Vec::new(),
        next_value: 0,
        found: None,
    };
    (0..LIVES).try_for_each(|_| run.live())
}

/// The faults that 30 seeds find, at most one each.
fn faults(defect: Defect, durability: Durability) -> Vec<String> {
    (0..30).filter_map(|seed| run(defect, durability, seed).err()).collect()
}

#[test]
fn a_correct_store_passes_and_every_defect_is_caught() {
    assert_eq!(faults(Defect::None, Durability::Disk), Vec::<String>::new());
    let wrong = [
        (Defect::AnswersBeforeSync, "lost transaction"),
        (Defect::ForgetsFolder, "lost transaction"),
        (Defect::SplitsTransactions, "part of a transaction"),
        (Defect::ReusesNumbers, "was given twice"),
        (Defect::AnswersBeforeWrite, "lost transaction"),
        (Defect::TrustsUnsyncedTail, "invented value"),
    ];
    for (defect, message) in wrong {
        let faults = faults(defect, Durability::Disk);
        assert!(faults.len() >= 3, "{defect:?} is found by {} of 30 seeds", faults.len());
        assert!(faults.iter().any(|fault| fault.contains(message)), "{defect:?}: {faults:?}");
    }
}

#[test]
fn with_memory_durability_only_a_suffix_may_be_lost() {
    assert_eq!(faults(Defect::AnswersBeforeWrite, Durability::Memory), Vec::<String>::new());
    let found = faults(Defect::SkipsInvalidRecords, Durability::Memory);
    assert!(found.iter().any(|fault| fault.contains("lost middle")), "{found:?}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    for seed in 0..5 {
        let one = run(Defect::AnswersBeforeSync, Durability::Disk, seed);
        assert_eq!(run(Defect::AnswersBeforeSync, Durability::Disk, seed), one);
    }
}
