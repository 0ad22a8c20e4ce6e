//! The MySQL protocol: bytes and logins. Nothing here reads a socket, a clock or a random source: bytes come in as
//! slices, answers go out into buffers of the caller.

pub mod wire;

pub mod auth;
