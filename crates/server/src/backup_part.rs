//! The thread that copies the part of this node in a backup of its cluster.

use std::path::PathBuf;

use junctor_backup::{CopyWatch, NodePart, copy_part};
use junctor_node::{BackupDesk, PartOrder};

/// Copies the parts that main orders, one after the other, for as long as the process runs.
pub fn copy_parts(desk: &BackupDesk, node: u8, folder: PathBuf) {
    loop {
        let PartOrder { number, store, name } = desk.next_part();
        let part = NodePart { store, name, node, folder: folder.clone() };
        let watch = Watch { desk, number };
        let copied = copy_part(&part, &watch, &mut |newest| desk.await_copy(number, newest));
        let name = &part.name;
        match &copied {
            Ok(last) => eprintln!("level=info copied this node's part of backup {name}, up to commit {last}"),
            Err(error) => eprintln!("level=error cannot copy this node's part of backup {name}: {error}"),
        }
        desk.finish(number, copied.map_err(|error| error.to_string().into()));
    }
}

struct Watch<'a> {
    desk: &'a BackupDesk,
    number: u64,
}

impl CopyWatch for Watch<'_> {
    fn note(&self, copied: u64, total: u64, stored: u64) {
        self.desk.note_progress(copied, total, stored);
    }

    fn has_ended(&self) -> bool {
        self.desk.has_ended(self.number)
    }
}
