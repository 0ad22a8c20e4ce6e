//! Columns of CREATE TABLE: types and attributes.

use super::parser::{Parse, Parser};
use crate::parse::definition::{
    Check, ColumnDefinition, ColumnType, DefaultValue, GeneratedColumn, IntegerSize, LongSize, TypeKind,
};
use crate::parse::deprecation::Deprecation;
use crate::parse::expression::Expression;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;

/// The type that its keywords denote. A length, a precision or attributes may follow them.
struct TypeHead {
    kind: TypeKind,
    national: bool,
    serial: bool,
}

impl Parser<'_> {
    /// A type without the attributes of a column.
    pub(super) fn column_type(&mut self) -> Parse<ColumnType> {
        let head = self.type_head()?;
        self.type_attributes(head)
    }

    /// A column with its type and attributes. CHECK constraints are added to `checks`.
    pub(super) fn column_definition(&mut self, checks: &mut Vec<Check>) -> Parse<ColumnDefinition> {
        let name = self.name()?;
        let head = self.type_head()?;
        // SERIAL is BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE.
        let serial = head.serial;
        let column_type = self.type_attributes(head)?;
        let mut column = ColumnDefinition::new(name, column_type);
        if serial {
            (column.nullable, column.auto_increment, column.unique) = (Some(false), true, true);
        }
        while self.column_attribute(&mut column, checks)? {}
        Ok(column)
    }

    /// Parses one attribute. Returns false if none begins at the current token.
    fn column_attribute(&mut self, column: &mut ColumnDefinition, checks: &mut Vec<Check>) -> Parse<bool> {
        let Some(keyword) = self.word() else { return Ok(false) };
        match keyword {
            Keyword::Null => column.nullable = Some(true),
            Keyword::AutoIncrement => column.auto_increment = true,
            Keyword::Invisible => column.invisible = true,
            Keyword::Visible => column.invisible = false,
            Keyword::Key => column.primary_key = true,
            // SERIAL DEFAULT VALUE is NOT NULL AUTO_INCREMENT UNIQUE.
            Keyword::Serial => {
                self.advance();
                self.expect_word(Keyword::Default)?;
                self.expect_word(Keyword::Value)?;
                column.nullable = Some(false);
                (column.auto_increment, column.unique) = (true, true);
                return Ok(true);
            }
            Keyword::Unique => {
                self.advance();
                self.accept_word(Keyword::Key);
                column.unique = true;
                return Ok(true);
            }
            _ => return self.long_column_attribute(keyword, column, checks),
        }
        self.advance();
        Ok(true)
    }

    /// Parses an attribute of more than one token. Returns false if none begins at the current token.
    fn long_column_attribute(
        &mut self,
        keyword: Keyword,
        column: &mut ColumnDefinition,
        checks: &mut Vec<Check>,
    ) -> Parse<bool> {
        match keyword {
            Keyword::Not | Keyword::Default | Keyword::On | Keyword::Primary | Keyword::Comment | Keyword::Collate => {
                self.advance();
            }
            Keyword::Storage | Keyword::ColumnFormat => {
                self.advance();
                let value = if self.at_word(Keyword::Default) { self.any_word()? } else { self.name()? };
                if keyword == Keyword::Storage && !value.eq_ignore_ascii_case("DEFAULT") {
                    column.on_disk = Some(value.eq_ignore_ascii_case("DISK"));
                }
                return Ok(true);
            }
            Keyword::Srid => {
                self.advance();
                column.srid = Some(self.number()?);
                return Ok(true);
            }
            Keyword::Constraint | Keyword::Check => {
                checks.push(self.column_check(Some(&column.name))?);
                return Ok(true);
            }
            Keyword::References => {
                column.references = Some(self.references()?);
                return Ok(true);
            }
            Keyword::Generated | Keyword::As => {
                column.generated = Some(self.generated_column()?);
                return Ok(true);
            }
            _ => return Ok(false),
        }
        match keyword {
            Keyword::Not => {
                self.expect_word(Keyword::Null)?;
                column.nullable = Some(false);
            }
            Keyword::Default => column.default = Some(self.default_value()?),
            Keyword::On => {
                self.expect_word(Keyword::Update)?;
                column.on_update = Some(self.plain_default()?);
            }
            Keyword::Primary => {
                self.accept_word(Keyword::Key);
                column.primary_key = true;
            }
            Keyword::Comment => column.comment = Some(self.string()?),
            _ => column.column_type.collation = Some(self.collation_name()?),
        }
        Ok(true)
    }

    /// `[GENERATED ALWAYS] AS (expression) [VIRTUAL | STORED]`
    fn generated_column(&mut self) -> Parse<GeneratedColumn> {
        if self.accept_word(Keyword::Generated) {
            self.expect_word(Keyword::Always)?;
        }
        self.expect_word(Keyword::As)?;
        let expression = self.bracketed_expression()?;
        let stored = self.accept_any(&[Keyword::Virtual, Keyword::Stored]) == Some(Keyword::Stored);
        Ok(GeneratedColumn { expression, stored })
    }

    fn bracketed_expression(&mut self) -> Parse<Expression> {
        self.expect(TokenKind::Open)?;
        let expression = self.expression()?;
        self.expect(TokenKind::Close)?;
        Ok(expression)
    }

    /// `[CONSTRAINT [name]] CHECK (...) [[NOT] ENFORCED]`, of a column or of the table.
    pub(super) fn column_check(&mut self, column: Option<&str>) -> Parse<Check> {
        let has_name = self.accept_word(Keyword::Constraint) && !self.at_word(Keyword::Check);
        let name = if has_name { Some(self.name()?) } else { None };
        self.check(name, column)
    }

    /// `CHECK (...) [[NOT] ENFORCED]`
    pub(super) fn check(&mut self, name: Option<String>, column: Option<&str>) -> Parse<Check> {
        self.expect_word(Keyword::Check)?;
        let expression = self.bracketed_expression()?;
        // NOT without ENFORCED begins NOT NULL of the column.
        let is_enforcement = self.at_word(Keyword::Enforced) || self.next_is_word(Keyword::Enforced);
        let enforced = !is_enforcement || self.enforcement()?;
        Ok(Check { name, expression, enforced, column: column.map(str::to_owned) })
    }

    /// `[NOT] ENFORCED`
    pub(super) fn enforcement(&mut self) -> Parse<bool> {
        let is_not = self.accept_word(Keyword::Not);
        self.expect_word(Keyword::Enforced)?;
        Ok(!is_not)
    }

    /// The value of DEFAULT: an expression in parentheses, or a plain value.
    pub(super) fn default_value(&mut self) -> Parse<DefaultValue> {
        if self.current.kind == TokenKind::Open {
            return Ok(DefaultValue::Computed(self.bracketed_expression()?));
        }
        Ok(DefaultValue::Plain(self.plain_default()?))
    }

    /// A literal with an optional sign, or CURRENT_TIMESTAMP. Other calls need parentheses.
    pub(super) fn plain_default(&mut self) -> Parse<Expression> {
        let sign = match self.current.kind {
            TokenKind::Plus | TokenKind::Minus => Some(self.current.kind),
            _ => None,
        };
        if sign.is_some() {
            self.advance();
        }
        // Parses no COLLATE, because COLLATE after the default belongs to the column.
        let value = self.operand()?;
        let is_allowed = match &value {
            Expression::Literal(_) => true,
            Expression::Function(call) => sign.is_none() && call.is_current_timestamp(),
            _ => false,
        };
        if !is_allowed {
            return self.syntax();
        }
        Ok(if sign == Some(TokenKind::Minus) { value.negate() } else { value })
    }

    fn type_head(&mut self) -> Parse<TypeHead> {
        let Some(keyword) = self.word() else { return self.syntax() };
        let kind = match keyword {
            Keyword::National | Keyword::Nchar | Keyword::Nvarchar => {
                let kind = self.national_type()?;
                self.note(Deprecation::National);
                return Ok(TypeHead { kind, national: true, serial: false });
            }
            Keyword::Long => self.long_type()?,
            _ => match self.numeric_type(keyword)? {
                Some(kind) => kind,
                None => self.other_type(keyword)?,
            },
        };
        Ok(TypeHead { kind, national: false, serial: keyword == Keyword::Serial })
    }

    fn numeric_type(&mut self, keyword: Keyword) -> Parse<Option<TypeKind>> {
        let size = match keyword {
            Keyword::Tinyint | Keyword::Int1 | Keyword::Bool | Keyword::Boolean => IntegerSize::Tiny,
            Keyword::Smallint | Keyword::Int2 => IntegerSize::Small,
            Keyword::Mediumint | Keyword::Int3 | Keyword::Middleint => IntegerSize::Medium,
            Keyword::Int | Keyword::Integer | Keyword::Int4 => IntegerSize::Int,
            Keyword::Bigint | Keyword::Int8 | Keyword::Serial => IntegerSize::Big,
            Keyword::Decimal | Keyword::Dec | Keyword::Fixed | Keyword::Numeric | Keyword::Float | Keyword::Float4 => {
                self.advance();
                let (precision, scale) = self.bracketed_precision()?;
                return Ok(Some(match keyword {
                    Keyword::Float | Keyword::Float4 => TypeKind::Float { precision, scale },
                    _ => TypeKind::Decimal { precision, scale },
                }));
            }
            Keyword::Double | Keyword::Real | Keyword::Float8 => {
                self.advance();
                self.accept_word(Keyword::Precision);
                let (precision, scale) = self.bracketed_precision()?;
                if precision.is_some() && scale.is_none() {
                    return self.syntax();
                }
                return Ok(Some(match keyword {
                    Keyword::Real if self.dialect.real_as_float => TypeKind::Float { precision, scale },
                    _ => TypeKind::Double { precision, scale },
                }));
            }
            _ => return Ok(None),
        };
        self.advance();
        let display_width = match keyword {
            Keyword::Bool | Keyword::Boolean => {
                // BOOL is a whole type, without attributes of numbers.
                if matches!(self.word(), Some(Keyword::Unsigned | Keyword::Signed | Keyword::Zerofill)) {
                    return self.syntax();
                }
                Some(1)
            }
            Keyword::Serial => None,
            _ => self.bracketed_number()?,
        };
        Ok(Some(TypeKind::Integer { size, display_width }))
    }

    fn other_type(&mut self, keyword: Keyword) -> Parse<TypeKind> {
        if let Some(size) = long_size(keyword) {
            self.advance();
            let length = match size == LongSize::Normal && self.accept(TokenKind::Open) {
                true => {
                    let length = self.long_number()?;
                    self.expect(TokenKind::Close)?;
                    Some(length)
                }
                false => None,
            };
            return Ok(match keyword {
                Keyword::Text | Keyword::Tinytext | Keyword::Mediumtext | Keyword::Longtext => {
                    TypeKind::Text { size, length }
                }
                _ => TypeKind::Blob { size, length },
            });
        }
        let position = self.current;
        self.advance();
        let kind = match keyword {
            Keyword::Bit => TypeKind::Bit { length: self.bracketed_number()? },
            Keyword::Date => TypeKind::Date,
            Keyword::Time => TypeKind::Time { fraction_digits: self.bracketed_number()?.unwrap_or(0) },
            Keyword::Datetime => TypeKind::DateTime { fraction_digits: self.bracketed_number()?.unwrap_or(0) },
            Keyword::Timestamp => TypeKind::Timestamp { fraction_digits: self.bracketed_number()?.unwrap_or(0) },
            Keyword::Year => {
                let digits = self.bracketed_number()?;
                if digits == Some(4) {
                    self.note(Deprecation::YearDigits);
                }
                TypeKind::Year { digits }
            }
            Keyword::Char | Keyword::Character if self.accept_word(Keyword::Varying) => {
                TypeKind::VarChar { length: self.required_length()? }
            }
            Keyword::Char | Keyword::Character => TypeKind::Char { length: self.bracketed_number()? },
            Keyword::Varchar | Keyword::Varcharacter => TypeKind::VarChar { length: self.required_length()? },
            Keyword::Binary => TypeKind::Binary { length: self.bracketed_number()? },
            Keyword::Varbinary => TypeKind::VarBinary { length: self.required_length()? },
            Keyword::Enum => TypeKind::Enum(self.string_list()?),
            Keyword::Set => TypeKind::Set(self.string_list()?),
            Keyword::Json => TypeKind::Json,
            Keyword::Vector => TypeKind::Vector { entries: self.bracketed_number()? },
            Keyword::Geometry
            | Keyword::Geomcollection
            | Keyword::Geometrycollection
            | Keyword::Point
            | Keyword::Linestring
            | Keyword::Polygon
            | Keyword::Multipoint
            | Keyword::Multilinestring
            | Keyword::Multipolygon => TypeKind::Geometry(keyword.text()),
            _ => return self.syntax_at(position),
        };
        Ok(kind)
    }

    /// `NATIONAL CHAR`, `NCHAR`, `NATIONAL VARCHAR`, `NCHAR VARYING`, `NVARCHAR` and so on.
    fn national_type(&mut self) -> Parse<TypeKind> {
        let mut varying = self.at_word(Keyword::Nvarchar);
        if self.accept_word(Keyword::National) {
            varying =
                match self.accept_any(&[Keyword::Char, Keyword::Character, Keyword::Varchar, Keyword::Varcharacter]) {
                    Some(keyword) => matches!(keyword, Keyword::Varchar | Keyword::Varcharacter),
                    None => return self.syntax(),
                };
        } else {
            let is_nchar = self.at_word(Keyword::Nchar);
            self.advance();
            varying |= is_nchar && self.accept_word(Keyword::Varchar);
        }
        varying |= self.accept_word(Keyword::Varying);
        if varying {
            return Ok(TypeKind::VarChar { length: self.required_length()? });
        }
        Ok(TypeKind::Char { length: self.bracketed_number()? })
    }

    /// `LONG`, `LONG VARCHAR`, `LONG VARBINARY`: synonyms of MEDIUMTEXT and MEDIUMBLOB.
    fn long_type(&mut self) -> Parse<TypeKind> {
        self.advance();
        if self.accept_word(Keyword::Varbinary) {
            return Ok(TypeKind::Blob { size: LongSize::Medium, length: None });
        }
        if self.accept_any(&[Keyword::Char, Keyword::Character]).is_some() {
            self.expect_word(Keyword::Varying)?;
        } else {
            let _ = self.accept_any(&[Keyword::Varchar, Keyword::Varcharacter]);
        }
        Ok(TypeKind::Text { size: LongSize::Medium, length: None })
    }

    fn required_length(&mut self) -> Parse<u32> {
        match self.bracketed_number()? {
            Some(length) => Ok(length),
            None => self.syntax(),
        }
    }

    fn string_list(&mut self) -> Parse<Vec<Vec<u8>>> {
        self.expect(TokenKind::Open)?;
        let strings = self.comma_list(Self::string)?;
        self.expect(TokenKind::Close)?;
        Ok(strings)
    }

    /// UNSIGNED, ZEROFILL, CHARACTER SET and other attributes directly after the type.
    fn type_attributes(&mut self, head: TypeHead) -> Parse<ColumnType> {
        let mut column_type = ColumnType {
            kind: head.kind,
            unsigned: head.serial,
            zerofill: false,
            character_set: head.national.then(|| "utf8mb3".to_owned()),
            collation: None,
            binary_collation: false,
        };
        let is_number = matches!(
            column_type.kind,
            TypeKind::Integer { .. } | TypeKind::Decimal { .. } | TypeKind::Float { .. } | TypeKind::Double { .. }
        );
        let is_text = matches!(
            column_type.kind,
            TypeKind::Char { .. }
                | TypeKind::VarChar { .. }
                | TypeKind::Text { .. }
                | TypeKind::Enum(_)
                | TypeKind::Set(_)
        );
        let mut is_unsigned = false;
        loop {
            match self.word() {
                Some(Keyword::Unsigned) if is_number => {
                    column_type.unsigned = true;
                    is_unsigned = true;
                }
                Some(Keyword::Signed) if is_number => {}
                Some(Keyword::Zerofill) if is_number => {
                    self.note(Deprecation::ZeroFill);
                    column_type.zerofill = true;
                    column_type.unsigned = true;
                }
                Some(Keyword::Binary) if is_text => {
                    self.note(Deprecation::BinaryAttribute);
                    column_type.binary_collation = true;
                }
                Some(Keyword::Byte) if is_text => column_type.character_set = Some("binary".to_owned()),
                Some(Keyword::Ascii) if is_text => {
                    self.note(Deprecation::AsciiAttribute);
                    column_type.character_set = Some("latin1".to_owned());
                }
                Some(Keyword::Unicode) if is_text => column_type.character_set = Some("ucs2".to_owned()),
                Some(Keyword::Charset | Keyword::Character | Keyword::Char) if is_text => {
                    match self.character_set_clause()? {
                        Some(name) => column_type.character_set = Some(name),
                        None => return self.syntax(),
                    }
                    continue;
                }
                _ => break,
            }
            self.advance();
        }
        self.note_numeric_type(&column_type.kind, is_unsigned);
        Ok(column_type)
    }

    /// Notes what is deprecated about a type of numbers. `is_unsigned` says whether UNSIGNED was written.
    fn note_numeric_type(&mut self, kind: &TypeKind, is_unsigned: bool) {
        match kind {
            TypeKind::Integer { display_width: Some(width), size }
                if *size != IntegerSize::Tiny || *width != 1 || is_unsigned =>
            {
                self.note(Deprecation::DisplayWidth);
            }
            TypeKind::Float { scale, .. } | TypeKind::Double { scale, .. } => {
                if scale.is_some() {
                    self.note(Deprecation::FloatDigits);
                }
                if is_unsigned {
                    self.note(Deprecation::UnsignedFraction);
                }
            }
            TypeKind::Decimal { .. } if is_unsigned => self.note(Deprecation::UnsignedFraction),
            _ => {}
        }
    }
}

fn long_size(keyword: Keyword) -> Option<LongSize> {
    match keyword {
        Keyword::Tinytext | Keyword::Tinyblob => Some(LongSize::Tiny),
        Keyword::Text | Keyword::Blob => Some(LongSize::Normal),
        Keyword::Mediumtext | Keyword::Mediumblob => Some(LongSize::Medium),
        Keyword::Longtext | Keyword::Longblob => Some(LongSize::Long),
        _ => None,
    }
}
