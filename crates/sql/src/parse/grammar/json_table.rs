//! JSON_TABLE.

use super::parser::{Parse, Parser, Stop};
use crate::parse::definition::ColumnDefinition;
use crate::parse::error::ParseErrorKind;
use crate::parse::json_table::{JsonAction, JsonColumn, JsonTable};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::query::{DerivedSource, DerivedTable, FromItem};

impl Parser<'_> {
    /// `JSON_TABLE(document, path COLUMNS (...)) [AS] alias`
    pub(super) fn json_table(&mut self) -> Parse<FromItem> {
        self.expect_word(Keyword::JsonTable)?;
        self.expect(TokenKind::Open)?;
        let document = self.expression()?;
        self.expect(TokenKind::Comma)?;
        let path = self.string()?;
        let columns = self.json_columns()?;
        self.expect(TokenKind::Close)?;
        let Some(alias) = self.table_alias()? else {
            return Err(Stop::Error(ParseErrorKind::TableFunctionWithoutAlias, self.current.start));
        };
        let source = DerivedSource::JsonTable(Box::new(JsonTable { document, path, columns }));
        let derived = DerivedTable { source, alias: Some(alias), columns: Vec::new(), lateral: true };
        Ok(FromItem::Derived(Box::new(derived)))
    }

    /// `COLUMNS (...)`
    fn json_columns(&mut self) -> Parse<Vec<JsonColumn>> {
        self.expect_word(Keyword::Columns)?;
        self.expect(TokenKind::Open)?;
        self.enter()?;
        let columns = self.comma_list(Self::json_column)?;
        self.leave();
        self.expect(TokenKind::Close)?;
        Ok(columns)
    }

    fn json_column(&mut self) -> Parse<JsonColumn> {
        let is_path = |kind: TokenKind| kind == TokenKind::String;
        let is_nested = self.at_plain(b"NESTED")
            && (is_path(self.next.kind) || self.next.kind == TokenKind::Name && is_path(self.peek_three()[0]));
        if is_nested {
            self.advance();
            self.accept_plain(b"PATH");
            let path = self.string()?;
            return Ok(JsonColumn::Nested { path, columns: self.json_columns()? });
        }
        let name = self.name()?;
        if self.accept_word(Keyword::For) {
            return if self.accept_plain(b"ORDINALITY") { Ok(JsonColumn::Ordinality(name)) } else { self.syntax() };
        }
        let column = ColumnDefinition::new(name, self.column_type()?);
        let is_exists = self.accept_word(Keyword::Exists);
        if !self.accept_plain(b"PATH") {
            return self.syntax();
        }
        let path = self.string()?;
        if is_exists {
            return Ok(JsonColumn::Exists { column, path });
        }
        let (mut on_empty, mut on_error) = (None, None);
        while let Some(action) = self.json_action()? {
            self.expect_word(Keyword::On)?;
            let place = match self.accept_plain(b"ERROR") {
                true => &mut on_error,
                false => {
                    self.expect_word(Keyword::Empty)?;
                    &mut on_empty
                }
            };
            if place.replace(action).is_some() {
                return self.syntax();
            }
        }
        let (on_empty, on_error) = (on_empty.unwrap_or(JsonAction::Null), on_error.unwrap_or(JsonAction::Null));
        Ok(JsonColumn::Path { column, path, on_empty, on_error })
    }

    fn json_action(&mut self) -> Parse<Option<JsonAction>> {
        if self.accept_word(Keyword::Null) {
            return Ok(Some(JsonAction::Null));
        }
        if self.accept_word(Keyword::Default) {
            return Ok(Some(JsonAction::Default(self.string()?)));
        }
        Ok(self.accept_plain(b"ERROR").then_some(JsonAction::Error))
    }
}
