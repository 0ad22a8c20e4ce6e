//! Upper and lower case, one character for each.

/// The upper case form by Unicode's simple mapping. Characters without one are unchanged.
pub(super) fn to_upper(letter: char) -> char {
    let code = u32::from(letter);
    let capital = match code {
        // Greek letters with iota subscript have a simple upper case form in addition to the full one of
        // several characters.
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => code + 8,
        0x1FB3 | 0x1FC3 | 0x1FF3 => code + 9,
        _ => return only(letter.to_uppercase()).unwrap_or(letter),
    };
    char::from_u32(capital).unwrap_or(letter)
}

/// The lower case form by Unicode's simple mapping. Characters without one are unchanged.
pub(super) fn to_lower(letter: char) -> char {
    match letter {
        // The only letter whose full mapping has several characters.
        '\u{130}' => 'i',
        _ => only(letter.to_lowercase()).unwrap_or(letter),
    }
}

/// As [`to_upper`]; the upper case of i has a dot.
pub(super) fn to_turkish_upper(letter: char) -> char {
    if letter == 'i' { '\u{130}' } else { to_upper(letter) }
}

/// As [`to_lower`]; the lower case of I has no dot.
pub(super) fn to_turkish_lower(letter: char) -> char {
    if letter == 'I' { '\u{131}' } else { to_lower(letter) }
}

/// Appends `text` with every character mapped. Invalid UTF-8 is copied unchanged.
pub(super) fn append_mapped(text: &[u8], out: &mut Vec<u8>, map: fn(char) -> char) {
    out.reserve(text.len());
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let mut bytes = [0; 4];
            out.extend_from_slice(map(letter).encode_utf8(&mut bytes).as_bytes());
        }
        out.extend_from_slice(chunk.invalid());
    }
}

fn only(mut letters: impl ExactSizeIterator<Item = char>) -> Option<char> {
    if letters.len() == 1 { letters.next() } else { None }
}
