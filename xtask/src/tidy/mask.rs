//! Rust source in which comments and literals are replaced by spaces, so that a search finds only code. Line
//! breaks stay.

/// The part of a text that is kept. All other bytes become spaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Code without comments and literals.
    Code,
    /// Code and comments without literals.
    CodeAndComments,
}

/// Replaces each byte that `keep` does not select with a space. Offsets and line numbers stay valid.
pub fn mask(text: &str, keep: Keep) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, blank) = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => (line_end(bytes, at), keep == Keep::Code),
            b'/' if bytes.get(at + 1) == Some(&b'*') => (block_comment_end(bytes, at), keep == Keep::Code),
            b'"' => (string_end(bytes, at + 1), true),
            b'r' if !in_word(bytes, at) => match raw_string_end(bytes, at) {
                Some(end) => (end, true),
                None => (at + 1, false),
            },
            b'\'' => (character_end(bytes, at), true),
            _ => (at + 1, false),
        };
        if blank && end > at + 1 {
            for byte in out[at..end].iter_mut().filter(|byte| **byte != b'\n') {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The offsets of `word` in `text`, as a whole word.
pub fn word_positions<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let after = bytes.get(at + word.len());
        !in_word(bytes, at) && !after.is_some_and(|byte| is_word_byte(*byte))
    })
}

/// The line number of a byte offset, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The offset of the brace that closes the brace at `open`, in masked code.
pub fn matching_brace(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    code.bytes().enumerate().skip(open).find_map(|(at, byte)| {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        (depth == 0).then_some(at)
    })
}

/// Masked code without the items that exist only in tests, because of an attribute `cfg(test)`, `cfg(loom)`,
/// `cfg(shuttle)`, or `any` and `all` of them.
pub fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for (at, _) in code.match_indices("#[cfg(") {
        let Some(length) = code[at..].find(']') else { break };
        let condition = &code[at..at + length];
        let for_tests = ["test", "loom", "shuttle"].iter().any(|name| word_positions(condition, name).next().is_some());
        if !for_tests || condition.contains("not(") {
            continue;
        }
        let item = at + length;
        // A `use` with braces keeps only its semicolon.
        let end = code[item..].find([';', '{']).and_then(|offset| {
            let found = item + offset;
            if code.as_bytes()[found] == b';' { Some(found) } else { matching_brace(code, found) }
        });
        for byte in out[at..=end.unwrap_or(code.len() - 1)].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn in_word(bytes: &[u8], at: usize) -> bool {
    // The `b` of a byte string belongs to the literal, not to a word.
    at > 0 && is_word_byte(bytes[at - 1]) && !(bytes[at - 1] == b'b' && (at < 2 || !is_word_byte(bytes[at - 2])))
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut here = at;
    while here < bytes.len() {
        if bytes[here..].starts_with(b"/*") {
            depth += 1;
            here += 2;
        } else if bytes[here..].starts_with(b"*/") {
            depth -= 1;
            here += 2;
            if depth == 0 {
                return here;
            }
        } else {
            here += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let length = bytes[open + 1..].windows(close.len()).position(|window| window == close)?;
    Some(open + 1 + length + close.len())
}

/// The offset after a character literal. For a lifetime, the offset after its quote, because the rest is
/// code.
fn character_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        let mut here = at + 3;
        while here < bytes.len() && bytes[here] != b'\'' {
            here += 1;
        }
        return (here + 1).min(bytes.len());
    }
    let width = match bytes.get(at + 1) {
        None => return at + 1,
        Some(byte) if *byte >= 0xf0 => 4,
        Some(byte) if *byte >= 0xe0 => 3,
        Some(byte) if *byte >= 0xc0 => 2,
        Some(_) => 1,
    };
    if bytes.get(at + 1 + width) == Some(&b'\'') { at + width + 2 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        mask(text, Keep::Code)
    }

    #[test]
    fn literals_and_comments_are_masked() {
        for text in [
            "a /* { /* { */ */ b",
            "a \"{ \\\" {\" b",
            "a r#\"{ \" {\"# b",
            "a br\"{\" b",
            "a b'{' b",
            "a '{' b",
            "a '\\'' b",
            "a '\\u{7b}' b",
            "a 'é' b",
        ] {
            let masked = code(text);
            assert!(!masked.contains('{'), "{masked}");
            assert!(masked.starts_with('a') && masked.ends_with('b'), "{masked}");
            assert_eq!(masked.len(), text.len());
        }
    }

    #[test]
    fn lifetimes_and_words_that_end_in_r_are_code() {
        let text = "fn f<'a>(x: &'a str) { for\"x\"; }";
        assert_eq!(code(text), "fn f<'a>(x: &'a str) { for   ; }");
    }

    #[test]
    fn comments_stay_if_requested() {
        assert_eq!(mask("x // why\n\"s\"", Keep::CodeAndComments), "x // why\n   ");
    }

    #[test]
    fn items_for_tests_are_masked() {
        for item in [
            "#[cfg(test)] mod tests { fn f() { g() } }",
            "#[cfg(test)]\nmod tests;",
            "#[cfg(all(test, not_here))] fn f() {}",
            "#[cfg(any(loom, shuttle))] use loom::sync;",
        ] {
            let masked = without_tests(&format!("a {item} b"));
            assert_eq!(masked.split_whitespace().collect::<Vec<_>>(), ["a", "b"], "{item}");
        }
        let kept = "#[cfg(not(loom))] use a::b; #[cfg(target_os)] fn f() {}";
        assert_eq!(without_tests(kept), kept);
    }

    #[test]
    fn words_are_found_whole() {
        let found: Vec<usize> = word_positions("fn fnord fn_x fn", "fn").collect();
        assert_eq!(found, [0, 14]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
