//! `cluster-kill`: kills, cuts off and stops random nodes of a cluster under bank transfers.
//!
//! Each node is a process in a network namespace of its own. After each fault all nodes must come back. Then
//! every acknowledged transfer is at every data node, none that was rolled back, no part of any, and indexes
//! agree. While faults happen, clients read at any node what was acknowledged at another one before.
//!
//! In reading order: [`options`], [`network`], [`nodes`], [`clients`], [`check`], [`fault`], [`figures`],
//! [`upgrade`].

mod check;
mod clients;
mod fault;
mod figures;
mod network;
mod nodes;
mod options;
mod upgrade;

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use check::{Balances, STATEMENT_MAX, check, first_balances};
use clients::{ACCOUNTS, BALANCE, Load, Outcomes};
use fault::{Fault, Way};
pub(crate) use figures::longest_gap;
use figures::{Figures, longest_wait};
use nodes::{Nodes, Role, connect};
pub use options::ClusterKillOptions;
use rustix::process::Signal;

use crate::failure::Explain;
use crate::random::Random;
use crate::{Failure, Outcome};

/// All nodes serve within this time after a fault.
const RETURN_MAX: Duration = Duration::from_secs(120);
/// No client waits longer for the end of its transaction once all nodes serve.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The load before each fault, whose longest gap is the measure of quiet.
const QUIET: Duration = Duration::from_millis(400);
/// A fault may stop the service within this time.
const EFFECT: Duration = Duration::from_millis(1500);
/// A node that returns is killed again within this time.
const AGAIN_MAX: Duration = Duration::from_millis(900);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the faults.
///
/// # Errors
/// The cluster breaks a promise, or does not come back. The files of its nodes are kept then.
pub fn run(options: &ClusterKillOptions) -> Outcome<()> {
    network::enter()?;
    let mut nodes = Nodes::new(options)?;
    let result = run_on(&mut nodes, options);
    if result.is_err() || options.keep {
        eprintln!("the files of the nodes are in {}", nodes.keep().display());
    }
    result
}

fn run_on(nodes: &mut Nodes, options: &ClusterKillOptions) -> Outcome<()> {
    for node in nodes.all() {
        nodes.start(node)?;
    }
    let end = Instant::now() + RETURN_MAX;
    while let Err(error) = nodes.open_to_network(nodes.with_role(Role::Data)[0]) {
        if Instant::now() > end {
            return Err(Failure::new(format!("the cluster does not start: {error}")));
        }
        sleep_watching(nodes, LOOK_INTERVAL)?;
    }
    await_whole(nodes, "the first start")?;
    fill(nodes)?;
    let load = Load::new(nodes.serving(), options.clients);
    thread::scope(|scope| {
        for client in 0..options.clients {
            let load = &load;
            scope.spawn(move || load.run(client, options.seed));
        }
        let result = match &options.upgrade_to {
            None => run_faults(nodes, options, &load),
            Some(next) => upgrade::run(nodes, (next, options.seed), &load),
        };
        load.end();
        result
    })
}

fn fill(nodes: &Nodes) -> Outcome<()> {
    let mut session = connect(nodes.with_role(Role::Data)[0], STATEMENT_MAX).explain("the first node")?;
    let accounts: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    for statement in [
        "CREATE DATABASE bank",
        "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
        "CREATE TABLE bank.transfer (id BIGINT PRIMARY KEY, source INT, target INT, amount INT, code BIGINT, \
         KEY amount (amount), UNIQUE KEY code (code))",
        &format!("INSERT INTO bank.account VALUES {}", accounts.join(", ")),
    ] {
        session.query(statement).explain(statement)?;
    }
    Ok(())
}

fn run_faults(nodes: &mut Nodes, options: &ClusterKillOptions, load: &Load) -> Outcome<()> {
    let mut rounds = Rounds::new(options.seed);
    for round in 1..=options.kills {
        // A crowded machine may have evicted a node meanwhile.
        await_whole(nodes, "the cluster between two faults")?;
        let fault = Fault::draw(nodes, options, &mut rounds.random)?;
        let result = rounds.run(nodes, load, &fault);
        result.explain(format!("round {round}, seed {}, {fault}", options.seed))?;
    }
    println!("\n{rounds}");
    rounds.figures.judge(options.gap_max_ms)
}

/// The rounds of a run: a fault, the return of the node, and a check.
struct Rounds {
    random: Random,
    count: u32,
    figures: Figures,
    balances: Balances,
    acknowledged: usize,
}

impl Rounds {
    fn new(seed: u64) -> Rounds {
        let (random, balances) = (Random::new(seed), first_balances());
        Rounds { random, count: 0, figures: Figures::default(), balances, acknowledged: 0 }
    }

    fn run(&mut self, nodes: &mut Nodes, load: &Load, fault: &Fault) -> Outcome<()> {
        self.count += 1;
        let (measured, outcomes) = one_fault(nodes, load, fault, &mut self.random)?;
        self.balances = check_whole(nodes, &outcomes, &self.balances)?;
        println!(
            "{} at {:.3} s: {fault} {}: {measured}, {} acknowledged, {} unknown",
            self.count,
            measured.at.as_secs_f64(),
            fault.node,
            outcomes.acknowledged.len(),
            outcomes.unknown
        );
        self.acknowledged += outcomes.acknowledged.len();
        self.figures.add(fault.to_string(), measured);
        forget(nodes, &self.balances)?;
        load.resume();
        Ok(())
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounds { count, acknowledged, figures, .. } = self;
        write!(out, "{count} rounds, {acknowledged} acknowledged transfers, none lost\n\n{figures}")
    }
}

/// Checks all data nodes. A node that was evicted meanwhile counts when it has its rows again.
fn check_whole(nodes: &mut Nodes, outcomes: &Outcomes, balances: &Balances) -> Outcome<Balances> {
    unless_evicted(nodes, "a check", |nodes| check(&nodes.with_role(Role::Data), outcomes, balances))
}

/// Does something that needs all nodes. A crowded machine may evict one meanwhile: then it is done again once
/// all are back.
fn unless_evicted<T>(nodes: &mut Nodes, what: &str, act: impl Fn(&Nodes) -> Outcome<T>) -> Outcome<T> {
    loop {
        let restarts = nodes.restarts;
        let result = act(nodes);
        if result.is_ok() {
            return result;
        }
        sleep_watching(nodes, EFFECT)?;
        if nodes.restarts == restarts {
            return result;
        }
        await_whole(nodes, &format!("the cluster during {what}"))?;
    }
}

/// Deletes the transfers that were checked.
fn forget(nodes: &mut Nodes, balances: &Balances) -> Outcome<()> {
    let mut session = connect(nodes.with_role(Role::Data)[0], STATEMENT_MAX).explain("a data node")?;
    let end = Instant::now() + RETURN_MAX;
    while let Err(error) = session.query("DELETE FROM bank.transfer") {
        if Instant::now() > end {
            return Err(Failure::new(format!("DELETE: {error}")));
        }
        sleep_watching(nodes, LOOK_INTERVAL)?;
        if let Ok(again) = connect(nodes.with_role(Role::Data)[0], STATEMENT_MAX) {
            session = again;
        }
    }
    match balances.values().sum::<i64>() == (ACCOUNTS * BALANCE) as i64 {
        true => Ok(()),
        false => Err(Failure::new("money is lost")),
    }
}

/// What one fault did.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The time of the fault, as the logs have it.
    pub at: Duration,
    /// The longest time without an acknowledgement to any client, in the time before.
    pub quiet: Duration,
    /// The same after the fault.
    pub gap: Duration,
    /// The longest time of one client without an acknowledgement.
    pub wait: Duration,
    /// The longest time without an acknowledgement to any client while the node returns.
    pub return_gap: Duration,
    /// The time from the start of the process, or from the end of the fault, until all nodes serve.
    pub back: Duration,
}

/// Makes a fault under load, and waits until all nodes are back. The clients pause at the end.
fn one_fault(nodes: &mut Nodes, load: &Load, fault: &Fault, random: &mut Random) -> Outcome<(Measured, Outcomes)> {
    sleep_watching(nodes, QUIET + Duration::from_millis(random.below(200)))?;
    let (begin, at) = (Instant::now(), nodes.time());
    match fault.way {
        Way::Kill => nodes.kill(fault.node)?,
        Way::Cut => nodes.network.set_cable(fault.node, false)?,
        Way::Stop => nodes.signal(fault.node, Signal::STOP),
        Way::Replace => nodes.stop(fault.node)?,
    }
    sleep_watching(nodes, EFFECT + Duration::from_millis(random.below(700)))?;
    let restart = Instant::now();
    match fault.way {
        Way::Kill | Way::Replace => nodes.start(fault.node)?,
        Way::Cut => nodes.network.set_cable(fault.node, true)?,
        Way::Stop => nodes.signal(fault.node, Signal::CONT),
    }
    if fault.is_twice {
        sleep_watching(nodes, AGAIN_MAX.mul_f64(random.below(1000) as f64 / 1000.0))?;
        nodes.kill(fault.node)?;
        nodes.start(fault.node)?;
    }
    await_whole(nodes, "the return of the node")?;
    let end = Instant::now();
    sleep_watching(nodes, Duration::from_millis(100))?;
    if !load.pause(PAUSE_MAX) {
        return Err(Failure::new("a client waits without end"));
    }
    let outcomes = std::mem::take(&mut *load.outcomes.lock().expect("no client has panicked"));
    let times = &outcomes.times;
    let measured = Measured {
        at,
        quiet: longest_gap(times, begin - QUIET, begin).min(QUIET),
        gap: longest_gap(times, begin, restart),
        wait: longest_wait(times, begin, restart),
        return_gap: longest_gap(times, restart, end),
        back: end - restart,
    };
    Ok((measured, outcomes))
}

/// Sleeps, and starts processes again that were evicted.
fn sleep_watching(nodes: &mut Nodes, time: Duration) -> Outcome<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        nodes.supervise()?;
        thread::sleep(LOOK_INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn await_whole(nodes: &mut Nodes, what: &str) -> Outcome<()> {
    let end = Instant::now() + RETURN_MAX;
    loop {
        nodes.supervise()?;
        let Some(missing) = nodes.missing() else { return Ok(()) };
        if Instant::now() > end {
            return Err(Failure::new(format!("{what} does not end: {missing}")));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}
