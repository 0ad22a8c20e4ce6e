//! Turns the entries of a `ThreadConfig` into threads, and puts modules without threads of their own onto
//! others.
//!
//! | count 0 of | places the module |
//! |---|---|
//! | main and rep | in the first recv thread |
//! | main or rep | with the other of the two, in the thread `main_rep` |
//! | tc, ldm, sql | one in each recv thread |
//! | query | one in each thread that carries ldm |
//! | io | in the thread that carries main |
//! | log | in the thread that carries main; it never has a thread of its own |
//! | work | nowhere: sessions run their long queries where they are. Each work thread also has an sql block |
//! | send | nowhere: recv threads write to their sockets, and idle threads help them |

use super::cpu_list::CpuList;
use super::plan::{CpuBinding, ThreadPlan, ThreadPriority};
use super::thread_config::{EntryBinding, SPIN_EFFECTIVE_US_MAX, ThreadConfig, ThreadCounts, ThreadEntry};
use junctor_signals::Module;

/// The order of threads: first those that coordinate, then roughly along the path of a request. The sql
/// blocks of work threads have the last numbers.
const THREAD_ORDER: [Module; 10] = [
    Module::Main,
    Module::Rep,
    Module::Recv,
    Module::Sql,
    Module::Tc,
    Module::Ldm,
    Module::Query,
    Module::Work,
    Module::Send,
    Module::Io,
];

/// The threads of `config` with all modules placed; groups and reader slots are not set yet.
pub(super) fn fold(config: &ThreadConfig) -> Vec<ThreadPlan> {
    let counts = config.counts();
    let main_rep = counts.get(Module::Main) + counts.get(Module::Rep) == 1;
    let mut threads = Vec::new();
    for module in THREAD_ORDER {
        for (instance, mut thread) in own_threads(config, module, counts.get(module)).into_iter().enumerate() {
            thread.index = threads.len() as u16;
            thread.name = match module {
                Module::Main | Module::Rep if main_rep => "main_rep".to_owned(),
                Module::Main | Module::Rep => module.name().to_owned(),
                _ => format!("{module}{instance}"),
            };
            thread.modules.push((module, 0));
            if module == Module::Work {
                thread.modules.push((Module::Sql, 0));
                // An idle thread of low priority must not write the answers of others.
                thread.nosend = true;
                if thread.priority == ThreadPriority::Normal {
                    thread.priority = ThreadPriority::Background;
                }
            }
            threads.push(thread);
        }
    }
    place_folded(&mut threads, &counts);
    number_instances(&mut threads);
    threads
}

fn place_folded(threads: &mut [ThreadPlan], counts: &ThreadCounts) {
    match (counts.get(Module::Main), counts.get(Module::Rep)) {
        (0, 0) => {
            let first_recv = threads.iter_mut().find(|thread| thread.carries(Module::Recv));
            if let Some(thread) = first_recv {
                thread.modules.extend([(Module::Main, 0), (Module::Rep, 0)]);
            }
        }
        (0, _) => add_beside(threads, Module::Rep, Module::Main),
        (_, 0) => add_beside(threads, Module::Main, Module::Rep),
        _ => {}
    }
    for module in [Module::Tc, Module::Ldm, Module::Sql] {
        if counts.get(module) == 0 {
            add_beside(threads, Module::Recv, module);
        }
    }
    if counts.get(Module::Query) == 0 {
        add_beside(threads, Module::Ldm, Module::Query);
    }
    if counts.get(Module::Io) == 0 {
        // The workers of files then run wherever the operating system puts them.
        add_beside(threads, Module::Main, Module::Io);
    }
    add_beside(threads, Module::Main, Module::Log);
}

fn add_beside(threads: &mut [ThreadPlan], host: Module, guest: Module) {
    for thread in threads.iter_mut().filter(|thread| thread.carries(host)) {
        thread.modules.push((guest, 0));
    }
}

fn number_instances(threads: &mut [ThreadPlan]) {
    let mut next = [0_u16; Module::ALL.len()];
    for thread in threads {
        thread.modules.sort_unstable();
        for (module, instance) in &mut thread.modules {
            *instance = next[module.index()];
            next[module.index()] += 1;
        }
    }
}

/// `count` threads for `module`, with the settings of its entries in order.
fn own_threads(config: &ThreadConfig, module: Module, count: u32) -> Vec<ThreadPlan> {
    let default = ThreadEntry::bare(super::ThreadKind::Module(module));
    let named = config.entries_of(module).flat_map(|entry| (0..entry.thread_count()).map(move |n| (entry, n)));
    // A module that is not named has no entries, and gets its default number of threads.
    let defaults = (0..count).map(|n| (&default, n));
    let entries: Vec<(&ThreadEntry, u32)> = match config.entries_of(module).next() {
        Some(_) => named.take(count as usize).collect(),
        None => defaults.collect(),
    };
    entries.into_iter().map(|(entry, n)| thread_of_entry(entry, n as usize)).collect()
}

fn thread_of_entry(entry: &ThreadEntry, n: usize) -> ThreadPlan {
    let cpu = match &entry.binding {
        Some(EntryBinding::Bind(cpus)) => cpus.numbers().get(n).map_or(CpuBinding::None, |&cpu| CpuBinding::One(cpu)),
        Some(EntryBinding::Set(cpus)) => match cpus.numbers() {
            [cpu] => CpuBinding::One(*cpu),
            numbers => CpuBinding::Set(CpuList::new(numbers.to_vec())),
        },
        None => CpuBinding::None,
    };
    let priority = match (entry.realtime, entry.thread_priority) {
        (Some(true), _) => ThreadPriority::Realtime,
        (_, Some(level)) => ThreadPriority::Level(level),
        _ => ThreadPriority::Normal,
    };
    let spin_us = entry.spin_us.map(|spin_us| spin_us.min(SPIN_EFFECTIVE_US_MAX));
    ThreadPlan { cpu, spin_us, nosend: entry.nosend.unwrap_or(false), priority, ..ThreadPlan::default() }
}
