//! The load figures that threads publish, and the spin and send settings that sessions may change at run
//! time.
//!
//! Crate `sql` shows and sets these (`junctor_info`, system variables) without depending on the kernel.

pub use junctor_kernel::scheduler::load::ThreadState;
pub use junctor_kernel::{
    Duration, NodeId, RequestRate, SendAssistance, SendSettings, SendStatus, SpinChoice, SpinMethod, Time,
    Usage as ThreadUsage, Window,
};
