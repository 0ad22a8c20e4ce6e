//! JSON paths: `$`, then members, elements, ranges and wildcards.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::Json;

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub(super) legs: Vec<Leg>,
}

/// A leg of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    /// `.key`
    Member(Vec<u8>),
    /// `.*`
    AnyMember,
    /// `[n]` or `[last-n]`
    Element(Index),
    /// `[m to n]`
    Range(Index, Index),
    /// `[*]`
    AnyElement,
    /// `**`
    Anywhere,
}

/// The position of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub from_end: bool,
    pub number: usize,
}

impl Index {
    /// The position in an array of this length; `None` before its start.
    pub fn within(self, length: usize) -> Option<usize> {
        match self.from_end {
            true => length.checked_sub(1)?.checked_sub(self.number),
            false => Some(self.number),
        }
    }
}

impl Path {
    /// Reads a path. Error: 3143.
    pub fn parse(text: &[u8]) -> Result<Path> {
        let mut reader = Reader { text, at: 0 };
        reader.path().ok_or_else(|| {
            let message =
                format!("Invalid JSON path expression. The error is around character position {}.", reader.at);
            Error::new(ErrorCode::JsonPath, message)
        })
    }

    /// Whether several values may match.
    pub fn has_wildcard(&self) -> bool {
        self.legs.iter().any(|leg| matches!(leg, Leg::AnyMember | Leg::AnyElement | Leg::Anywhere | Leg::Range(..)))
    }

    /// Calls `found` for each value that matches, in the order of the document.
    pub fn find<'d>(&self, document: &'d [u8], found: &mut dyn FnMut(&'d [u8])) {
        seek(document, &self.legs, found);
    }

    /// The first value that matches.
    pub fn first<'d>(&self, document: &'d [u8]) -> Option<&'d [u8]> {
        let mut first = None;
        self.find(document, &mut |value| first = first.or(Some(value)));
        first
    }

    /// Whether the document has a value at the path without its last leg.
    pub fn has_parent(&self, document: &[u8]) -> bool {
        let mut has_parent = false;
        seek(document, &self.legs[..self.legs.len().saturating_sub(1)], &mut |_| has_parent = true);
        has_parent
    }
}

fn seek<'d>(value: &'d [u8], legs: &[Leg], found: &mut dyn FnMut(&'d [u8])) {
    let Some((leg, rest)) = legs.split_first() else { return found(value) };
    match (leg, Json::of(value)) {
        (Leg::Member(key), Json::Object(members)) => {
            if let Some(member) = members.get(key) {
                seek(member, rest, found);
            }
        }
        (Leg::AnyMember, Json::Object(members)) => {
            members.into_iter().for_each(|(_, member)| seek(member, rest, found));
        }
        (Leg::AnyElement, Json::Array(elements)) => {
            elements.into_iter().for_each(|element| seek(element, rest, found));
        }
        (Leg::Element(index), Json::Array(elements)) => {
            if let Some(element) = index.within(elements.len()).and_then(|place| elements.get(place)) {
                seek(element, rest, found);
            }
        }
        // A value that is no array is its own first and last element.
        (Leg::Element(index), _) if index.number == 0 => seek(value, rest, found),
        (Leg::Element(_), _) => {}
        (Leg::Range(first, last), Json::Array(elements)) => {
            let length = elements.len();
            let first = first.within(length).unwrap_or(0);
            let Some(last) = last.within(length) else { return };
            for element in elements.into_iter().skip(first).take((last + 1).saturating_sub(first)) {
                seek(element, rest, found);
            }
        }
        (Leg::Range(first, last), _) => {
            let covers = |index: &Index, start: bool| index.number == 0 || index.from_end == start;
            if covers(first, true) && covers(last, false) {
                seek(value, rest, found);
            }
        }
        (Leg::Anywhere, json) => {
            seek(value, rest, found);
            match json {
                Json::Array(elements) => elements.into_iter().for_each(|element| seek(element, legs, found)),
                Json::Object(members) => members.into_iter().for_each(|(_, member)| seek(member, legs, found)),
                _ => {}
            }
        }
        _ => {}
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn accept(&mut self, token: &[u8]) -> bool {
        self.skip_space();
        let is_here = self.text[self.at..].starts_with(token);
        self.at += if is_here { token.len() } else { 0 };
        is_here
    }

    fn path(&mut self) -> Option<Path> {
        if !self.accept(b"$") {
            return None;
        }
        let mut legs = Vec::new();
        loop {
            self.skip_space();
            if self.at == self.text.len() {
                // `**` must be followed by another leg.
                return (legs.last() != Some(&Leg::Anywhere)).then_some(Path { legs });
            }
            legs.push(self.leg()?);
        }
    }

    fn leg(&mut self) -> Option<Leg> {
        if self.accept(b"**") {
            return Some(Leg::Anywhere);
        }
        if self.accept(b".") {
            return if self.accept(b"*") { Some(Leg::AnyMember) } else { self.key().map(Leg::Member) };
        }
        if !self.accept(b"[") {
            return None;
        }
        if self.accept(b"*") {
            return self.accept(b"]").then_some(Leg::AnyElement);
        }
        let first = self.index()?;
        if self.accept(b"to ") {
            let last = self.index()?;
            let is_ordered = first.from_end != last.from_end
                || if first.from_end { first.number >= last.number } else { first.number <= last.number };
            return (is_ordered && self.accept(b"]")).then_some(Leg::Range(first, last));
        }
        self.accept(b"]").then_some(Leg::Element(first))
    }

    fn index(&mut self) -> Option<Index> {
        let from_end = self.accept(b"last");
        if from_end && !self.accept(b"-") {
            return Some(Index { from_end, number: 0 });
        }
        self.skip_space();
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.text[self.at..self.at + digits]).ok()?.parse::<u32>().ok()?;
        self.at += digits;
        Some(Index { from_end, number: number as usize })
    }

    fn key(&mut self) -> Option<Vec<u8>> {
        self.skip_space();
        let rest = &self.text[self.at..];
        if rest.first() == Some(&b'"') {
            let mut end = 1;
            while *rest.get(end)? != b'"' {
                end += if rest[end] == b'\\' { 2 } else { 1 };
            }
            let mut document = Vec::new();
            junctor_model::json::parse(&rest[..=end], &mut document).ok()?;
            self.at += end + 1;
            return match Json::of(&document) {
                Json::String(key) => Some(key.to_vec()),
                _ => None,
            };
        }
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte == b'$' || **byte >= 0x80;
        let length = rest.iter().take_while(is_part).count();
        if length == 0 || rest[0].is_ascii_digit() {
            return None;
        }
        self.at += length;
        Some(rest[..length].to_vec())
    }
}
