//! One node of a simulation: its threads and its part of the world.

use std::sync::Arc;

use crate::address::Address;
use crate::block::{Host, Signal};
use crate::context::Time;
use crate::crash_point::CrashWatch;
use crate::directory::{Directory, NodeLayout};
use crate::envelope::SocketParcel;
use crate::limit::KernelLimits;
use crate::require;
use crate::scheduler::run::{Engine, Services, World};
use crate::scheduler::send::SendSettings;
use crate::scheduler::spin::SpinSettings;
use crate::world::WorldRequest;

use super::file::VirtualFiles;
use super::network::QueuedInput;
use super::socket::VirtualSockets;

pub(super) struct SimulatedNode<S: Signal, H: Host<S>> {
    pub(super) layout: NodeLayout,
    pub(super) directory: Arc<Directory>,
    /// Empty while the node is down.
    pub(super) threads: Vec<SimulatedThread<S, H>>,
    pub(super) world: NodeWorld,
    pub(super) started: Time,
    /// Number of starts and ends. An event is ignored if this number has changed since the event was
    /// scheduled.
    pub(super) life: u32,
    /// Number of starts.
    pub(super) incarnation: u32,
    /// Counts the hits of crash points over all runs of the node.
    pub(super) crash_watch: Arc<CrashWatch>,
    /// How the node ends at the armed hit of a crash point.
    pub(super) armed_end: NodeEnd,
    /// Until when its process is stopped.
    pub(super) paused_until: Time,
}

pub(super) struct SimulatedThread<S: Signal, H: Host<S>> {
    pub(super) engine: Engine<S, H>,
    /// True between a turn and its flush.
    pub(super) is_busy: bool,
    /// The scheduled next turn, if any.
    pub(super) next_run: Option<Time>,
    /// Input of links for the next turn.
    pub(super) link_input: Vec<QueuedInput>,
}

/// How a node ends. In every case its memory and its connections are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEnd {
    /// The process ends, as by `kill -9` or after a clean stop. The operating system keeps all writes that it
    /// has accepted.
    Process,
    /// The machine loses power. Writes that were not synced may be lost, whole or in part.
    Power,
}

/// The sockets and files of one node.
pub(super) struct NodeWorld {
    pub(super) directory: Arc<Directory>,
    pub(super) limits: KernelLimits,
    pub(super) sockets: VirtualSockets,
    pub(super) files: VirtualFiles,
    pub(super) now: Time,
    pub(super) stop_requested: bool,
    /// Whether a block has ended the links to other nodes.
    pub(super) are_links_over: bool,
    /// Why a block stopped the node at once, if one did.
    pub(super) halted: Option<Box<str>>,
}

impl World for NodeWorld {
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        self.sockets.carry_out(request, &self.limits, &self.directory, services);
    }

    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        let refusal = self.files.accept(from, request, self.now);
        services.events.extend(refusal.map(|event| (from, event)));
    }

    fn socket_parcel(&mut self, parcel: SocketParcel, _services: &mut Services<'_>) {
        require!(false, "virtual sockets need no {parcel:?}");
    }

    fn set_spinning(&mut self, _settings: &SpinSettings) {
        // Virtual time passes immediately, so spinning would catch nothing.
    }

    fn set_sending(&mut self, _settings: &SendSettings) {
        // The order of turns already draws which thread writes to a virtual socket.
    }

    fn end_links(&mut self) {
        self.are_links_over = true;
    }

    fn stop(&mut self) {
        self.stop_requested = true;
    }

    fn halt(&mut self, message: &str) {
        self.halted.get_or_insert(message.into());
    }
}
