//! Read groups: which threads may read which partitions without asking the owner.
//!
//! A group has at most [`READER_SLOTS_MAX`] reader slots, because a writer checks every slot of the guard.
//! Threads that share an L3 cache are grouped, so that rows are likely to be in the reader's cache.

use std::collections::BTreeMap;

use super::error::UnsatisfiablePlacement;
use super::plan::{CpuBinding, READER_SLOTS_MAX, ThreadPlan};
use super::topology::Topology;
use junctor_signals::Module;

/// Sets the read group and the reader slot of every thread. Query threads get slots first. A recv thread
/// without a slot sends its reads to other threads, and a notice says so. A query thread without a slot would
/// have no work, so that is an error.
pub(super) fn assign(
    threads: &mut [ThreadPlan],
    topology: &Topology,
    notices: &mut Vec<String>,
) -> Result<(), UnsatisfiablePlacement> {
    let pools = pools(threads, topology, notices);
    let pool_count = pools.iter().max().map_or(0, |&last| last + 1);
    let mut group_base = 0;
    for pool in 0..pool_count {
        let members: Vec<usize> = (0..threads.len()).filter(|&index| pools[index] == pool).collect();
        group_base += split(threads, &members, group_base);
    }
    for group in 0..group_base {
        hand_out_slots(threads, group, notices)?;
    }
    Ok(())
}

/// Divides the threads into pools, which `split` then divides into read groups. Returns the pool of each
/// thread. If every owner is bound to one L3 cache, each such cache has a pool; otherwise there is a single
/// pool.
fn pools(threads: &[ThreadPlan], topology: &Topology, notices: &mut Vec<String>) -> Vec<usize> {
    let l3_groups: Vec<Option<u32>> = threads.iter().map(|thread| l3_group(thread, topology)).collect();
    let owner_caches: Option<Vec<u32>> =
        threads.iter().zip(&l3_groups).filter(|(thread, _)| is_owner(thread)).map(|(_, &cache)| cache).collect();
    let Some(mut owner_caches) = owner_caches else { return vec![0; threads.len()] };
    owner_caches.sort_unstable();
    owner_caches.dedup();
    let pool_of_cache: BTreeMap<u32, usize> = owner_caches.into_iter().zip(0..).collect();
    let mut pools: Vec<Option<usize>> =
        l3_groups.iter().map(|cache| cache.and_then(|cache| pool_of_cache.get(&cache).copied())).collect();
    let mut reader_counts = vec![0_usize; pool_of_cache.len()];
    for (thread, pool) in threads.iter().zip(&pools) {
        if let (true, Some(pool)) = (is_reader(thread), pool) {
            reader_counts[*pool] += 1;
        }
    }
    let mut across = Vec::new();
    for index in in_slot_order(threads).filter(|&index| pools[index].is_none()).collect::<Vec<_>>() {
        let pool = least(&reader_counts);
        reader_counts[pool] += 1;
        pools[index] = Some(pool);
        if l3_groups[index].is_some() {
            across.push(threads[index].name.as_str());
        }
    }
    if !across.is_empty() {
        notices.push(format!("no ldm thread shares the L3 cache of {}: reads cross caches", across.join(", ")));
    }
    pools.into_iter().map(|pool| pool.unwrap_or(0)).collect()
}

/// Splits a pool into as many read groups as its readers need, at most one for each owner. Returns the number
/// of groups.
fn split(threads: &mut [ThreadPlan], members: &[usize], group_base: u16) -> u16 {
    let owners: Vec<usize> = members.iter().copied().filter(|&index| is_owner(&threads[index])).collect();
    let reader_count = members.iter().filter(|&&index| is_reader(&threads[index])).count();
    let group_count = reader_count.div_ceil(READER_SLOTS_MAX).min(owners.len()).max(1);
    let mut reader_counts = vec![0_usize; group_count];
    for (order, &index) in owners.iter().enumerate() {
        threads[index].group = group_base + (order % group_count) as u16;
        reader_counts[order % group_count] += usize::from(is_reader(&threads[index]));
    }
    let slot_order: Vec<usize> = in_slot_order(threads).collect();
    for index in slot_order.into_iter().filter(|index| members.contains(index)) {
        if !is_owner(&threads[index]) {
            let group = least(&reader_counts);
            reader_counts[group] += 1;
            threads[index].group = group_base + group as u16;
        }
    }
    for &index in members {
        if !is_owner(&threads[index]) && !is_reader(&threads[index]) {
            threads[index].group = group_base;
        }
    }
    group_count as u16
}

fn hand_out_slots(
    threads: &mut [ThreadPlan],
    group: u16,
    notices: &mut Vec<String>,
) -> Result<(), UnsatisfiablePlacement> {
    let candidates: Vec<usize> = in_slot_order(threads).filter(|&index| threads[index].group == group).collect();
    let mut without_slot = Vec::new();
    for (slot, &index) in candidates.iter().enumerate() {
        let thread = &mut threads[index];
        if slot < READER_SLOTS_MAX {
            thread.reader_slot = Some(slot as u8);
        } else if thread.carries(Module::Query) {
            let message = "too many query threads for the ldm threads beside them: one group of partitions has \
                           {} reader slots, and a group needs an ldm thread; use fewer query or more ldm threads";
            return Err(UnsatisfiablePlacement::new(message.replace("{}", &READER_SLOTS_MAX.to_string())));
        } else {
            without_slot.push(thread.name.clone());
        }
    }
    if !without_slot.is_empty() {
        notices.push(format!(
            "no reader slot is left for {}: reads there are always handed over",
            without_slot.join(", ")
        ));
    }
    Ok(())
}

/// Threads that may read partitions of others: first those that carry query, then the other recv threads.
fn in_slot_order(threads: &[ThreadPlan]) -> impl Iterator<Item = usize> {
    let query = (0..threads.len()).filter(|&index| threads[index].carries(Module::Query));
    let others = (0..threads.len()).filter(|&index| !threads[index].carries(Module::Query));
    query.chain(others.filter(|&index| is_reader(&threads[index])))
}

fn is_owner(thread: &ThreadPlan) -> bool {
    thread.carries(Module::Ldm)
}

fn is_reader(thread: &ThreadPlan) -> bool {
    thread.carries(Module::Query) || thread.carries(Module::Recv)
}

fn least(counts: &[usize]) -> usize {
    (0..counts.len()).min_by_key(|&index| counts[index]).unwrap_or(0)
}

/// The L3 cache that all CPUs of a thread share, if any.
fn l3_group(thread: &ThreadPlan, topology: &Topology) -> Option<u32> {
    let cache = |number: u32| topology.cpu(number).map(|cpu| cpu.l3_group);
    match &thread.cpu {
        CpuBinding::None => None,
        CpuBinding::One(cpu) => cache(*cpu),
        CpuBinding::Set(cpus) => {
            let first = cache(*cpus.numbers().first()?)?;
            cpus.numbers().iter().all(|&cpu| cache(cpu) == Some(first)).then_some(first)
        }
    }
}
