//! The part of a thread's engine for links to other nodes.

use std::sync::Arc;

use crate::block::{Host, Priority, Signal};
use crate::context::Time;
use crate::invariant::fail;
use crate::transport::board::{LinkBoard, LinkRoutes, MembershipChange};
use crate::transport::thread_links::{LinkInput, LinkSockets, Transport};

use super::run::{Engine, HIGH, NORMAL};

/// The links of a node as one of its threads sees them.
pub(super) struct EngineLinks<S> {
    /// The channels of this thread, if it owns any.
    own: Option<Box<dyn Transport<S>>>,
    board: Arc<LinkBoard>,
}

impl<S: Signal, H: Host<S>> Engine<S, H> {
    /// Connects the thread with other nodes; `own` are the channels that it owns, if any.
    pub(crate) fn set_links(
        &mut self,
        own: Option<Box<dyn Transport<S>>>,
        routes: Arc<LinkRoutes>,
        board: Arc<LinkBoard>,
    ) {
        self.outbox.set_routes(routes);
        self.outbox.set_link_work(own.is_some());
        self.links = Some(EngineLinks { own, board });
    }

    /// Whether the thread owns channels to other nodes.
    pub(crate) fn owns_links(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.own.is_some())
    }

    /// Whether [`Engine::work_links`] has something to do.
    #[inline]
    pub(crate) fn has_link_work(&self) -> bool {
        self.outbox.has_link_work()
    }

    /// Makes [`Engine::work_links`] look what is due.
    pub(crate) fn want_link_work(&mut self) {
        self.outbox.set_link_work(true);
    }

    /// When [`Engine::work_links`] must be called at the latest.
    pub(crate) fn links_due(&self) -> Time {
        let own = self.links.as_ref().and_then(|links| links.own.as_ref());
        own.map_or(Time(u64::MAX), |own| own.due())
    }

    /// Sends signals to other nodes, and does what the links' timers want.
    #[cold]
    pub(crate) fn work_links(&mut self, now: Time, sockets: &mut dyn LinkSockets) {
        let Some(EngineLinks { own: Some(own), .. }) = &mut self.links else {
            fail("a node without links sends to itself only", format_args!("{}", self.outbox.own()));
        };
        own.work(now, &mut self.outbox, &mut self.buffers, sockets);
        self.return_link_credits();
    }

    /// Takes input of the links, and handles the signals in it.
    pub(crate) fn receive_from_node(&mut self, input: LinkInput<'_>, now: Time) {
        if let Some(EngineLinks { own: Some(own), .. }) = &mut self.links {
            own.receive(input, now, &mut self.outbox, &mut self.buffers);
            self.return_link_credits();
        }
        self.drain_local();
    }

    /// Returns the credits of other threads' signals that went to other nodes.
    fn return_link_credits(&mut self) {
        let Some(EngineLinks { own: Some(own), .. }) = &mut self.links else { return };
        let own_thread = self.assignment.thread;
        for (from, priority) in own.take_sent().drain(..) {
            let thread = self.assignment.directory.thread_or_none(from.module, from.instance);
            if thread == own_thread {
                continue;
            }
            // `incoming` has no entry for the thread itself, so positions after it are one less than the
            // index.
            let position = usize::from(thread) - usize::from(thread > own_thread);
            let priority = if priority == Priority::High { HIGH } else { NORMAL };
            if let Some(incoming) = self.incoming.get_mut(position) {
                incoming.rings[priority].finish_deferrable();
                incoming.rings[priority].release();
            }
        }
    }

    #[cold]
    pub(super) fn change_membership(&mut self, change: MembershipChange) {
        if let Some(links) = &self.links {
            links.board.change(change);
            self.outbox.set_link_work(links.own.is_some());
        }
    }
}
