//! Frames: whatever arrives, and however it is cut, the reader returns frames or a fault, and the channel
//! takes them or refuses them. The first byte says how the rest is cut and whether its checksums are made
//! right; without that, hardly an input would come past them.
#![no_main]

use junctor_kernel::SignalClass;
use junctor_kernel::transport::channel::{Arrival, Channel};
use junctor_kernel::transport::frame::{BODY_BYTES_MAX, FrameHeader, FrameReader, HEADER_BYTES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if how & 1 == 1 {
        set_checksums(&mut bytes);
    }
    let whole = read(&bytes, bytes.len().max(1));
    let in_pieces = read(&bytes, usize::from(how >> 1) + 1);
    assert_eq!(whole, in_pieces, "the result does not depend on how bytes are cut");
});

/// Makes the checksums of the frames right, as far as their lengths lead.
fn set_checksums(bytes: &mut [u8]) {
    let mut start = 0;
    while let Some(header) = bytes.get(start..start + HEADER_BYTES) {
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let end = start + HEADER_BYTES + length;
        if let Some(body) = bytes.get(start + HEADER_BYTES..end) {
            let checksum = crc32c::crc32c(body).to_le_bytes();
            bytes[start + 4..start + 8].copy_from_slice(&checksum);
        }
        let checksum = crc32c::crc32c(&bytes[start..start + HEADER_BYTES - 4]).to_le_bytes();
        bytes[start + HEADER_BYTES - 4..start + HEADER_BYTES].copy_from_slice(&checksum);
        start = end;
    }
}

/// Reads pieces of this size, and gives the frames to a channel that has sent one. Returns what it found.
fn read(bytes: &[u8], piece: usize) -> Vec<(Option<FrameHeader>, usize)> {
    let (mut reader, mut channel) = (FrameReader::default(), Channel::new(0));
    let pushed: Result<(), ()> = channel.push(SignalClass::Reserved, 1, |out| {
        out.extend_from_slice(b"a record");
        Ok(())
    });
    assert!(pushed.is_ok());
    assert_eq!(channel.attach(0), Ok(()));
    assert_eq!(channel.write(1, 1 << 20, &mut Vec::new()), Ok(true));
    let mut found = Vec::new();
    for mut input in bytes.chunks(piece) {
        loop {
            match reader.read(&mut input) {
                Ok(Some(frame)) => {
                    assert!(frame.body.len() <= BODY_BYTES_MAX);
                    found.push((Some(frame.header), frame.body.len()));
                    let received = channel.received();
                    match channel.on_frame(&frame.header, frame.body.len()) {
                        Ok(Arrival::New) => assert_eq!(channel.received(), received + 1),
                        Ok(Arrival::Known) => assert_eq!(channel.received(), received),
                        Err(_) => return found,
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    found.push((None, 0));
                    return found;
                }
            }
        }
        assert!(input.is_empty(), "a reader takes all bytes");
    }
    found
}
