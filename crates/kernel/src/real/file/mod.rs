//! Files: opened, read, written and synced, never interpreted.

use std::path::PathBuf;

use crate::address::Address;
use crate::scheduler::run::Services;
use crate::world::{FileLane, WorldRequest};

use lane::{Lane, carry_out};

mod lane;

/// The open files of a node.
#[derive(Debug)]
pub(super) struct Files(Vec<Lane>);

impl Files {
    /// Resolves relative paths against `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(FileLane::ALL.iter().map(|&lane| Lane::new(lane, folder.clone())).collect())
    }

    /// Carries out a request, however long it takes, and answers `from`.
    pub(super) fn carry_out(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        let Some(lane) = request.file_lane() else { return };
        let lane = &mut self.0[lane.index()];
        lane.accept(from, request);
        while let Some(slot) = lane.next_ready() {
            let (file, operation) = lane.operation(slot);
            let result = carry_out(file, operation);
            lane.complete(slot, result);
        }
        services.events.extend(lane.take_answers().map(|answer| (answer.to, answer.event)));
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
