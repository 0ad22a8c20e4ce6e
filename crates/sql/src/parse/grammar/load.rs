//! LOAD DATA, and the formats of text files.

use super::parser::{Parse, Parser};
use crate::parse::expression::{Expression, Literal};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::literal::decode_integer;
use crate::parse::statement::{FileFormat, Insert, InsertSource, LoadData, LoadField};

impl Parser<'_> {
    /// LOAD DATA [LOCAL] INFILE, LOAD XML [LOCAL] INFILE.
    pub(super) fn load(&mut self) -> Parse<Insert> {
        self.advance();
        let is_xml = self.accept_text("XML");
        if !is_xml && !self.accept_text("DATA") {
            return self.syntax();
        }
        if !self.accept_word(Keyword::LowPriority) {
            self.accept_text("CONCURRENT");
        }
        let is_local = self.accept_word(Keyword::Local);
        self.expect_word(Keyword::Infile)?;
        let file = self.string()?;
        let replace = self.accept_word(Keyword::Replace);
        // The server cannot stop the file that a client sends, so LOCAL skips rows with existing keys.
        let ignore = !replace && (self.accept_word(Keyword::Ignore) || is_local);
        self.expect_word(Keyword::Into)?;
        self.expect_word(Keyword::Table)?;
        let table = self.object_name()?;
        if self.at_word(Keyword::Partition) {
            return self.unsupported("PARTITION selection");
        }
        let character_set = if self.accept_character_set() { Some(self.character_set_name()?) } else { None };
        let format = if is_xml { FileFormat::of_dialect(false) } else { self.file_format()? };
        let xml_row = if is_xml { Some(self.xml_row()?) } else { None };
        let mut skipped_lines = 0;
        if self.accept_word(Keyword::Ignore) {
            let is_integer = self.current.kind == TokenKind::Integer;
            let Some(lines) = decode_integer(self.bytes(self.current)).filter(|_| is_integer) else {
                return self.syntax();
            };
            skipped_lines = lines;
            self.advance();
            if self.accept_any(&[Keyword::Lines, Keyword::Rows]).is_none() {
                return self.syntax();
            }
        }
        let mut fields = None;
        if self.accept(TokenKind::Open) && !self.accept(TokenKind::Close) {
            fields = Some(self.comma_list(Self::load_field)?);
            self.expect(TokenKind::Close)?;
        }
        let mut assignments = Vec::new();
        if self.accept_word(Keyword::Set) {
            assignments = self.comma_list(Self::assignment)?;
        }
        let has_field_list = fields.is_some();
        let load = LoadData {
            is_local,
            file,
            character_set,
            format,
            xml_row,
            skipped_lines,
            fields,
            has_field_list,
            assignments,
        };
        Ok(Insert {
            replace,
            ignore,
            table,
            columns: None,
            source: InsertSource::Load(Box::new(load)),
            row_alias: None,
            on_duplicate: Vec::new(),
            returning: Vec::new(),
            hints: None,
        })
    }

    /// `[ROWS IDENTIFIED BY '<name>']`
    fn xml_row(&mut self) -> Parse<Vec<u8>> {
        if !self.accept_word(Keyword::Rows) {
            return Ok(b"row".to_vec());
        }
        if !self.accept_text("IDENTIFIED") {
            return self.syntax();
        }
        self.expect_word(Keyword::By)?;
        let tag = self.string()?;
        let name = tag.strip_prefix(b"<").unwrap_or(&tag);
        Ok(name.strip_suffix(b">").unwrap_or(name).to_vec())
    }

    fn load_field(&mut self) -> Parse<LoadField> {
        Ok(match self.current.kind {
            TokenKind::UserVariable => LoadField::Variable(self.user_variable_name()?),
            _ => LoadField::Column(self.column_reference()?.name),
        })
    }

    /// FIELDS and LINES, both optional.
    pub(super) fn file_format(&mut self) -> Parse<FileFormat> {
        let mut format = FileFormat::of_dialect(self.dialect.no_backslash_escapes);
        if self.accept_any(&[Keyword::Fields, Keyword::Columns]).is_some() {
            let mut options = 0;
            loop {
                if self.accept_words(Keyword::Terminated, Keyword::By) {
                    format.field_terminator = self.separator()?;
                } else if self.accept_word(Keyword::Optionally) {
                    self.expect_word(Keyword::Enclosed)?;
                    self.expect_word(Keyword::By)?;
                    format.enclosed_by = self.separator()?;
                    format.is_optionally_enclosed = true;
                } else if self.accept_words(Keyword::Enclosed, Keyword::By) {
                    format.enclosed_by = self.separator()?;
                    format.is_optionally_enclosed = false;
                } else if self.accept_words(Keyword::Escaped, Keyword::By) {
                    format.escaped_by = self.separator()?;
                } else if options == 0 {
                    return self.syntax();
                } else {
                    break;
                }
                options += 1;
            }
        }
        if self.accept_word(Keyword::Lines) {
            let mut options = 0;
            loop {
                if self.accept_words(Keyword::Terminated, Keyword::By) {
                    format.line_terminator = self.separator()?;
                } else if self.accept_words(Keyword::Starting, Keyword::By) {
                    format.line_start = self.separator()?;
                } else if options == 0 {
                    return self.syntax();
                } else {
                    break;
                }
                options += 1;
            }
        }
        Ok(format)
    }

    /// A string, or bytes as a hexadecimal or bit literal.
    fn separator(&mut self) -> Parse<Vec<u8>> {
        if !matches!(self.current.kind, TokenKind::Hexadecimal | TokenKind::Bits) {
            return self.string();
        }
        match self.literal()? {
            Expression::Literal(Literal::Hexadecimal(bytes) | Literal::Bits(bytes)) => Ok(bytes),
            _ => self.syntax(),
        }
    }

    /// Whether the next token is this word, which is no keyword.
    pub(super) fn next_is_text(&self, word: &str) -> bool {
        self.next.kind == TokenKind::Name && self.bytes(self.next).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Consumes the current token if it is this word, which is no keyword.
    pub(super) fn accept_text(&mut self, word: &str) -> bool {
        let found =
            self.current.kind == TokenKind::Name && self.bytes(self.current).eq_ignore_ascii_case(word.as_bytes());
        if found {
            self.advance();
        }
        found
    }
}
