//! Divides an XML file into rows, by the rules of MySQL's LOAD XML.
//!
//! A row is an element with the name of ROWS IDENTIFIED BY. Its values are attributes, elements named as
//! columns, and elements `<field name='column'>`, in any mixture and depth; the last one of a name counts. A
//! column without a value, or with an empty one, is NULL. Text that is no well-formed XML is not refused.
//!
//! The file arrives in pieces, each byte of which is read once, so a piece may end anywhere.

use super::lines::{Line, LineOutcome};
use super::load::LINE_BYTES_MAX;

/// Divides the bytes of a file into rows.
#[derive(Debug)]
pub(super) struct XmlReader {
    row: Box<[u8]>,
    /// The names of the values wanted, each once.
    names: Vec<Box<[u8]>>,
    /// For each field the position of its name.
    fields: Vec<usize>,
    bytes: Vec<u8>,
    /// Start of the unread bytes in `bytes`.
    position: usize,
    is_complete: bool,
    state: State,
    /// The name of the tag that is read or was read last.
    tag: Vec<u8>,
    /// The name under which the text of the element that was opened last is kept.
    name: Vec<u8>,
    attribute: Vec<u8>,
    /// The text or the value of an attribute that is read.
    text: Vec<u8>,
    is_in_row: bool,
    /// The values of the row: for each name the bytes, or `None` for NULL.
    values: Vec<Option<Vec<u8>>>,
    /// Number of bytes of the row that have been read.
    row_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// Behind `<`.
    Open,
    /// In the name of a tag that opens an element.
    Name,
    /// Between the attributes.
    InTag,
    Attribute,
    /// Behind the name of an attribute, before its value.
    BeforeValue,
    /// In a value that this quote ends.
    Value(u8),
    /// Behind `/` in a tag that opens an element.
    Empty,
    /// In the name of a tag that closes an element.
    Closing,
    /// Behind `<!`, with the bytes since in `tag`.
    Special,
    Comment,
    CharacterData,
    /// In `<? ... >` or `<!DOCTYPE ... >`, within this number of brackets.
    Declaration(u32),
}

const COMMENT: &[u8] = b"--";
const CHARACTER_DATA: &[u8] = b"[CDATA[";

impl XmlReader {
    /// Reads rows with this name, and their values with these names.
    pub fn new(row: &[u8], names: impl Iterator<Item = Box<[u8]>>) -> XmlReader {
        let mut distinct: Vec<Box<[u8]>> = Vec::new();
        let position = |name: Box<[u8]>| {
            let known = distinct.iter().position(|known| *known == name);
            known.unwrap_or_else(|| {
                distinct.push(name);
                distinct.len() - 1
            })
        };
        let fields = names.map(position).collect();
        XmlReader {
            row: row.into(),
            values: vec![None; distinct.len()],
            names: distinct,
            fields,
            bytes: Vec::new(),
            position: 0,
            is_complete: false,
            state: State::Text,
            tag: Vec::new(),
            name: Vec::new(),
            attribute: Vec::new(),
            text: Vec::new(),
            is_in_row: false,
            row_bytes: 0,
        }
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.position);
        self.position = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Notes that the file has no more bytes.
    pub fn end(&mut self) {
        self.is_complete = true;
    }

    /// Number of bytes that belong to no finished row.
    pub fn unread_bytes(&self) -> usize {
        self.row_bytes + self.bytes.len() - self.position
    }

    /// Reads the next row: a field for each name. A row that the file does not close is none.
    pub fn next_row(&mut self, line: &mut Line) -> LineOutcome {
        while let Some(byte) = self.bytes.get(self.position).copied() {
            self.position += 1;
            self.row_bytes += 1;
            if self.step(byte) {
                line.bytes.clear();
                line.fields.clear();
                line.has_more = false;
                self.row_bytes = 0;
                let values = || self.fields.iter().map(|position| self.values[*position].as_deref());
                // Several fields may have one name, and thus the same bytes.
                if values().flatten().map(<[u8]>::len).sum::<usize>() > LINE_BYTES_MAX {
                    return LineOutcome::TooLong;
                }
                for value in values() {
                    line.bytes.extend_from_slice(value.unwrap_or_default());
                    line.fields.push((line.bytes.len(), value.is_none()));
                }
                return LineOutcome::Line;
            }
            // Nothing outside of rows is kept, except the name of a tag.
            let is_kept =
                !matches!(self.state, State::Text | State::Comment | State::CharacterData | State::Declaration(_));
            if !self.is_in_row && !is_kept {
                self.row_bytes = 0;
            }
        }
        if self.is_complete { LineOutcome::End } else { LineOutcome::NeedsMore }
    }

    /// Reads a byte. Returns whether it ends a row.
    fn step(&mut self, byte: u8) -> bool {
        let is_space = byte.is_ascii_whitespace();
        match self.state {
            State::Text if byte == b'<' => {
                self.tag.clear();
                self.state = State::Open;
            }
            State::Text if self.is_in_row => self.text.push(byte),
            State::Text => {}
            State::Open => match byte {
                b'/' => {
                    self.end_text();
                    self.state = State::Closing;
                }
                b'!' => self.state = State::Special,
                b'?' => self.state = State::Declaration(0),
                _ => {
                    self.text.clear();
                    self.name.clear();
                    self.state = State::Name;
                    return self.step(byte);
                }
            },
            State::Name => match byte {
                b'>' => return self.open(false),
                b'/' => self.state = State::Empty,
                _ if is_space => self.state = State::InTag,
                _ => self.tag.push(byte),
            },
            State::InTag => match byte {
                b'>' => return self.open(false),
                b'/' => self.state = State::Empty,
                _ if is_space => {}
                _ => {
                    self.begin_row();
                    self.attribute.clear();
                    self.attribute.push(byte);
                    self.state = State::Attribute;
                }
            },
            State::Attribute => match byte {
                b'=' => self.state = State::BeforeValue,
                b'>' => return self.open(false),
                b'/' => self.state = State::Empty,
                _ if is_space => {}
                _ => self.attribute.push(byte),
            },
            State::BeforeValue => match byte {
                b'"' | b'\'' => {
                    self.text.clear();
                    self.state = State::Value(byte);
                }
                b'>' => return self.open(false),
                _ => {}
            },
            State::Value(quote) if byte == quote => {
                self.end_attribute();
                self.state = State::InTag;
            }
            State::Value(_) => self.text.push(byte),
            State::Empty => match byte {
                b'>' => return self.open(true),
                _ => self.state = State::InTag,
            },
            State::Closing => match byte {
                b'>' => {
                    self.state = State::Text;
                    self.text.clear();
                    self.name.clear();
                    return self.close();
                }
                _ if is_space => {}
                _ => self.tag.push(byte),
            },
            State::Special | State::Comment | State::CharacterData | State::Declaration(_) => self.step_special(byte),
        }
        false
    }

    fn step_special(&mut self, byte: u8) {
        match self.state {
            State::Special => {
                self.tag.push(byte);
                self.state = match &*self.tag {
                    COMMENT => State::Comment,
                    CHARACTER_DATA => State::CharacterData,
                    start if COMMENT.starts_with(start) || CHARACTER_DATA.starts_with(start) => State::Special,
                    _ if byte == b'>' => State::Text,
                    start => State::Declaration(start.iter().filter(|byte| **byte == b'[').count() as u32),
                };
                if matches!(self.state, State::Comment | State::CharacterData) {
                    self.tag.clear();
                }
            }
            State::Comment => {
                // `tag` has the last two bytes.
                if byte == b'>' && *self.tag == *COMMENT {
                    self.state = State::Text;
                }
                self.tag.push(byte);
                self.tag.drain(..self.tag.len().saturating_sub(COMMENT.len()));
            }
            State::CharacterData => {
                if self.is_in_row {
                    // The end of the text replaces entities, and an ampersand here is none.
                    match byte {
                        b'&' => self.text.extend_from_slice(b"&amp;"),
                        _ => self.text.push(byte),
                    }
                }
                self.tag.push(byte);
                if self.tag.ends_with(b"]]>") {
                    self.text.truncate(self.text.len().saturating_sub(if self.is_in_row { 3 } else { 0 }));
                    self.state = State::Text;
                } else if self.tag.len() > 2 {
                    self.tag.drain(..self.tag.len() - 2);
                }
            }
            State::Declaration(depth) => {
                self.state = match byte {
                    b'[' => State::Declaration(depth.saturating_add(1)),
                    b']' => State::Declaration(depth.saturating_sub(1)),
                    b'>' if depth == 0 => State::Text,
                    _ => State::Declaration(depth),
                };
            }
            _ => {}
        }
    }

    /// Begins a row if the tag has its name.
    fn begin_row(&mut self) {
        if !self.is_in_row && *self.tag == *self.row {
            self.is_in_row = true;
            self.row_bytes = self.tag.len();
            self.values.fill(None);
        }
    }

    /// The tag of an element ends. Returns whether it is a row without content.
    fn open(&mut self, is_empty: bool) -> bool {
        self.begin_row();
        self.state = State::Text;
        self.text.clear();
        if is_empty {
            self.name.clear();
            return self.close();
        }
        if self.name.is_empty() {
            self.name.extend_from_slice(&self.tag);
        }
        false
    }

    /// An element with the name of the tag ends. Returns whether it is a row.
    fn close(&mut self) -> bool {
        let is_row = self.is_in_row && *self.tag == *self.row;
        self.is_in_row &= !is_row;
        is_row
    }

    /// The text of the element that was opened last ends.
    fn end_text(&mut self) {
        if self.is_in_row && !self.name.is_empty() {
            let name = std::mem::take(&mut self.name);
            self.put(&name);
            self.name = name;
        }
    }

    /// The value of an attribute ends.
    fn end_attribute(&mut self) {
        if *self.tag == *b"field" && *self.attribute == *b"name" {
            self.name.clear();
            let name = decoded(&self.text);
            self.name.extend_from_slice(&name);
        } else if self.is_in_row {
            let attribute = std::mem::take(&mut self.attribute);
            self.put(&attribute);
            self.attribute = attribute;
        }
    }

    /// Keeps the text as the value of this name.
    fn put(&mut self, name: &[u8]) {
        if self.text.is_empty() {
            return;
        }
        for (known, value) in self.names.iter().zip(&mut self.values) {
            if **known == *name {
                *value = Some(decoded(&self.text));
            }
        }
    }
}

/// Replaces XML's five entities. As in MySQL, others stay as they are.
fn decoded(text: &[u8]) -> Vec<u8> {
    const ENTITIES: [(&[u8], u8); 5] =
        [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let entity = ENTITIES.iter().find(|(name, _)| *byte == b'&' && rest.starts_with(name));
        let (value, next) = entity.map_or((*byte, after), |(name, value)| (*value, &rest[name.len()..]));
        out.push(value);
        rest = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_bounded_and_the_bytes_between_rows_are_not() {
        let tags = format!("<a>{}<row id='1'/>", "<x y='1'/><!-- c --><![CDATA[z]]>".repeat(1000));
        let mut reader = XmlReader::new(b"row", std::iter::once(Box::from(&b"id"[..])));
        for byte in tags.as_bytes() {
            reader.push(&[*byte]);
            match reader.next_row(&mut Line::default()) {
                LineOutcome::Line => return,
                outcome => assert!(outcome == LineOutcome::NeedsMore && reader.unread_bytes() < 40),
            }
        }
        panic!("the file has a row");
    }

    #[test]
    fn many_fields_of_one_long_text_are_too_long() {
        let names = std::iter::repeat_n(Box::from(&b"a"[..]), 70);
        let mut reader = XmlReader::new(b"row", names);
        reader.push(format!("<row a='{}'/>", "x".repeat(1 << 20)).as_bytes());
        assert_eq!(reader.next_row(&mut Line::default()), LineOutcome::TooLong);
    }

    fn rows(row: &str, file: &str, piece: usize) -> Vec<String> {
        let names = ["id", "name", "id"].map(|name| name.as_bytes().into());
        let mut reader = XmlReader::new(row.as_bytes(), names.into_iter());
        let mut pieces = file.as_bytes().chunks(piece);
        let (mut line, mut shown) = (Line::default(), Vec::new());
        loop {
            match reader.next_row(&mut line) {
                LineOutcome::Line => {
                    let mut start = 0;
                    let text = |(end, is_null): &(usize, bool)| {
                        let value = String::from_utf8_lossy(&line.bytes[start..*end]).into_owned();
                        start = *end;
                        if *is_null { "~".to_owned() } else { value }
                    };
                    shown.push(line.fields.iter().map(text).collect::<Vec<_>>().join("|"));
                }
                LineOutcome::NeedsMore => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None => reader.end(),
                },
                LineOutcome::End | LineOutcome::TooLong => return shown,
            }
        }
    }

    #[test]
    fn rows_have_attributes_elements_and_fields_wherever_a_piece_ends() {
        for (row, file, expected) in [
            ("row", "<list><row id=\"1\" name='a b'/><row name=\"c\" ></row></list>", vec!["1|a b|1", "~|c|~"]),
            ("row", "<row><id>1</id><name>a\nb</name></row>", vec!["1|a\nb|1"]),
            ("row", "<row><field name='id'>1</field> <field name=\"name\" x=\"y\">a</field></row>", vec!["1|a|1"]),
            ("row", "<row id=\"1\"><id>2</id><x><name>deep</name></x></row>", vec!["2|deep|2"]),
            ("person", "<row><id>1</id></row><person id='2'><name/></person>", vec!["2|~|2"]),
            ("row", "<row><id></id><name> </name></row>", vec!["~| |~"]),
            ("row", "<row id='1'><field name='name' xsi:nil=\"true\" /></row>", vec!["1|~|1"]),
            (
                "row",
                "<row><name>&lt;a&gt; &amp;lt; &quot;&apos; &x; &#65;</name></row>",
                vec!["~|<a> &lt; \"' &x; &#65;|~"],
            ),
            ("row", "<row><name><![CDATA[<b> ]] &lt;]]></name></row>", vec!["~|<b> ]] &lt;|~"]),
            ("row", "<?xml version=\"1.0\"?><!DOCTYPE a [<!ELEMENT row (id)>]><row id='1'/>", vec!["1|~|1"]),
            ("row", "<!-- <row id='1'/> -- > --><row><!-- x --><id>2</id></row>", vec!["2|~|2"]),
            ("row", "<rows><row id='1'/><rowx id='2'/><row id='3'>", vec!["1|~|1"]),
            ("row", "<row\n\tid = '1' /><row id=1></row><row", vec!["1|~|1", "~|~|~"]),
            ("row", "no xml < at > all </ row>", vec![]),
        ] {
            for piece in [1, 2, 3, 5, 1000] {
                assert_eq!(rows(row, file, piece), expected, "{file} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn text_outside_of_rows_does_not_count_for_the_length_of_a_row() {
        let mut reader = XmlReader::new(b"row", std::iter::empty());
        let mut line = Line::default();
        for _ in 0..100 {
            reader.push(&b"<!-- comment --> text ".repeat(20));
            assert_eq!(reader.next_row(&mut line), LineOutcome::NeedsMore);
        }
        assert!(reader.unread_bytes() < 100, "{}", reader.unread_bytes());
        reader.push(b"<row><a>");
        reader.push(&[b'x'; 1000]);
        assert_eq!(reader.next_row(&mut line), LineOutcome::NeedsMore);
        assert!(reader.unread_bytes() > 1000);
    }
}
