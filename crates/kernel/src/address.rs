//! Logical addresses of blocks: node, module and instance, never a thread.

use std::fmt;

use crate::module::ModuleId;

/// A node of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u8);

/// The receiver or sender of a signal: a block. Only the kernel knows which thread runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C, align(4))]
pub struct Address {
    /// The node, this one or another.
    pub node: NodeId,
    /// The module, which is the kind of block.
    pub module: ModuleId,
    /// Number of the instance on its node, from 0.
    pub instance: u16,
}

impl Address {
    /// The address of an instance of a module on a node.
    #[inline]
    pub fn new(node: NodeId, module: impl Into<ModuleId>, instance: u16) -> Self {
        Self { node, module: module.into(), instance }
    }

    /// All parts in one word, for traces and digests. The node is the low byte, then module, then instance.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.node.0 as u32 | (self.module.number() as u32) << 8 | (self.instance as u32) << 16
    }

    /// Reverses [`Address::to_bits`]. `None` if the module number is out of range.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let module = (bits >> 8) as u8;
        let is_module = usize::from(module) < ModuleId::COUNT;
        is_module.then(|| Self::new(NodeId(bits as u8), ModuleId::new(module), (bits >> 16) as u16))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}.{}", self.node.0, self.module.number(), self.instance)
    }
}
