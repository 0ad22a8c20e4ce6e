//! Reads the lists of a checkpoint, the schema and the partitions, from their files. Part of recovery.

use junctor_kernel::{FileBuffer, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, WorldRequest};
use junctor_model::checkpoint::checkpoint_path;
use junctor_model::stored_lists::{CheckpointLists, StoredListError, decode_partitions, decode_schema};
use junctor_model::stored_manifest::{ListPlace, Manifest};
use junctor_signals::Signal;
use junctor_storage::checkpoint::append_file_checksum;

/// Bytes of one read.
const READ_BYTES: u64 = if cfg!(test) { 100 } else { 4 << 20 };

/// The reading under way.
#[derive(Debug)]
pub(super) struct ListReader {
    /// The files that are not complete: first the schema, then the partitions.
    files: [u32; 2],
    /// The list that is being read: 0 or 1.
    list: usize,
    open: Option<FileId>,
    /// The bytes of the lists.
    bytes: [Vec<u8>; 2],
}

impl ListReader {
    /// Begins to read; `None` if the manifest has the lists itself.
    pub fn begin(manifest: &Manifest, outbox: &mut Outbox<Signal>) -> Option<ListReader> {
        let ListPlace::Files { schema, partitions } = manifest.lists else { return None };
        let reader = ListReader { files: [schema, partitions], list: 0, open: None, bytes: Default::default() };
        reader.request_open(outbox);
        Some(reader)
    }

    /// Takes the answer to a request. Returns the lists once both are read.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged.
    pub fn take(
        &mut self,
        manifest: &Manifest,
        (result, bytes): (FileResult, FileBuffer),
        outbox: &mut Outbox<Signal>,
    ) -> Result<Option<CheckpointLists>, Box<str>> {
        match result {
            Ok(FileOutcome::Opened { file, .. }) => {
                self.open = Some(file);
                self.request_read(file, bytes, manifest, outbox);
            }
            Ok(FileOutcome::Read { .. }) => {
                let Some(file) = self.open else { return Ok(None) };
                self.bytes[self.list].extend_from_slice(&bytes);
                let is_cut = bytes.is_empty();
                if !is_cut && self.bytes_left(manifest) > 0 {
                    self.request_read(file, bytes, manifest, outbox);
                    return Ok(None);
                }
                self.open = None;
                outbox.request(WorldRequest::CloseFile { file, token: 0 });
                self.check_file(manifest)?;
                if self.list == 1 {
                    return self.decode(manifest).map(Some);
                }
                self.list = 1;
                self.request_open(outbox);
            }
            Ok(_) => {}
            Err(error) => return Err(format!("cannot read {}: {error}", self.path()).into()),
        }
        Ok(None)
    }

    fn path(&self) -> Box<str> {
        checkpoint_path(self.files[self.list])
    }

    fn request_open(&self, outbox: &mut Outbox<Signal>) {
        let (path, mode, lane) = (self.path(), FileMode::Read, FileLane::Control);
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: 0 });
    }

    fn request_read(&self, file: FileId, bytes: FileBuffer, manifest: &Manifest, outbox: &mut Outbox<Signal>) {
        let offset = self.bytes[self.list].len() as u64;
        let length = self.bytes_left(manifest).min(READ_BYTES) as u32;
        outbox.request(WorldRequest::ReadFile { file, offset, length, bytes, token: 0 });
    }

    fn bytes_left(&self, manifest: &Manifest) -> u64 {
        let bytes = manifest.file(self.files[self.list]).map_or(0, |file| file.bytes);
        bytes.saturating_sub(self.bytes[self.list].len() as u64)
    }

    fn check_file(&self, manifest: &Manifest) -> Result<(), Box<str>> {
        let file = manifest.file(self.files[self.list]);
        let bytes = &self.bytes[self.list];
        let checksum = Some(append_file_checksum(0, bytes));
        match file.is_some_and(|file| file.bytes == bytes.len() as u64 && file.checksum == checksum) {
            true => Ok(()),
            false => Err(format!("{} is damaged; restore the directory from a backup", self.path()).into()),
        }
    }

    fn decode(&mut self, manifest: &Manifest) -> Result<CheckpointLists, Box<str>> {
        let refused = |list: usize, error: &dyn std::fmt::Display| -> Box<str> {
            format!("{} cannot be used: {error}", checkpoint_path(self.files[list])).into()
        };
        let schema = decode_schema(&self.bytes[0]).map_err(|error: StoredListError| refused(0, &error))?;
        let (marks, partitions) = decode_partitions(&self.bytes[1]).map_err(|error| refused(1, &error))?;
        manifest.check_partitions(&partitions).map_err(|error| refused(1, &error))?;
        Ok(CheckpointLists { schema, marks, partitions })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use junctor_kernel::{Address, FileError, NodeId};
    use junctor_model::checkpoint::CheckpointFile;
    use junctor_model::id::TableId;
    use junctor_model::stored_lists::{append_mark, append_schema_part, begin_partitions, begin_schema};
    use junctor_model::stored_schema::DictionaryChange;
    use junctor_signals::Module;

    use super::*;

    /// Lists with many marks, and their manifest.
    fn stored() -> (CheckpointLists, Manifest, BTreeMap<Box<str>, Vec<u8>>) {
        let schema = DictionaryChange { version: 7, next_table: TableId(9), ..DictionaryChange::default() };
        let marks: BTreeMap<_, _> = (1..60).map(|id| (TableId(id), 5)).collect();
        let (mut schema_bytes, mut bytes) = (Vec::new(), Vec::new());
        begin_schema(&mut schema_bytes);
        append_schema_part(&schema, &mut schema_bytes);
        begin_partitions(marks.len(), 0, &mut bytes);
        marks.iter().for_each(|(table, mark)| append_mark(*table, *mark, &mut bytes));
        let file = |number, bytes: &[u8]| {
            let (checksum, bytes) = (Some(append_file_checksum(0, bytes)), bytes.len() as u64);
            CheckpointFile { number, bytes, live_bytes: bytes, checksum }
        };
        let manifest = Manifest {
            lists: ListPlace::Files { schema: 4, partitions: 6 },
            next_file: 7,
            files: vec![file(4, &schema_bytes), file(6, &bytes)],
            ..Manifest::default()
        };
        let files = BTreeMap::from([(checkpoint_path(4), schema_bytes), (checkpoint_path(6), bytes)]);
        (CheckpointLists { schema, marks, partitions: Vec::new() }, manifest, files)
    }

    /// Reads the lists from these files.
    fn read(manifest: &Manifest, files: &BTreeMap<Box<str>, Vec<u8>>) -> Result<CheckpointLists, Box<str>> {
        let mut outbox = Outbox::for_test(Address::new(NodeId(1), Module::Main, 0));
        let mut reader = ListReader::begin(manifest, &mut outbox).expect("lists in files");
        let mut open = None;
        loop {
            for request in outbox.take_requests() {
                let (result, bytes) = match request {
                    WorldRequest::OpenFile { path, lane, is_direct, .. } => match files.get(&path) {
                        Some(bytes) => {
                            open = Some(bytes);
                            let (file, length) = (FileId::new(lane, 1, 1), bytes.len() as u64);
                            (Ok(FileOutcome::Opened { file, length, is_direct }), FileBuffer::new())
                        }
                        None => (Err(FileError::NotFound), FileBuffer::new()),
                    },
                    WorldRequest::ReadFile { offset, length, .. } => {
                        let bytes = open.expect("an open file");
                        let end = bytes.len().min(offset as usize + length as usize);
                        let read = FileBuffer::from(&bytes[bytes.len().min(offset as usize)..end]);
                        (Ok(FileOutcome::Read { length: read.len() as u32 }), read)
                    }
                    _ => (Ok(FileOutcome::Closed), FileBuffer::new()),
                };
                if let Some(lists) = reader.take(manifest, (result, bytes), &mut outbox)? {
                    return Ok(lists);
                }
            }
        }
    }

    #[test]
    fn lists_are_read_in_pieces() {
        let (lists, manifest, files) = stored();
        assert!(files[&checkpoint_path(6)].len() > 3 * READ_BYTES as usize);
        assert_eq!(read(&manifest, &files), Ok(lists));
        let mut outbox = Outbox::for_test(Address::new(NodeId(1), Module::Main, 0));
        assert!(ListReader::begin(&Manifest::default(), &mut outbox).is_none(), "the lists are in the manifest");
    }

    #[test]
    fn a_damaged_or_missing_list_is_refused_with_its_file() {
        let (_, manifest, files) = stored();
        for (path, bytes) in &files {
            let mut missing = files.clone();
            missing.remove(path);
            let error = read(&manifest, &missing).expect_err("a file is missing");
            assert!(error.starts_with(&format!("cannot read {path}")), "{error}");
            for at in (0..bytes.len()).step_by(7) {
                let mut damaged = files.clone();
                damaged.get_mut(path).expect("the file")[at] ^= 1;
                let error = read(&manifest, &damaged).expect_err("a byte is wrong");
                assert_eq!(*error, *format!("{path} is damaged; restore the directory from a backup"));
                damaged.get_mut(path).expect("the file").truncate(at);
                assert!(read(&manifest, &damaged).is_err_and(|error| error.contains("is damaged")));
            }
        }
    }
}
