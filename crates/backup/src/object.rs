//! Objects of a backup. They are compressed while they are written, and checked while they are read.

use std::io::Write;

use futures_lite::StreamExt;
use object_store::{ObjectStoreExt, WriteMultipart};
use zstd::stream::write::{Decoder, Encoder};

use crate::BackupError;
use crate::contents::Object;
use crate::store::BackupStore;

/// Size in bytes of the parts that are sent to the store. S3 takes up to 10,000 parts an object.
const PART_BYTES: usize = 16 << 20;
/// Maximum number of parts that are being uploaded at the same time.
const PARTS_UNDER_WAY: usize = 3;

/// Writes an object.
pub struct ObjectWriter {
    encoder: Encoder<'static, Vec<u8>>,
    upload: WriteMultipart,
    object: Object,
}

impl ObjectWriter {
    /// Begins an object of the backup. `level` is zstd's.
    ///
    /// # Errors
    /// The store fails.
    pub async fn create(
        store: &BackupStore,
        backup: &str,
        name: &str,
        level: i32,
    ) -> Result<ObjectWriter, BackupError> {
        let upload = store.objects().put_multipart_opts(&store.path(backup, name), Default::default()).await?;
        let mut encoder = Encoder::new(Vec::with_capacity(PART_BYTES), level).map_err(compression)?;
        // One thread compresses while this one reads and sends.
        encoder.multithread(1).map_err(compression)?;
        let upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        Ok(ObjectWriter { encoder, upload, object: Object { name: name.into(), ..Object::default() } })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The store fails.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.object.bytes += bytes.len() as u64;
        self.object.checksum = crc32c::crc32c_append(self.object.checksum, bytes);
        self.encoder.write_all(bytes).map_err(compression)?;
        if self.encoder.get_ref().len() >= PART_BYTES {
            self.upload.wait_for_capacity(PARTS_UNDER_WAY).await?;
            let compressed = self.encoder.get_mut();
            self.object.stored_bytes += compressed.len() as u64;
            self.upload.write(compressed);
            compressed.clear();
        }
        Ok(())
    }

    /// Completes the object.
    ///
    /// # Errors
    /// The store fails.
    pub async fn finish(mut self) -> Result<Object, BackupError> {
        let compressed = self.encoder.finish().map_err(compression)?;
        self.object.stored_bytes += compressed.len() as u64;
        self.upload.write(&compressed);
        self.upload.finish().await?;
        Ok(self.object)
    }
}

/// Decompresses an object into `target`, and checks its length and checksum.
///
/// # Errors
/// The object is missing or damaged, or `target` fails.
pub async fn read_object<W: Write>(
    store: &BackupStore,
    backup: &str,
    object: &Object,
    target: W,
) -> Result<W, BackupError> {
    let damaged = |why: &dyn std::fmt::Display| {
        BackupError::refused(format!("object '{}' of backup '{backup}' is damaged: {why}", object.name))
    };
    let counted = Counted { target, bytes: 0, checksum: 0, failed: None };
    let mut decoder = Decoder::new(counted).map_err(compression)?;
    let mut chunks = store.objects().get(&store.path(backup, &object.name)).await?.into_stream();
    while let Some(chunk) = chunks.next().await.transpose()? {
        if let Err(error) = decoder.write_all(&chunk) {
            // Report an error of the target as such. Any other error means that the compressed bytes are
            // damaged.
            return Err(decoder.get_mut().failed.take().unwrap_or_else(|| damaged(&error)));
        }
    }
    if let Err(error) = decoder.flush() {
        return Err(decoder.get_mut().failed.take().unwrap_or_else(|| damaged(&error)));
    }
    let Counted { target, bytes, checksum, .. } = decoder.into_inner();
    if bytes != object.bytes || checksum != object.checksum {
        return Err(damaged(&format!(
            "{bytes} bytes with checksum {checksum:08x} instead of {} with {:08x}",
            object.bytes, object.checksum
        )));
    }
    Ok(target)
}

/// Counts the bytes that are written to a target, and computes their checksum.
struct Counted<W> {
    target: W,
    bytes: u64,
    checksum: u32,
    failed: Option<BackupError>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Err(error) = self.target.write_all(bytes) {
            let text = format!("cannot restore: {error}");
            self.failed = Some(BackupError::refused(text));
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.target.flush()
    }
}

fn compression(error: std::io::Error) -> BackupError {
    BackupError::refused(format!("compression failed: {error}"))
}
