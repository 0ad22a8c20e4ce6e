//! Which thread of a node runs which module instance.

use std::sync::Arc;

use crate::address::{Address, NodeId};
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::scheduler::load::LoadBoard;
use crate::scheduler::spin::SpinScale;

/// One thread of a node: the module instances that it runs, and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadLayout {
    /// The thread's name. The operating system shows its first 15 bytes.
    pub name: String,
    /// The instances that run here, at most one of each module.
    pub modules: Vec<(ModuleId, u16)>,
    /// The CPUs that the thread may use; empty for any.
    pub cpus: Vec<u32>,
    /// Whether the thread never writes to sockets of other threads.
    pub nosend: bool,
    /// How long the thread polls for work before it sleeps, in microseconds.
    pub spin_us: u32,
    /// Nice value, -20 to 19; `None` leaves it unchanged.
    pub nice: Option<i32>,
    /// Whether the configuration requests real-time scheduling. The kernel does not support it, so the node
    /// prints a notice at start.
    pub realtime: bool,
    /// How much CPU the thread may spend on spinning, relative to the node's setting.
    pub spin_scale: SpinScale,
    /// Whether the thread's blocks seldom have work. Such threads are preferred for writing other threads'
    /// output.
    pub is_mostly_idle: bool,
    /// Whether the operating system prefers all other threads of the node to this one. Then other threads run
    /// none of its turns, and it runs none of theirs. Its long-running work does not pause.
    pub is_background: bool,
}

/// All threads of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLayout {
    /// The threads. The position of a thread is its index.
    pub threads: Vec<ThreadLayout>,
}

impl NodeLayout {
    /// One thread for each list of modules. The threads are not bound to CPUs and do not spin.
    pub fn new<M: Into<ModuleId> + Copy>(threads: &[&[(M, u16)]]) -> Self {
        let layout = |(index, modules): (usize, &&[(M, u16)])| ThreadLayout {
            name: format!("thread-{index}"),
            modules: modules.iter().map(|&(module, instance)| (module.into(), instance)).collect(),
            ..ThreadLayout::default()
        };
        Self { threads: threads.iter().enumerate().map(layout).collect() }
    }
}

/// Why a layout is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The layout has no thread.
    NoThread,
    /// More than [`KernelLimits::THREADS_MAX`] threads.
    TooManyThreads,
    /// Two threads run the same instance.
    Twice(ModuleId, u16),
    /// One thread runs two instances of a module.
    TwoOfOneModule(ModuleId),
    /// The instances of a module are not numbered 0, 1, ...
    Gap(ModuleId),
}

impl std::fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoThread => write!(formatter, "the layout has no thread"),
            Self::TooManyThreads => {
                write!(formatter, "the layout has more than {} threads", KernelLimits::THREADS_MAX)
            }
            Self::Twice(module, instance) => {
                write!(formatter, "instance {instance} of module {} runs on two threads", module.number())
            }
            Self::TwoOfOneModule(module) => {
                write!(formatter, "a thread runs two instances of module {}", module.number())
            }
            Self::Gap(module) => {
                write!(formatter, "the instances of module {} are not numbered 0, 1, ...", module.number())
            }
        }
    }
}

impl std::error::Error for LayoutError {}

/// Maps the module instances of one node to its threads. Immutable and shared by all threads.
#[derive(Debug)]
pub struct Directory {
    node: NodeId,
    threads: Vec<ThreadLayout>,
    instances: [u16; ModuleId::COUNT],
    /// Threads by module and instance, `stride` entries for each module; [`Directory::NO_THREAD`] marks a
    /// gap.
    thread_by_instance: Vec<u16>,
    stride: u16,
}

impl Directory {
    /// The directory of a layout, or what makes the layout invalid.
    pub fn new(node: NodeId, layout: &NodeLayout) -> Result<Self, LayoutError> {
        if layout.threads.is_empty() {
            return Err(LayoutError::NoThread);
        }
        if layout.threads.len() > KernelLimits::THREADS_MAX {
            return Err(LayoutError::TooManyThreads);
        }
        let stride = layout.threads.len() as u16;
        let mut instances = [0; ModuleId::COUNT];
        let mut thread_by_instance = vec![Self::NO_THREAD; ModuleId::COUNT * layout.threads.len()];
        for module in (0..ModuleId::COUNT as u8).map(ModuleId::new) {
            let mut found = Vec::new();
            for (index, thread) in layout.threads.iter().enumerate() {
                let mut here = thread.modules.iter().filter(|(other, _)| *other == module);
                found.extend(here.next().map(|&(_, instance)| (instance, index as u16)));
                if here.next().is_some() {
                    return Err(LayoutError::TwoOfOneModule(module));
                }
            }
            found.sort_unstable();
            for (wanted, &(instance, thread)) in found.iter().enumerate() {
                if usize::from(instance) < wanted {
                    return Err(LayoutError::Twice(module, instance));
                }
                if usize::from(instance) > wanted {
                    return Err(LayoutError::Gap(module));
                }
                thread_by_instance[usize::from(module.number()) * usize::from(stride) + wanted] = thread;
            }
            instances[usize::from(module.number())] = found.len() as u16;
        }
        Ok(Self { node, threads: layout.threads.clone(), instances, thread_by_instance, stride })
    }

    /// Marks an instance that does not exist.
    pub(crate) const NO_THREAD: u16 = u16::MAX;

    /// The node of this directory.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The threads, by index.
    pub fn threads(&self) -> &[ThreadLayout] {
        &self.threads
    }

    /// Number of instances of `module` on this node.
    #[inline]
    pub fn instances(&self, module: impl Into<ModuleId>) -> u16 {
        self.instances[usize::from(module.into().number())]
    }

    /// Index of the thread that runs the instance; `None` if the instance does not exist.
    #[inline]
    pub fn thread_of(&self, module: impl Into<ModuleId>, instance: u16) -> Option<u16> {
        Some(self.thread_or_none(module.into(), instance)).filter(|&thread| thread != Self::NO_THREAD)
    }

    /// [`Directory::thread_of`] with [`Directory::NO_THREAD`] in place of `None`.
    #[inline(always)]
    pub(crate) fn thread_or_none(&self, module: ModuleId, instance: u16) -> u16 {
        if instance >= self.stride {
            return Self::NO_THREAD;
        }
        let position = usize::from(module.number()) * usize::from(self.stride) + usize::from(instance);
        self.thread_by_instance.get(position).copied().unwrap_or(Self::NO_THREAD)
    }

    /// The instance of `module` that runs on `thread`, if any.
    pub fn instance_on(&self, module: impl Into<ModuleId>, thread: u16) -> Option<u16> {
        let module = module.into();
        let modules = &self.threads.get(usize::from(thread))?.modules;
        modules.iter().find(|(other, _)| *other == module).map(|&(_, instance)| instance)
    }

    /// Whether both instances exist and run on the same thread.
    pub fn share_thread(&self, one: (impl Into<ModuleId>, u16), other: (impl Into<ModuleId>, u16)) -> bool {
        let thread = self.thread_of(one.0, one.1);
        thread.is_some() && thread == self.thread_of(other.0, other.1)
    }

    /// Whether this is a background thread.
    pub(crate) fn is_background(&self, thread: u16) -> bool {
        self.threads.get(usize::from(thread)).is_some_and(|thread| thread.is_background)
    }

    /// Address of an instance on this node.
    pub fn address(&self, module: impl Into<ModuleId>, instance: u16) -> Address {
        Address::new(self.node, module, instance)
    }
}

/// The module instances of a thread, and the node around it. The thread's blocks are created from this.
#[derive(Clone, Debug)]
pub struct ThreadAssignment {
    /// This node.
    pub node: NodeId,
    /// Index of the thread in the layout.
    pub thread: u16,
    /// Name of the thread.
    pub name: String,
    /// The instances to create, ordered by module number.
    pub modules: Vec<(ModuleId, u16)>,
    /// All instances of the node.
    pub directory: Arc<Directory>,
    /// Published load figures of the node's threads.
    pub loads: Arc<LoadBoard>,
    /// Seed for hashes. It differs between threads, and between starts of a real node.
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ModuleId = ModuleId::new(0);
    const B: ModuleId = ModuleId::new(1);
    const ABSENT: ModuleId = ModuleId::new(15);

    #[test]
    fn only_existing_instances_have_a_thread() {
        let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (A, 1)], &[(A, 0)], &[(B, 0)]]);
        let directory = Directory::new(NodeId(1), &layout).unwrap();
        assert_eq!(directory.thread_of(A, 0), Some(1));
        assert_eq!(directory.thread_of(A, 1), Some(0));
        assert_eq!(directory.thread_of(A, 2), None);
        assert_eq!(directory.thread_of(B, 0), Some(2));
        assert_eq!(directory.thread_of(ABSENT, 0), None);
        assert_eq!(directory.thread_of(B, u16::MAX), None);
        assert_eq!(directory.instances(A), 2);
        assert_eq!(directory.instance_on(A, 0), Some(1));
    }

    #[test]
    fn layouts_with_missing_or_duplicate_instances_are_refused() {
        let refused =
            |threads: &[&[(ModuleId, u16)]]| Directory::new(NodeId(1), &NodeLayout::new(threads)).unwrap_err();
        assert_eq!(refused(&[]), LayoutError::NoThread);
        assert_eq!(refused(&[&[(A, 1)]]), LayoutError::Gap(A));
        assert_eq!(refused(&[&[(A, 0)], &[(A, 0)]]), LayoutError::Twice(A, 0));
        assert_eq!(refused(&[&[(A, 0), (A, 1)]]), LayoutError::TwoOfOneModule(A));
    }
}
