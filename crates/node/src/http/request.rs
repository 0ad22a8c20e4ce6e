//! Requests: the head of an HTTP/1.x request without a body, read strictly. Anything else is refused.

/// Maximum length of the head of a request in bytes.
pub const HEAD_BYTES_MAX: usize = 4096;

/// Maximum number of header lines.
const HEADERS_MAX: usize = 64;

/// Maximum length of a target in bytes.
const TARGET_BYTES_MAX: usize = 256;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Bytes are missing.
    Incomplete,
    /// GET or HEAD of this path.
    Path {
        /// The path, without the query.
        path: &'a str,
        /// Whether the answer has no body (HEAD).
        is_head: bool,
    },
    /// The request is refused with this status.
    Refused(u16),
}

/// Reads the request at the front of `bytes`.
pub fn read(bytes: &[u8]) -> Asked<'_> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") else {
        // A head that is wrong already needs no more bytes.
        let is_text = head.iter().all(|byte| matches!(byte, b'\r' | b'\n' | b'\t' | 0x20..=0x7E));
        return match (is_text, head.len() < HEAD_BYTES_MAX) {
            (false, _) => Asked::Refused(400),
            (true, true) => Asked::Incomplete,
            (true, false) => Asked::Refused(431),
        };
    };
    let Ok(head) = std::str::from_utf8(&head[..end]) else { return Asked::Refused(400) };
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or("");
    match (read_line(line), check_headers(lines, line.ends_with("1.1"))) {
        (Err(status), _) | (_, Err(status)) => Asked::Refused(status),
        (Ok(asked), Ok(())) => asked,
    }
}

fn read_line(line: &str) -> Result<Asked<'_>, u16> {
    let words: Vec<&str> = line.split(' ').take(4).collect();
    let [method, target, version] = words[..] else { return Err(400) };
    if !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return Err(if version.starts_with("HTTP/") { 505 } else { 400 });
    }
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(400);
    }
    if !matches!(method, "GET" | "HEAD") {
        return Err(405);
    }
    if target.len() > TARGET_BYTES_MAX {
        return Err(414);
    }
    if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(400);
    }
    let path = target.split('?').next().unwrap_or(target);
    Ok(Asked::Path { path, is_head: method == "HEAD" })
}

/// Checks the lines after the first one. A request with a body, or a line that servers read differently, is
/// refused.
fn check_headers<'a>(lines: impl Iterator<Item = &'a str>, needs_host: bool) -> Result<(), u16> {
    let (mut count, mut hosts) = (0, 0);
    for line in lines {
        count += 1;
        if count > HEADERS_MAX {
            return Err(431);
        }
        let (name, value) = line.split_once(':').ok_or(400u16)?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(400);
        }
        if !value.bytes().all(|byte| byte == b'\t' || matches!(byte, 0x20..=0x7E)) {
            return Err(400);
        }
        hosts += usize::from(name.eq_ignore_ascii_case("host"));
        if name.eq_ignore_ascii_case("transfer-encoding")
            || name.eq_ignore_ascii_case("content-length") && value.trim() != "0"
        {
            return Err(413);
        }
    }
    if hosts > 1 || needs_host && hosts == 0 { Err(400) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &str = "GET /metrics HTTP/1.1\r\nHost: node\r\nAccept: */*\r\n\r\n";

    #[test]
    fn a_request_names_a_path() {
        assert_eq!(read(GET.as_bytes()), Asked::Path { path: "/metrics", is_head: false });
        assert_eq!(read(b"HEAD /ready?x=1 HTTP/1.0\r\n\r\n"), Asked::Path { path: "/ready", is_head: true });
    }

    #[test]
    fn what_is_wrong_is_refused_with_a_status() {
        let long = format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(300));
        let many = format!("GET / HTTP/1.0\r\n{}\r\n", "a: b\r\n".repeat(65));
        let endless = "a".repeat(HEAD_BYTES_MAX);
        for (text, status) in [
            ("POST /metrics HTTP/1.1\r\nHost: n\r\n\r\n", 405),
            ("GET /metrics HTTP/1.1\r\n\r\n", 400),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET /metrics HTTP/2.0\r\n\r\n", 505),
            ("GET /metrics\r\n\r\n", 400),
            ("GET  /metrics HTTP/1.0\r\n\r\n", 400),
            ("GET metrics HTTP/1.0\r\n\r\n", 400),
            ("get /metrics HTTP/1.0\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\nContent-Length: 5\r\n\r\n", 413),
            ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
            ("GET / HTTP/1.0\r\na: b\r\n c\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\na : b\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\na: b\nc: d\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\n: b\r\n\r\n", 400),
            ("\x16\x03\x01\x02", 400),
            (&long, 414),
            (&many, 431),
            (&endless, 431),
        ] {
            assert_eq!(read(text.as_bytes()), Asked::Refused(status), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_request_that_is_cut_is_incomplete(cut in 0..GET.len()) {
            prop_assert_eq!(read(&GET.as_bytes()[..cut]), Asked::Incomplete);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
