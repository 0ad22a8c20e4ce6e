//! The LIKE operator, for characters of any kind.

enum Piece {
    Many,
    One,
    Literal(u32),
    End,
}

/// The first character of a binary string: a byte.
pub(super) fn decode_byte(text: &[u8]) -> Option<(u32, usize)> {
    text.first().map(|&byte| (u32::from(byte), 1))
}

/// Whether `pattern` matches the whole `text`. `decode` splits both into characters and `same` compares them.
///
/// Only the last `%` seen needs to be retried at a later position: it can absorb everything that an earlier
/// one could.
pub(super) fn matches(
    text: &[u8],
    pattern: &[u8],
    escape: Option<char>,
    decode: impl Fn(&[u8]) -> Option<(u32, usize)>,
    same: impl Fn(u32, u32) -> bool,
) -> bool {
    let escape = escape.map(u32::from);
    let (mut text_at, mut pattern_at) = (0, 0);
    let mut retry = None;
    loop {
        let (piece, piece_bytes) = next_piece(&pattern[pattern_at..], escape, &decode);
        let character = decode(&text[text_at..]);
        let fits = match (piece, character) {
            (Piece::Many, _) => {
                pattern_at += piece_bytes;
                if pattern_at == pattern.len() {
                    return true;
                }
                retry = Some((text_at, pattern_at));
                continue;
            }
            (Piece::End, None) => return true,
            (Piece::One, Some((_, bytes))) => Some(bytes),
            (Piece::Literal(literal), Some((code, bytes))) if same(literal, code) => Some(bytes),
            _ => None,
        };
        if let Some(bytes) = fits {
            text_at += bytes;
            pattern_at += piece_bytes;
            continue;
        }
        // The text ended before the pattern did. A later start would leave even less text.
        let (Some((start, after_many)), Some(_)) = (retry, character) else { return false };
        let Some((_, bytes)) = decode(&text[start..]) else { return false };
        (text_at, pattern_at) = (start + bytes, after_many);
        retry = Some((text_at, pattern_at));
    }
}

/// The first piece of `pattern` and its length in bytes. As in MySQL, `%` keeps its meaning even as escape
/// character, while `_` loses it.
fn next_piece(pattern: &[u8], escape: Option<u32>, decode: impl Fn(&[u8]) -> Option<(u32, usize)>) -> (Piece, usize) {
    let Some((code, bytes)) = decode(pattern) else { return (Piece::End, 0) };
    if code == u32::from('%') {
        return (Piece::Many, bytes);
    }
    if Some(code) == escape
        && let Some((literal, literal_bytes)) = decode(&pattern[bytes..])
    {
        return (Piece::Literal(literal), bytes + literal_bytes);
    }
    (if code == u32::from('_') { Piece::One } else { Piece::Literal(code) }, bytes)
}
