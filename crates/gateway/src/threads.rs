//! The load figures that threads publish, and the settings of spinning and sending that sessions may change
//! at run time.
//!
//! Crate `sql` shows and sets them (`junctor_info`, system variables) without naming the kernel.

pub use junctor_kernel::scheduler::load::ThreadState;
pub use junctor_kernel::{
    SendAssistance, SendSettings, SendStatus, SpinChoice, SpinMethod, Time, Usage as ThreadUsage, Window,
};
