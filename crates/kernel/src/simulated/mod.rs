//! The simulated world: the same hosts and the same turn under a seeded scheduler, with virtual time,
//! sockets, files and links between nodes. Equal seeds and equal calls give equal runs and equal digests.

mod delivery;
mod file;
mod link;
mod network;
mod node;
mod simulation;
mod socket;

pub use delivery::{Delivery, InFlight};
pub use file::{Disk, DiskCrash, DiskFault, DiskFaults, DiskOperation, FaultTime, SlowWindow};
pub use network::{NetworkFaults, NetworkOptions};
pub use node::NodeEnd;
pub use simulation::{ClientSocket, Simulation, SimulationOptions};
pub use socket::SocketFaults;

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
