//! INSERT, REPLACE, UPDATE and DELETE.

use super::parser::{Parse, Parser, Stop};
use crate::parse::deprecation::Deprecation;
use crate::parse::expression::Expression;
use crate::parse::hint::Hints;
use crate::parse::keyword::Keyword;
use crate::parse::lexer::TokenKind;
use crate::parse::query::FromItem;
use crate::parse::statement::{
    Assignment, CommonTable, Delete, Insert, InsertSource, Modify, ObjectName, RowAlias, SelectItem, Statement, Update,
};

impl Parser<'_> {
    /// INSERT or REPLACE.
    pub(super) fn insert(&mut self) -> Parse<Insert> {
        let replace = self.at_word(Keyword::Replace);
        self.advance();
        let hints = self.hints();
        let priority = self.accept_any(&[Keyword::LowPriority, Keyword::Delayed, Keyword::HighPriority]);
        if priority == Some(Keyword::Delayed) {
            self.note(if replace { Deprecation::ReplaceDelayed } else { Deprecation::InsertDelayed });
        }
        let ignore = !replace && self.accept_word(Keyword::Ignore);
        self.may_return = true;
        self.may_select_into = false;
        self.accept_word(Keyword::Into);
        let table = self.object_name()?;
        if self.at_word(Keyword::Partition) {
            return self.unsupported("PARTITION selection");
        }
        let mut columns = self.insert_columns()?;
        let source = match self.word() {
            Some(Keyword::Values | Keyword::Value) => {
                self.advance();
                self.insert_rows()?
            }
            Some(Keyword::Set) if columns.is_none() => {
                self.advance();
                let (names, row) = self.insert_set()?;
                columns = Some(names);
                InsertSource::Rows(vec![row])
            }
            Some(Keyword::Select | Keyword::With | Keyword::Table) => InsertSource::Select(Box::new(self.query()?)),
            _ if self.current.kind == TokenKind::Open => InsertSource::Select(Box::new(self.query()?)),
            _ => return self.syntax(),
        };
        let row_alias = self.row_alias()?;
        let mut on_duplicate = Vec::new();
        if !replace && self.accept_word(Keyword::On) {
            self.expect_word(Keyword::Duplicate)?;
            self.expect_word(Keyword::Key)?;
            self.expect_word(Keyword::Update)?;
            self.is_upsert = true;
            on_duplicate = self.comma_list(Self::assignment)?;
            self.is_upsert = false;
            let has_query = on_duplicate.iter().any(|assignment: &Assignment| assignment.value.needs_tree());
            if has_query && matches!(source, InsertSource::UniformRows { .. }) {
                return Err(Stop::LiteralsMatter);
            }
        }
        let returning = self.returning()?;
        Ok(Insert { replace, ignore, table, columns, source, row_alias, on_duplicate, returning, hints })
    }

    /// The column list in parentheses. `None` if the parenthesis begins a query.
    fn insert_columns(&mut self) -> Parse<Option<Vec<String>>> {
        let opens_query = matches!(
            self.next.kind,
            TokenKind::Open | TokenKind::Keyword(Keyword::Select | Keyword::With | Keyword::Table | Keyword::Values)
        );
        if self.current.kind != TokenKind::Open || opens_query {
            return Ok(None);
        }
        self.advance();
        if self.accept(TokenKind::Close) {
            return Ok(Some(Vec::new()));
        }
        let columns = self.comma_list(|parser| Ok(parser.column_reference()?.name))?;
        self.expect(TokenKind::Close)?;
        Ok(Some(columns))
    }

    fn insert_rows(&mut self) -> Parse<InsertSource> {
        let start = self.current.start;
        let row = self.insert_row()?;
        if self.is_lifting() && row.iter().any(|value| value.needs_tree() || value.is_stateful()) {
            // Rows with subqueries and stateful values are planned one by one.
            return Err(Stop::LiteralsMatter);
        }
        if let Some((first, width)) = self.skip_uniform_rows(start) {
            return Ok(InsertSource::UniformRows { row, first, width });
        }
        let mut rows = vec![row];
        while self.accept(TokenKind::Comma) {
            rows.push(self.insert_row()?);
        }
        Ok(InsertSource::Rows(rows))
    }

    fn insert_row(&mut self) -> Parse<Vec<Expression>> {
        self.accept_word(Keyword::Row);
        self.expect(TokenKind::Open)?;
        if self.accept(TokenKind::Close) {
            return Ok(Vec::new());
        }
        let row = self.comma_list(Self::value_or_default)?;
        self.expect(TokenKind::Close)?;
        Ok(row)
    }

    fn insert_set(&mut self) -> Parse<(Vec<String>, Vec<Expression>)> {
        let assignments = self.comma_list(Self::assignment)?;
        Ok(assignments.into_iter().map(|assignment| (assignment.column.name, assignment.value)).unzip())
    }

    fn row_alias(&mut self) -> Parse<Option<RowAlias>> {
        if !self.accept_word(Keyword::As) {
            return Ok(None);
        }
        let name = self.name()?;
        let mut columns = Vec::new();
        if self.accept(TokenKind::Open) {
            columns = self.comma_list(Self::name)?;
            self.expect(TokenKind::Close)?;
        }
        Ok(Some(RowAlias { name, columns }))
    }

    /// `column = value`, also spelled with `:=` as MySQL allows.
    pub(super) fn assignment(&mut self) -> Parse<Assignment> {
        let column = self.column_reference()?;
        if !self.accept(TokenKind::Assign) {
            self.expect(TokenKind::Equal)?;
        }
        Ok(Assignment { column, value: self.value_or_default()?, if_changed: false })
    }

    fn value_or_default(&mut self) -> Parse<Expression> {
        if self.at_word(Keyword::Default) && self.next.kind != TokenKind::Open {
            self.advance();
            return Ok(Expression::Default(None));
        }
        self.expression()
    }

    /// UPDATE of one table or of several. `with` are the queries of WITH before it.
    pub(super) fn update(&mut self, with: Vec<CommonTable>) -> Parse<Statement> {
        self.expect_word(Keyword::Update)?;
        let hints = self.hints();
        self.accept_word(Keyword::LowPriority);
        let ignore = self.accept_word(Keyword::Ignore);
        let from = self.from()?;
        self.expect_word(Keyword::Set)?;
        let assignments = self.comma_list(Self::assignment)?;
        let filter = self.condition_after(Keyword::Where)?;
        let order_by = self.order_by()?;
        let limit = self.limit_count()?;
        Ok(match from {
            FromItem::Table(table) if with.is_empty() => {
                Statement::Update(Box::new(Update { ignore, table, assignments, filter, order_by, limit, hints }))
            }
            from => Statement::Modify(Box::new(Modify {
                is_delete: false,
                ignore,
                with,
                from,
                targets: Vec::new(),
                assignments,
                filter,
                order_by,
                limit,
                hints,
                keeps_order: false,
                join_orders: Vec::new(),
            })),
        })
    }

    /// DELETE from one table or from several. `with` are the queries of WITH before it.
    pub(super) fn delete(&mut self, with: Vec<CommonTable>) -> Parse<Statement> {
        self.expect_word(Keyword::Delete)?;
        let hints = self.hints();
        self.accept_word(Keyword::LowPriority);
        self.accept_word(Keyword::Quick);
        let ignore = self.accept_word(Keyword::Ignore);
        if !self.accept_word(Keyword::From) {
            let targets = self.comma_list(|parser| Ok(parser.delete_target()?.0))?;
            self.expect_word(Keyword::From)?;
            return self.delete_joined((with, ignore, hints), targets);
        }
        let (name, has_star) = self.delete_target()?;
        if has_star || self.current.kind == TokenKind::Comma || self.at_word(Keyword::Using) {
            let mut targets = vec![name];
            while self.accept(TokenKind::Comma) {
                targets.push(self.delete_target()?.0);
            }
            self.expect_word(Keyword::Using)?;
            return self.delete_joined((with, ignore, hints), targets);
        }
        self.may_return = true;
        let table = self.table_reference_of(name)?;
        let filter = self.condition_after(Keyword::Where)?;
        let order_by = self.order_by()?;
        let limit = self.limit_count()?;
        let returning = self.returning()?;
        if with.is_empty() {
            let delete = Delete { ignore, table, filter, order_by, limit, returning, hints };
            return Ok(Statement::Delete(Box::new(delete)));
        }
        if !returning.is_empty() {
            return self.unsupported("RETURNING of a DELETE with WITH");
        }
        Ok(Statement::Modify(Box::new(Modify {
            is_delete: true,
            ignore,
            with,
            from: FromItem::Table(table),
            targets: Vec::new(),
            assignments: Vec::new(),
            filter,
            order_by,
            limit,
            hints,
            keeps_order: false,
            join_orders: Vec::new(),
        })))
    }

    /// The tables and the condition of a DELETE that names its targets apart from them.
    fn delete_joined(
        &mut self,
        (with, ignore, hints): (Vec<CommonTable>, bool, Option<Box<Hints>>),
        targets: Vec<ObjectName>,
    ) -> Parse<Statement> {
        let from = self.from()?;
        let filter = self.condition_after(Keyword::Where)?;
        Ok(Statement::Modify(Box::new(Modify {
            is_delete: true,
            ignore,
            with,
            from,
            targets,
            assignments: Vec::new(),
            filter,
            order_by: Vec::new(),
            limit: None,
            hints,
            keeps_order: false,
            join_orders: Vec::new(),
        })))
    }

    /// `[database.]table[.*]`. Returns whether `.*` is written.
    fn delete_target(&mut self) -> Parse<(ObjectName, bool)> {
        let mut name = ObjectName { database: None, name: self.name()? };
        while self.accept(TokenKind::Dot) {
            if self.accept(TokenKind::Star) {
                return Ok((name, true));
            }
            if name.database.is_some() {
                return self.syntax();
            }
            let inner = self.any_word()?;
            name = ObjectName { database: Some(name.name), name: inner };
        }
        Ok((name, false))
    }

    /// RETURNING, an extension that MariaDB has and MySQL does not.
    fn returning(&mut self) -> Parse<Vec<SelectItem>> {
        match self.accept_word(Keyword::Returning) {
            // The texts of the items name the result columns, and a shape does not preserve the spaces in
            // them.
            true if self.is_lifting() => Err(Stop::LiteralsMatter),
            true => self.select_list(),
            false => Ok(Vec::new()),
        }
    }
}
