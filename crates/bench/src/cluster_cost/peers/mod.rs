//! MariaDB with Galera and Apache Ignite beside the cluster, in turns: throughput, latency, CPU time, and the
//! gap of service after SIGKILL of a node with data. A system that is not available is left out.
//!
//! In reading order: [`peer`] (the systems), [`outage`] (a kill).

mod outage;
mod peer;

use std::time::Duration;

use outage::{Outage, outage};
use peer::{Access, Figures, Peer, Victim};

use super::load::Operation;
use super::options::ClusterCostOptions;
use crate::report::Table;
use crate::statistics::{median, percentile};
use crate::{Failure, Outcome};

/// Time of the first load of each kind, because programs in Java are slow until they are compiled.
const WARM_UP: Duration = Duration::from_secs(5);
const VICTIMS: [Victim; 2] = [Victim::Used, Victim::Other];

/// Measures all, and prints tables.
///
/// # Errors
/// A cluster fails, or Junctor loses an acknowledged update.
pub fn run(options: &ClusterCostOptions) -> Outcome<()> {
    let mut peers = vec![Peer::junctor(options, "memory")?, Peer::junctor(options, "disk")?];
    for (name, peer) in [("MariaDB with Galera", Peer::galera(options)), ("Apache Ignite", Peer::ignite(options))] {
        match peer {
            Ok(peer) => peers.push(peer),
            Err(reason) => println!("{name}: not available (sh tests/install-tools.sh cluster): {reason}\n"),
        }
    }
    loads(options, &mut peers)?;
    kills(options, &mut peers)
}

/// The sides of the comparison: a peer, by its place, with one of its ways of access.
fn sides(peers: &[Peer]) -> Vec<(usize, Access)> {
    let of_peer = |(place, peer): (usize, &Peer)| peer.accesses().iter().map(move |access| (place, *access)).collect();
    peers.iter().enumerate().flat_map(|peer| -> Vec<(usize, Access)> { of_peer(peer) }).collect()
}

fn loads(options: &ClusterCostOptions, peers: &mut [Peer]) -> Outcome<()> {
    let columns = ["operation", "clients", "", "per s", "ratio", "p50 us", "p99 us", "conflicts", "CPU us"];
    let mut table = Table::new(&columns);
    let sides = sides(peers);
    for operation in [Operation::Select, Operation::Update, Operation::Transfer] {
        for clients in [1, options.clients] {
            let mut runs = vec![Vec::new(); sides.len()];
            // The first round is not counted.
            for round in 0..=options.rounds {
                let time = if round == 0 { WARM_UP } else { options.time() };
                for (&(place, access), runs) in sides.iter().zip(&mut runs) {
                    let figures = peers[place].load(access, operation, (clients, time))?;
                    runs.extend(figures.filter(|_| round > 0));
                }
            }
            for (&(place, access), own) in sides.iter().zip(&runs) {
                let mut cells = vec![operation.name().to_owned(), clients.to_string(), peers[place].name(access)];
                cells.extend(cells_of(own, &runs[0]));
                table.row(cells);
            }
        }
    }
    println!("{table}");
    println!("ratio: operations per second by those of the first row of the operation, in the same round");
    if sides.iter().any(|(_, access)| *access == Access::Key) {
        println!("Apache Ignite, SQL, two updates: not available, because statements are no part of a transaction");
    }
    println!();
    peers.iter_mut().try_for_each(Peer::check)
}

fn cells_of(runs: &[Figures], first: &[Figures]) -> Vec<String> {
    let of = |figure: &dyn Fn(&Figures) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
    let ratios: Vec<f64> = runs.iter().zip(first).map(|(run, first)| run.per_s / first.per_s).collect();
    if runs.is_empty() {
        return vec!["-".into(); 6];
    }
    vec![
        format!("{:.0}", of(&|run| run.per_s)),
        format!("{:.2}", median(&ratios)),
        format!("{:.0}", of(&|run| run.p50_us)),
        format!("{:.0}", of(&|run| run.p99_us)),
        runs.iter().map(|run| run.conflicts).sum::<u64>().to_string(),
        format!("{:.1}", of(&|run| run.cpu_us)),
    ]
}

fn kills(options: &ClusterCostOptions, peers: &mut [Peer]) -> Outcome<()> {
    let mut outages = vec![[const { Vec::<Outage>::new() }; 2]; peers.len()];
    for round in 0..options.kills {
        for (kind, victim) in VICTIMS.into_iter().enumerate() {
            for (peer, outages) in peers.iter_mut().zip(&mut outages) {
                outages[kind].push(outage(options, peer, victim, round)?);
            }
        }
    }
    let columns = ["", "SIGKILL of", "kills", "quiet p99 ms", "gap p50 ms", "gap p99 ms", "updates looked for", "lost"];
    let mut table = Table::new(&columns);
    let mut lost_here = 0;
    for (peer, outages) in peers.iter().zip(&outages) {
        for (victim, outages) in VICTIMS.into_iter().zip(outages) {
            let [checked, lost] =
                [|it: &Outage| it.checked, |it: &Outage| it.lost].map(|of| outages.iter().map(of).sum::<u64>());
            lost_here += if peer.is_ours() { lost } else { 0 };
            for (group, access) in peer.accesses().iter().enumerate() {
                let spread = |part: fn(&outage::Gap) -> Duration, percent| {
                    let mut values: Vec<u32> =
                        outages.iter().map(|it| part(&it.gaps[group]).as_millis() as u32).collect();
                    percentile(&mut values, percent).to_string()
                };
                let mut cells = vec![peer.name(*access), peer.name_of(victim).into(), outages.len().to_string()];
                cells.extend([spread(|gap| gap.quiet, 99), spread(|gap| gap.gap, 50), spread(|gap| gap.gap, 99)]);
                cells.extend([checked, lost].map(|count| count.to_string()));
                table.row(cells);
            }
        }
    }
    println!("{table}");
    peers.iter_mut().try_for_each(Peer::check)?;
    match lost_here {
        0 => Ok(()),
        lost => Err(Failure::new(format!("Junctor has lost {lost} acknowledged updates"))),
    }
}
