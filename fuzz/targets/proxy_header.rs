//! Headers of balancers: a header lies within the bytes, and is the same with more bytes behind it. A part of it
//! is incomplete, and neither malformed nor another header.
#![no_main]

use junctor_front::proxy_header::{ProxyHeader, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ProxyHeader::Complete { length, .. } = read(bytes) else { return };
    let whole = read(&bytes[..length]);
    assert_eq!(whole, read(bytes));
    for cut in 0..length {
        assert_eq!(read(&bytes[..cut]), ProxyHeader::Incomplete);
    }
});
