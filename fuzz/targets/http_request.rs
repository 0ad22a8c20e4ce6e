//! Requests over HTTP: whatever arrives, it is a path, a refusal or incomplete, and bytes that follow a whole
//! request change nothing.
#![no_main]

use junctor_node::http::request::{Asked, HEAD_BYTES_MAX, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let asked = read(bytes);
    match asked {
        Asked::Path { path, .. } => {
            assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()));
            assert_eq!(read(&[bytes, b"more"].concat()), asked);
        }
        Asked::Incomplete => assert!(bytes.len() < HEAD_BYTES_MAX),
        Asked::Refused(status) => assert!((400..=505).contains(&status)),
    }
});
