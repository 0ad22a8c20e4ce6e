//! Converts a placement to the kernel's layout.

use junctor_kernel::{NodeLayout, SpinScale, ThreadLayout};
use junctor_signals::Module;

use super::plan::{CpuBinding, PlacementPlan, ThreadPlan, ThreadPriority};

impl From<&PlacementPlan> for NodeLayout {
    fn from(plan: &PlacementPlan) -> Self {
        let layout = |thread: &ThreadPlan| ThreadLayout {
            name: thread.name.clone(),
            modules: thread.modules.iter().map(|&(module, instance)| (module.into(), instance)).collect(),
            cpus: match &thread.cpu {
                CpuBinding::None => Vec::new(),
                CpuBinding::One(cpu) => vec![*cpu],
                CpuBinding::Set(cpus) => cpus.numbers().to_vec(),
            },
            spin_us: thread.spin_us.unwrap_or(0),
            nosend: thread.nosend,
            nice: thread.priority.nice(),
            realtime: thread.priority == ThreadPriority::Realtime,
            spin_scale: spin_scale(thread),
            is_mostly_idle: thread.modules.iter().all(|(module, _)| matches!(module, Module::Main | Module::Rep)),
            is_background: thread.carries(Module::Work),
        };
        Self { threads: plan.threads.iter().map(layout).collect() }
    }
}

/// The spin allowance of a thread, by the modules that it carries.
///
/// Source: RonDB's factors by kind of thread. Every request passes through a receive thread, so spinning
/// there saves latency for all of them.
fn spin_scale(thread: &ThreadPlan) -> SpinScale {
    let (base_percent, extra_percent, constant_percent) = if thread.carries(Module::Recv) {
        (150, 80, 150)
    } else if thread.carries(Module::Tc) {
        (100, 90, 140)
    } else if thread.carries(Module::Ldm) {
        (67, 120, 120)
    } else {
        (100, 100, 130)
    };
    SpinScale { base_percent, extra_percent, constant_percent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_of_a_plan_keeps_modules_cpus_and_spin_time() {
        let thread = ThreadPlan {
            name: "ldm0".to_owned(),
            modules: vec![(Module::Ldm, 0)],
            cpu: CpuBinding::One(3),
            spin_us: Some(40),
            nosend: true,
            ..Default::default()
        };
        let plan = PlacementPlan { threads: vec![thread], notices: Vec::new(), reason: String::new() };
        let wanted = ThreadLayout {
            name: "ldm0".to_owned(),
            modules: vec![(Module::Ldm.into(), 0)],
            cpus: vec![3],
            nosend: true,
            spin_us: 40,
            nice: None,
            realtime: false,
            spin_scale: SpinScale { base_percent: 67, extra_percent: 120, constant_percent: 120 },
            is_mostly_idle: false,
            is_background: false,
        };
        assert_eq!(NodeLayout::from(&plan).threads, [wanted]);
    }
}
