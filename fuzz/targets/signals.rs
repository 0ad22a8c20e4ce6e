//! Signals: any bytes are refused or are a signal. A signal that was decoded is encoded and decoded again to
//! the same bytes. Two signals in a row share the states of one link, so the second may refer to what the
//! first has defined.
#![no_main]

use junctor_kernel::wire_signal::take_record;
use junctor_kernel::{BufferPool, WireSignal};
use junctor_signals::Signal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&length, bytes)) = bytes.split_first() else { return };
    let (first, second) = bytes.split_at(usize::from(length).min(bytes.len()));
    let mut buffers = BufferPool::new(1 << 16);
    let version = *Signal::VERSIONS.end();
    let (mut decoder, mut encoder) = (Signal::decoder(version), Signal::encoder(version));
    let mut other = Signal::decoder(version);
    for bytes in [first, second] {
        let Ok(signal) = Signal::decode(&mut decoder, bytes, &mut buffers) else { break };
        let mut again = Vec::new();
        if signal.encode(&mut encoder, &mut again).is_err() {
            break;
        }
        let text = format!("{signal:?}");
        let decoded = Signal::decode(&mut other, &again, &mut buffers);
        assert_eq!(decoded.map(|decoded| format!("{decoded:?}")), Ok(text), "a signal survives its encoding");
        signal.recycle(&mut buffers);
    }
    let mut records = bytes;
    let mut decoder = Signal::decoder(version);
    while !records.is_empty() && take_record::<Signal>(&mut records, &mut decoder, &mut buffers).is_ok() {}
});
