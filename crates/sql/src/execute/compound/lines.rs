//! Divides a text file into lines and fields, by the rules of MySQL's LOAD DATA.
//!
//! The file arrives in pieces. A line is read when it is complete, so a piece may end anywhere.

use crate::parse::statement::FileFormat;
use crate::plan::FieldWidth;

/// Divides the bytes of a file into lines and fields.
#[derive(Debug)]
pub(super) struct LineReader {
    format: FileFormat,
    /// The widths of fields that nothing separates; else empty.
    widths: Vec<FieldWidth>,
    /// LINES TERMINATED BY; empty if it equals FIELDS TERMINATED BY. Without it, the number of fields ends a
    /// line.
    line_terminator: Vec<u8>,
    bytes: Vec<u8>,
    /// Start of the next line in `bytes`.
    position: usize,
    is_complete: bool,
    /// Number of unread bytes from which on the next line is tried again. It doubles with each attempt, so
    /// that a long line is not read once for each piece.
    wanted_bytes: usize,
}

/// A field of a line: the end of its bytes, or `None` for NULL.
pub(super) type FieldEnd = (usize, bool);

/// The fields of one line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The values of the fields, one after the other.
    pub bytes: Vec<u8>,
    /// For each field the end of its value in `bytes`, and whether the field is NULL.
    pub fields: Vec<FieldEnd>,
    /// Whether the line has more fields.
    pub has_more: bool,
}

/// The outcome of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineOutcome {
    /// A line was read.
    Line,
    /// More bytes of the file are needed.
    NeedsMore,
    /// The file has no more lines.
    End,
    /// The fields of a line have more than [`LINE_BYTES_MAX`](super::load::LINE_BYTES_MAX) bytes.
    TooLong,
}

/// The bytes end, and more may follow.
struct NeedsMore;

impl LineReader {
    /// Reads lines of this format. `widths` are those of fields that nothing separates.
    pub fn new(format: &FileFormat, widths: &[FieldWidth]) -> LineReader {
        let is_same = format.line_terminator == format.field_terminator;
        LineReader {
            format: format.clone(),
            widths: widths.to_vec(),
            line_terminator: if is_same { Vec::new() } else { format.line_terminator.clone() },
            bytes: Vec::new(),
            position: 0,
            is_complete: false,
            wanted_bytes: 0,
        }
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.position > self.bytes.len() / 2 {
            self.bytes.drain(..self.position);
            self.position = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Notes that the file has no more bytes.
    pub fn end(&mut self) {
        self.is_complete = true;
        self.wanted_bytes = 0;
    }

    /// Number of bytes that no line has consumed yet.
    pub fn unread_bytes(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Skips a line. The end of the file ends the last line. `line` is memory for it.
    pub fn skip_line(&mut self, line: &mut Line) -> LineOutcome {
        if self.line_terminator.is_empty() {
            return if self.widths.is_empty() { LineOutcome::Line } else { self.next_line(0, line) };
        }
        self.attempt(|cursor, reader| cursor.rest_of_line(reader).map(|_| LineOutcome::Line))
    }

    /// Reads the next line, of which at most `count` fields are kept.
    pub fn next_line(&mut self, count: usize, line: &mut Line) -> LineOutcome {
        line.bytes.clear();
        line.fields.clear();
        line.has_more = false;
        self.attempt(|cursor, reader| {
            cursor.is_before_start = !reader.format.line_start.is_empty();
            if !reader.widths.is_empty() {
                return cursor.row_of_fixed_size(reader, line);
            }
            while line.fields.len() < count && cursor.field(reader, line)? {}
            if line.fields.is_empty() {
                return Ok(LineOutcome::End);
            }
            if !cursor.is_line_over {
                line.has_more = cursor.rest_of_line(reader)?;
            }
            Ok(LineOutcome::Line)
        })
    }

    fn attempt(
        &mut self,
        read: impl FnOnce(&mut Cursor<'_>, &LineReader) -> Result<LineOutcome, NeedsMore>,
    ) -> LineOutcome {
        if self.is_complete && self.unread_bytes() == 0 {
            return LineOutcome::End;
        }
        if self.unread_bytes() < self.wanted_bytes {
            return LineOutcome::NeedsMore;
        }
        let mut cursor = Cursor {
            bytes: &self.bytes,
            at: self.position,
            is_complete: self.is_complete,
            is_line_over: false,
            is_before_start: false,
        };
        match read(&mut cursor, self) {
            Ok(outcome) => {
                self.position = cursor.at;
                self.wanted_bytes = 0;
                outcome
            }
            Err(NeedsMore) => {
                self.wanted_bytes = self.unread_bytes().saturating_mul(2).max(1);
                LineOutcome::NeedsMore
            }
        }
    }
}

/// Reads one line.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    is_complete: bool,
    /// Whether the end of the line or of the file has been read.
    is_line_over: bool,
    /// Whether LINES STARTING BY has not been found yet.
    is_before_start: bool,
}

impl Cursor<'_> {
    /// The next byte; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<u8>, NeedsMore> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(Some(*byte))
            }
            None if self.is_complete => Ok(None),
            None => Err(NeedsMore),
        }
    }

    /// Consumes `expected` if it comes next. An empty text never does.
    fn accept(&mut self, expected: &[u8]) -> Result<bool, NeedsMore> {
        let rest = &self.bytes[self.at..];
        if !expected.is_empty() && rest.starts_with(expected) {
            self.at += expected.len();
            return Ok(true);
        }
        let may_follow = !self.is_complete && rest.len() < expected.len() && expected.starts_with(rest);
        if may_follow { Err(NeedsMore) } else { Ok(false) }
    }

    /// Skips the rest of the line. Returns true if it was not empty.
    fn rest_of_line(&mut self, reader: &LineReader) -> Result<bool, NeedsMore> {
        let mut was_cut = false;
        if reader.line_terminator.is_empty() {
            return Ok(false);
        }
        while !self.accept(&reader.line_terminator)? {
            match self.next()? {
                None => break,
                Some(byte) if reader.format.escaped_by == [byte] => {
                    was_cut = true;
                    if self.next()?.is_none() {
                        break;
                    }
                }
                Some(_) => was_cut = true,
            }
        }
        Ok(was_cut)
    }

    /// Skips to the end of LINES STARTING BY, if it has not been found yet. Returns false at the end of the
    /// file.
    fn skip_to_start(&mut self, reader: &LineReader) -> Result<bool, NeedsMore> {
        if std::mem::take(&mut self.is_before_start) {
            while !self.accept(&reader.format.line_start)? {
                if self.next()?.is_none() {
                    self.is_line_over = true;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Reads a line whose fields have the widths of their columns. The end of a line may come before that of
    /// its fields.
    fn row_of_fixed_size(&mut self, reader: &LineReader, line: &mut Line) -> Result<LineOutcome, NeedsMore> {
        let row_bytes: usize = reader.widths.iter().map(|width| width.row_bytes).sum();
        if !self.skip_to_start(reader)? {
            return Ok(LineOutcome::End);
        }
        while line.bytes.len() < row_bytes {
            let Some(byte) = self.next()? else {
                self.is_line_over = true;
                if line.bytes.is_empty() {
                    return Ok(LineOutcome::End);
                }
                break;
            };
            if reader.format.escaped_by == [byte] {
                let escaped = self.next()?;
                line.bytes.push(escaped.map_or(byte, unescaped));
                continue;
            }
            if reader.line_terminator.first() == Some(&byte) {
                self.at -= 1;
                if self.accept(&reader.line_terminator)? {
                    self.is_line_over = true;
                    break;
                }
                self.at += 1;
            }
            line.bytes.push(byte);
        }
        let mut start = 0;
        for width in &reader.widths {
            if start == line.bytes.len() {
                break;
            }
            start += width.bytes_max.min(line.bytes.len() - start);
            line.fields.push((start, false));
        }
        line.has_more = start < line.bytes.len();
        if !self.is_line_over {
            line.has_more |= self.rest_of_line(reader)?;
        }
        Ok(LineOutcome::Line)
    }

    /// Reads a field into the line. Returns false if the line has no more.
    fn field(&mut self, reader: &LineReader, line: &mut Line) -> Result<bool, NeedsMore> {
        if self.is_line_over {
            return Ok(false);
        }
        let format = &reader.format;
        if !self.skip_to_start(reader)? {
            return Ok(false);
        }
        let start = line.bytes.len();
        let Some(first) = self.next()? else {
            self.is_line_over = true;
            return Ok(false);
        };
        let is_enclosed = format.enclosed_by == [first];
        if !is_enclosed {
            self.at -= 1;
        }
        let mut has_null_escape = false;
        loop {
            if !is_enclosed {
                if self.accept(&reader.line_terminator)? {
                    self.is_line_over = true;
                    break;
                }
                if self.accept(&format.field_terminator)? {
                    break;
                }
            }
            let Some(byte) = self.next()? else {
                self.is_line_over = true;
                if is_enclosed {
                    // The enclosing character is part of a value that it does not end.
                    line.bytes.insert(start, first);
                }
                break;
            };
            if is_enclosed && byte == first {
                if self.ends_enclosed(reader, first, line)? {
                    break;
                }
                continue;
            }
            if format.escaped_by == [byte] {
                match self.next()? {
                    None => line.bytes.push(byte),
                    Some(escaped) if format.escaped_by == format.enclosed_by => {
                        // The two characters are one: only its repetition is an escape.
                        line.bytes.push(byte);
                        if escaped != byte {
                            self.at -= 1;
                        }
                    }
                    Some(escaped) => {
                        has_null_escape |= escaped == b'N';
                        line.bytes.push(unescaped(escaped));
                    }
                }
                continue;
            }
            line.bytes.push(byte);
        }
        let value = &line.bytes[start..];
        let is_null_word = !is_enclosed && !format.enclosed_by.is_empty() && value == b"NULL";
        let is_null = is_null_word || has_null_escape && value == b"N";
        line.fields.push((line.bytes.len(), is_null));
        Ok(true)
    }

    /// Continues after the enclosing character inside an enclosed field. Returns true if the field is over.
    /// Otherwise the character belongs to the value.
    fn ends_enclosed(&mut self, reader: &LineReader, enclosing: u8, line: &mut Line) -> Result<bool, NeedsMore> {
        match self.next()? {
            None => {
                self.is_line_over = true;
                return Ok(true);
            }
            Some(byte) if byte == enclosing => {
                line.bytes.push(enclosing);
                return Ok(false);
            }
            Some(_) => self.at -= 1,
        }
        if self.accept(&reader.line_terminator)? {
            self.is_line_over = true;
            return Ok(true);
        }
        if self.accept(&reader.format.field_terminator)? {
            return Ok(true);
        }
        line.bytes.push(enclosing);
        Ok(false)
    }
}

/// The byte that an escaped byte stands for.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv() -> FileFormat {
        FileFormat { field_terminator: b",".to_vec(), enclosed_by: b"\"".to_vec(), ..FileFormat::of_dialect(false) }
    }

    /// The lines of a file that arrives in pieces of this size. NULL is `~`, a line that was cut ends with
    /// `+`.
    fn lines(format: &FileFormat, count: usize, file: &[u8], piece: usize) -> Vec<String> {
        lines_of(LineReader::new(format, &[]), count, file, piece)
    }

    fn lines_of(mut reader: LineReader, count: usize, file: &[u8], piece: usize) -> Vec<String> {
        let mut pieces = file.chunks(piece);
        let (mut line, mut shown) = (Line::default(), Vec::new());
        loop {
            match reader.next_line(count, &mut line) {
                LineOutcome::End | LineOutcome::TooLong => return shown,
                LineOutcome::NeedsMore => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None => reader.end(),
                },
                LineOutcome::Line => {
                    let mut start = 0;
                    let mut texts = Vec::new();
                    for (end, is_null) in &line.fields {
                        let value = String::from_utf8_lossy(&line.bytes[start..*end]).into_owned();
                        texts.push(if *is_null { "~".to_owned() } else { value });
                        start = *end;
                    }
                    shown.push(texts.join("|") + if line.has_more { "+" } else { "" });
                }
            }
        }
    }

    #[test]
    fn lines_are_divided_wherever_a_piece_ends() {
        let tabs = FileFormat::of_dialect(false);
        let lines_only = FileFormat { line_start: b"xx".to_vec(), ..csv() };
        let windows = FileFormat { line_terminator: b"\r\n".to_vec(), ..csv() };
        let counted = FileFormat { line_terminator: b",".to_vec(), ..csv() };
        let same = FileFormat { escaped_by: b"\"".to_vec(), ..csv() };
        for (format, file, expected) in [
            (&tabs, "1\ta\n2\tb\n", vec!["1|a", "2|b"]),
            (&tabs, "1\ta\n\n2", vec!["1|a", "", "2"]),
            (&tabs, "1\t\\N\n2\tx\\ty\\\\\\n\n", vec!["1|~", "2|x\ty\\\n"]),
            (&tabs, "1\ta\tb\n2\tc\t\n", vec!["1|a+", "2|c"]),
            (&tabs, "1\tNULL\n", vec!["1|NULL"]),
            (&csv(), "1,\"a,b\"\n2,\"c\"\"d\"\n3,\"e\nf\"\n", vec!["1|a,b", "2|c\"d", "3|e\nf"]),
            (&csv(), "1,NULL\n2,\"NULL\"\n3,a\"b\n4,\"a\"b\",\n", vec!["1|~", "2|NULL", "3|a\"b", "4|a\"b"]),
            (&csv(), "1,\"open\n2,x\n", vec!["1|\"open\n2,x\n"]),
            (&lines_only, "zxx1,a\nno\nxx2,b\n", vec!["1|a", "2|b"]),
            (&windows, "1,a\r\n2,\"b\r\n\"\r\n", vec!["1|a", "2|b\r\n"]),
            (&counted, "1,a,2,b,", vec!["1|a", "2|b"]),
            (&same, "1,\"a\"\"b\"\n2,\"c\\n\"\n", vec!["1|a\"b", "2|c\\n"]),
            (&tabs, "", vec![]),
        ] {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(lines(format, 2, file.as_bytes(), piece), expected, "{file:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn rows_of_a_fixed_size_are_divided_by_widths() {
        let fixed = FileFormat { field_terminator: Vec::new(), ..FileFormat::of_dialect(false) };
        let endless = FileFormat { line_terminator: Vec::new(), ..fixed.clone() };
        let started = FileFormat { line_start: b"> ".to_vec(), line_terminator: b"\r\n".to_vec(), ..fixed.clone() };
        let width = |row_bytes, bytes_max| FieldWidth { row_bytes, bytes_max };
        let plain = [width(3, 3), width(2, 2)];
        let blob = [width(3, 3), width(4, 100)];
        for (format, widths, file, expected) in [
            (&fixed, plain, "abcde\nfghij\n", vec!["abc|de", "fgh|ij"]),
            (&fixed, plain, "abcdefg\nab\n\nabcd", vec!["abc|de+", "ab", "", "abc|d"]),
            (&fixed, plain, "a\\\nc\\\\\\td\nx\\", vec!["a\nc|\\\t+", "x\\"]),
            (&endless, plain, "abcdefghijkl", vec!["abc|de", "fgh|ij", "kl"]),
            (&started, plain, "no> abcde\r\n> a\rcd\r\n", vec!["abc|de", "a\rc|d"]),
            (&fixed, blob, "abcdefg\nabcdefgh\n", vec!["abc|defg", "abc|defg+"]),
        ] {
            for piece in [1, 2, 3, 7, 1000] {
                let seen = lines_of(LineReader::new(format, &widths), 2, file.as_bytes(), piece);
                assert_eq!(seen, expected, "{file:?} in pieces of {piece}");
            }
        }
        let mut reader = LineReader::new(&endless, &plain);
        reader.push(b"abcdefghij");
        let mut line = Line::default();
        assert_eq!(reader.skip_line(&mut line), LineOutcome::Line);
        assert_eq!(reader.next_line(2, &mut line), LineOutcome::Line);
        assert_eq!(line.bytes, b"fghij");
    }

    #[test]
    fn a_long_line_is_tried_again_only_when_its_length_has_doubled() {
        let mut reader = LineReader::new(&csv(), &[]);
        let mut line = Line::default();
        let mut attempts = 0;
        for _ in 0..1000 {
            reader.push(b"0123456789");
            attempts += usize::from(reader.unread_bytes() >= reader.wanted_bytes);
            assert_eq!(reader.next_line(2, &mut line), LineOutcome::NeedsMore);
        }
        assert!(attempts < 20, "{attempts}");
        reader.end();
        assert_eq!(reader.next_line(2, &mut line), LineOutcome::Line);
        assert_eq!((line.bytes.len(), reader.next_line(2, &mut line)), (10_000, LineOutcome::End));
    }
}
