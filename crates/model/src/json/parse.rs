//! Reads the text of a document.

use super::{DEPTH_MAX, Json, TAG_ARRAY, append_object, begin, end};

/// Why a text is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// The defect in MySQL's words, and the byte where it is.
    Invalid(&'static str, usize),
    /// Arrays and objects are nested more deeply than [`DEPTH_MAX`].
    TooDeep,
}

const INVALID: &str = "Invalid value.";
const NO_NAME: &str = "Missing a name for object member.";
const NO_COLON: &str = "Missing a colon after a name of object member.";
const NO_MEMBER_END: &str = "Missing a comma or } after an object member.";
const NO_ELEMENT_END: &str = "Missing a comma or ] after an array element.";
const BAD_ESCAPE: &str = "Invalid escape character in string.";
const BAD_HEX: &str = "Incorrect hex digit after \\u escape in string.";
const BAD_SURROGATE: &str = "The surrogate pair in string is invalid.";
const NO_QUOTE: &str = "Missing a closing quotation mark in string.";
const BAD_ENCODING: &str = "Invalid encoding in string.";
const NO_FRACTION: &str = "Miss fraction part in number.";
const NO_EXPONENT: &str = "Miss exponent in number.";
const TOO_BIG: &str = "Number too big to be stored in double.";

/// Appends the binary form of the document that a text is.
///
/// # Errors
/// The text is no document.
pub fn parse(text: &[u8], out: &mut Vec<u8>) -> Result<(), JsonError> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_space();
    if reader.at == text.len() {
        return Err(JsonError::Invalid("The document is empty.", reader.at));
    }
    reader.value(0, out)?;
    reader.skip_space();
    match reader.at == text.len() {
        true => Ok(()),
        false => Err(JsonError::Invalid("The document root must not be followed by other values.", reader.at)),
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError::Invalid(what, self.at))
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'{') => self.object(depth, out),
            Some(b'[') => self.array(depth, out),
            Some(b'"') => {
                let text = self.string()?;
                Json::String(&text).append(out);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => {
                for (word, value) in
                    [(&b"null"[..], Json::Null), (b"true", Json::Boolean(true)), (b"false", Json::Boolean(false))]
                {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        value.append(out);
                        return Ok(());
                    }
                }
                // RapidJSON stops behind the first letter of a word.
                self.at += usize::from(matches!(self.peek(), Some(b'n' | b't' | b'f')));
                self.fail(INVALID)
            }
        }
    }

    fn array(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
        if depth >= DEPTH_MAX {
            return Err(JsonError::TooDeep);
        }
        self.at += 1;
        let start = begin(TAG_ARRAY, out);
        let mut count = 0;
        self.skip_space();
        if !self.take(b']') {
            loop {
                self.skip_space();
                self.value(depth + 1, out)?;
                count += 1;
                self.skip_space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return self.fail(NO_ELEMENT_END);
                }
            }
        }
        end(start, count, out);
        Ok(())
    }

    fn object(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
        if depth >= DEPTH_MAX {
            return Err(JsonError::TooDeep);
        }
        self.at += 1;
        let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        self.skip_space();
        if !self.take(b'}') {
            loop {
                self.skip_space();
                if self.peek() != Some(b'"') {
                    return self.fail(NO_NAME);
                }
                let key = self.string()?;
                self.skip_space();
                if !self.take(b':') {
                    return self.fail(NO_COLON);
                }
                self.skip_space();
                let mut value = Vec::new();
                self.value(depth + 1, &mut value)?;
                members.push((key, value));
                self.skip_space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return self.fail(NO_MEMBER_END);
                }
            }
        }
        append_object(members.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect(), out);
        Ok(())
    }

    fn string(&mut self) -> Result<Vec<u8>, JsonError> {
        let start = self.at;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some(byte) = self.peek() else {
                self.at = start;
                return self.fail(NO_QUOTE);
            };
            match byte {
                b'"' => {
                    self.at += 1;
                    break;
                }
                b'\\' => self.escape(&mut out)?,
                0..0x20 => return self.fail(BAD_ENCODING),
                _ => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
        match std::str::from_utf8(&out) {
            Ok(_) => Ok(out),
            Err(_) => self.fail(BAD_ENCODING),
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let at = self.at;
        let byte = match self.text.get(at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let character = self.unicode()?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return self.fail(BAD_ESCAPE),
        };
        out.push(byte);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let high = self.hex()?;
        let code = match high {
            0xD800..0xDC00 if self.text[self.at..].starts_with(b"\\u") => {
                let low = self.hex()?;
                if !(0xDC00..0xE000).contains(&low) {
                    return self.fail(BAD_SURROGATE);
                }
                0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            }
            code => code,
        };
        char::from_u32(code).map_or_else(|| self.fail(BAD_SURROGATE), Ok)
    }

    /// Four digits after `\u`.
    fn hex(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at + 2..self.at + 6).unwrap_or_default();
        let is_hex = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
        let code = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code.filter(|_| is_hex) {
            Some(code) => {
                self.at += 6;
                Ok(code)
            }
            None => self.fail(BAD_HEX),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let start = self.at;
        let negative = self.take(b'-');
        match self.peek() {
            // A number has no leading zeros.
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => {
                self.digits();
            }
            _ => return self.fail(INVALID),
        }
        let mut is_integer = true;
        if self.take(b'.') {
            is_integer = false;
            if self.digits() == 0 {
                return self.fail(NO_FRACTION);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.fail(NO_EXPONENT);
            }
        }
        // The text is ASCII.
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if is_integer && !(negative && text == "-0") {
            if let Ok(value) = text.parse() {
                Json::Int(value).append(out);
                return Ok(());
            }
            if let Ok(value) = text.parse() {
                Json::UInt(value).append(out);
                return Ok(());
            }
        }
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        if !value.is_finite() {
            self.at = start;
            return self.fail(TOO_BIG);
        }
        Json::Double(value).append(out);
        Ok(())
    }
}
