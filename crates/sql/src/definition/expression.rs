//! Expressions of definitions: defaults, generated columns and CHECK constraints. A definition keeps the
//! normal form of the text. The rules for its parts need only the text; the rules for its columns need the
//! whole table.

use std::sync::Arc;

use junctor_expression::function::{self, gives_truth};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKey, ReferentialAction};
use junctor_model::schema::{CheckConstraint, ColumnDefinition, ExpressionKind, TableDefinition, TableLayout};

use super::structure::DefinitionContext;
use crate::bind::StoredExpressions;
use crate::bind::message::array_outside_index;
use crate::bind::window::misplaced;
use crate::parse::expression::{CastTarget, ColumnReference, Expression, FunctionCall};
use crate::parse::{expression_text, parse_expression};

/// The purpose of an expression, with the name of its column or constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose<'n> {
    Default(&'n str),
    Generated(&'n str),
    Check(&'n str),
}

/// Functions that have an effect or depend on the connection. No definition may call them.
const NEVER_ALLOWED: [&str; 16] = [
    "BENCHMARK",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOAD_FILE",
    "MASTER_POS_WAIT",
    "MYSQL_QUERY_ATTRIBUTE_STRING",
    "NAME_CONST",
    "PS_CURRENT_THREAD_ID",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SLEEP",
    "VALUES",
];

/// The normal form of an expression.
///
/// # Errors
/// 3763, 3770 and 3814 for a function that is not allowed, 3102, 3769 and 3815 for a subquery, 3764 and 3771
/// for a row of values, 3765, 3772 and 3816 for a variable.
pub(super) fn normal_form(purpose: Purpose<'_>, written: &Expression) -> Result<Box<str>> {
    if matches!(written, Expression::Row(_)) {
        return Err(purpose.is_row());
    }
    purpose.check_parts(written)?;
    match expression_text(written) {
        Some(text) => Ok(text.into()),
        None => Err(Error::not_supported("this expression in a table definition")),
    }
}

impl Purpose<'_> {
    fn check_parts(self, expression: &Expression) -> Result<()> {
        match expression {
            Expression::UserVariable(_) | Expression::AssignUserVariable { .. } | Expression::SystemVariable(_) => {
                return Err(self.has_variable());
            }
            Expression::Default(_) => return Err(self.disallowed("default")),
            Expression::Subquery(_) | Expression::Exists(_) | Expression::Quantified { .. } => {
                return Err(self.has_subquery());
            }
            Expression::InsertedValue(_) => return Err(self.disallowed("values")),
            Expression::Cast { target: CastTarget::Array(_), .. } => return Err(array_outside_index()),
            Expression::Function(call) if call.over.is_some() => {
                return Err(misplaced(&call.name.to_ascii_lowercase()));
            }
            Expression::Function(call) if !self.allows(call) => {
                return Err(self.disallowed(&shown_name(call)));
            }
            _ => {}
        }
        let mut result = Ok(());
        expression.for_each_operand(&mut |operand| {
            if result.is_ok() {
                result = self.check_parts(operand);
            }
        });
        result
    }

    /// Whether a function may be called. Unknown functions are refused when the expression is bound.
    fn allows(self, call: &FunctionCall) -> bool {
        let name = call.name.to_ascii_uppercase();
        if call.database.is_some() || NEVER_ALLOWED.contains(&name.as_str()) {
            return false;
        }
        match self {
            Purpose::Default(_) => true,
            Purpose::Generated(_) | Purpose::Check(_) => {
                function::find(&name).is_none_or(|function| function.is_immutable())
            }
        }
    }

    #[cold]
    fn disallowed(self, function: &str) -> Box<Error> {
        let (code, text) = match self {
            Purpose::Default(name) => (
                ErrorCode::DefaultFunction,
                format!("Default value expression of column '{name}' contains a disallowed function: {function}."),
            ),
            Purpose::Generated(name) => (
                ErrorCode::GeneratedColumnFunction,
                format!("Expression of generated column '{name}' contains a disallowed function: {function}."),
            ),
            Purpose::Check(name) => (
                ErrorCode::CheckFunction,
                format!("An expression of a check constraint '{name}' contains disallowed function: {function}."),
            ),
        };
        Error::new(code, text)
    }

    #[cold]
    fn has_subquery(self) -> Box<Error> {
        let (code, text) = match self {
            Purpose::Default(name) => (
                ErrorCode::DefaultSubquery,
                format!("Default value expression of column '{name}' contains a disallowed function."),
            ),
            Purpose::Generated(name) => (
                ErrorCode::GeneratedColumnSubquery,
                format!("Expression of generated column '{name}' contains a disallowed function."),
            ),
            Purpose::Check(name) => (
                ErrorCode::CheckSubquery,
                format!("An expression of a check constraint '{name}' contains disallowed function."),
            ),
        };
        Error::new(code, text)
    }

    #[cold]
    fn has_variable(self) -> Box<Error> {
        let (code, text) = match self {
            Purpose::Default(name) => (
                ErrorCode::DefaultVariables,
                format!("Default value expression of column '{name}' cannot refer user or system variables."),
            ),
            Purpose::Generated(name) => (
                ErrorCode::GeneratedColumnVariables,
                format!("Expression of generated column '{name}' cannot refer user or system variables."),
            ),
            Purpose::Check(name) => (
                ErrorCode::CheckVariables,
                format!("An expression of a check constraint '{name}' cannot refer to a user or system variable."),
            ),
        };
        Error::new(code, text)
    }

    #[cold]
    fn is_row(self) -> Box<Error> {
        let (code, text) = match self {
            Purpose::Default(name) => (
                ErrorCode::DefaultRow,
                format!("Default value expression of column '{name}' cannot refer to a row value."),
            ),
            Purpose::Generated(name) => (
                ErrorCode::GeneratedColumnRow,
                format!("Expression of generated column '{name}' cannot refer to a row value."),
            ),
            Purpose::Check(name) => return not_boolean(name),
        };
        Error::new(code, text)
    }

    #[cold]
    fn unknown_column(self, column: &str) -> Box<Error> {
        let clause = match self {
            Purpose::Default(_) => "default value expression",
            Purpose::Generated(_) => "generated column function",
            Purpose::Check(name) => {
                let text = format!("Check constraint '{name}' refers to non-existing column '{column}'.");
                return Error::new(ErrorCode::CheckOfUnknownColumn, text);
            }
        };
        Error::new(ErrorCode::UnknownColumn, format!("Unknown column '{column}' in '{clause}'"))
    }

    #[cold]
    fn of_auto_increment(self) -> Box<Error> {
        let (code, text) = match self {
            Purpose::Default(name) => (
                ErrorCode::DefaultOfAutoIncrement,
                format!("Default value expression of column '{name}' cannot refer to an auto-increment column."),
            ),
            Purpose::Generated(name) => (
                ErrorCode::GeneratedOfAutoIncrement,
                format!("Generated column '{name}' cannot refer to auto-increment column."),
            ),
            Purpose::Check(name) => (
                ErrorCode::CheckOfAutoIncrement,
                format!("Check constraint '{name}' cannot refer to an auto-increment column."),
            ),
        };
        Error::new(code, text)
    }
}

/// The name of a function in MySQL's messages.
fn shown_name(call: &FunctionCall) -> String {
    match (call.name.to_ascii_lowercase().as_str(), &call.database) {
        (name, Some(database)) => format!("`{database}`.`{name}`"),
        ("current_timestamp" | "localtime" | "localtimestamp", None) => "now".to_owned(),
        ("current_date", None) => "curdate".to_owned(),
        ("current_time", None) => "curtime".to_owned(),
        ("schema", None) => "database".to_owned(),
        ("session_user" | "system_user", None) => "user".to_owned(),
        (name, None) => name.to_owned(),
    }
}

/// Checks the expressions of a table when all of its columns are known.
///
/// # Errors
/// 1054 and 3820 for an unknown column, 3109, 3768 and 3818 for an AUTO_INCREMENT column, 3107 and 3767 for a
/// later column, 3812 for a CHECK that is no truth value, 3823 and 1235 for a column that a foreign key may
/// change, and the errors of binding.
pub(super) fn check_table(table: &TableDefinition, context: &DefinitionContext<'_>) -> Result<()> {
    if table.columns.iter().all(|column| column.expression.is_none()) && table.checks.is_empty() {
        return Ok(());
    }
    let layout = Arc::new(TableLayout::new(table.clone()));
    let mut expressions = StoredExpressions::new(context.environment, &layout);
    for (position, column) in table.columns.iter().enumerate() {
        let Some(expression) = &column.expression else { continue };
        let purpose = match expression.kind {
            ExpressionKind::Default => Purpose::Default(&column.name),
            ExpressionKind::Virtual | ExpressionKind::Stored => Purpose::Generated(&column.name),
        };
        let parsed = parsed(&expression.text)?;
        for used in used_columns(table, &parsed, purpose)? {
            check_order(table, position, used)?;
        }
        expressions.bind_written(&parsed)?;
    }
    for check in &table.checks {
        let purpose = Purpose::Check(&check.name);
        let parsed = parsed(&check.expression)?;
        used_columns(table, &parsed, purpose)?;
        let bound = expressions.bind_written(&parsed)?;
        let is_condition = match &parsed {
            Expression::Function(call) => gives_truth(&call.name),
            Expression::Literal(literal) => matches!(literal, crate::parse::Literal::Boolean(_)),
            _ => bound.is_condition(),
        };
        if !is_condition {
            return Err(not_boolean(&check.name));
        }
    }
    table.foreign_keys.iter().try_for_each(|key| check_actions(table, key))
}

/// Error 3813 for the CHECK of a column that refers to another column.
pub(super) fn check_own_column(name: &str, column: &str, expression: &Expression) -> Result<()> {
    if columns_of(expression).iter().all(|used| used.eq_ignore_ascii_case(column)) {
        return Ok(());
    }
    let text = format!("Column check constraint '{name}' references other column.");
    Err(Error::new(ErrorCode::ColumnCheckOfOtherColumn, text))
}

/// The names of the columns in the text of an expression.
pub(super) fn columns_of_text(text: &str) -> Result<Vec<String>> {
    Ok(columns_of(&parsed(text)?))
}

fn parsed(text: &str) -> Result<Expression> {
    parse_expression(text).map_err(|error| Error::new(ErrorCode::SyntaxError, error.to_string()))
}

fn columns_of(expression: &Expression) -> Vec<String> {
    let mut names = Vec::new();
    add_columns(expression, &mut names);
    names
}

fn add_columns(expression: &Expression, names: &mut Vec<String>) {
    if let Expression::Column(reference) = expression {
        let ColumnReference { name, .. } = &**reference;
        names.push(name.clone());
    }
    expression.for_each_operand(&mut |operand| add_columns(operand, names));
}

/// The positions of the columns that an expression reads.
fn used_columns(table: &TableDefinition, parsed: &Expression, purpose: Purpose<'_>) -> Result<Vec<usize>> {
    let mut used = Vec::new();
    for name in columns_of(parsed) {
        let position = usize::from(table.column(&name).ok_or_else(|| purpose.unknown_column(&name))?.0);
        if table.columns[position].auto_increment {
            return Err(purpose.of_auto_increment());
        }
        used.push(position);
    }
    Ok(used)
}

/// Checks that a column can be computed after a column that its expression reads. Errors: 3107, 3767.
fn check_order(table: &TableDefinition, position: usize, used: usize) -> Result<()> {
    let (column, other) = (&table.columns[position], &table.columns[used]);
    if used < position {
        return Ok(());
    }
    if column.is_generated() && other.is_generated() {
        let text = "Generated column can refer only to generated columns defined prior to it.";
        return Err(Error::new(ErrorCode::GeneratedColumnNotPrior, text));
    }
    // The default of a column is known before any generated column.
    if !column.is_generated() && other.expression.is_some() {
        let text = format!(
            "Default value expression of column '{}' cannot refer to a column defined after it if that column is a \
             generated column or has an expression as default value.",
            column.name
        );
        return Err(Error::new(ErrorCode::DefaultNotPrior, text));
    }
    Ok(())
}

/// Whether a foreign key may change its columns.
fn has_action(key: &ForeignKey) -> bool {
    let changes = |action| matches!(action, ReferentialAction::Cascade | ReferentialAction::SetNull);
    changes(key.on_update) || key.on_delete == ReferentialAction::SetNull
}

/// Refuses expressions over columns that a foreign key may change, because its changes compute nothing.
/// Errors: 3104, 3823, 1235.
fn check_actions(table: &TableDefinition, key: &ForeignKey) -> Result<()> {
    if !has_action(key) {
        return Ok(());
    }
    let is_changed = |name: &str| {
        key.columns.iter().any(|column| table.columns[usize::from(column.0)].name.eq_ignore_ascii_case(name))
    };
    for column in table.columns.iter().filter(|column| column.is_generated()) {
        if is_changed(&column.name) {
            let clause = match (key.on_update, key.on_delete) {
                (ReferentialAction::Cascade, _) => "ON UPDATE CASCADE",
                (ReferentialAction::SetNull, _) => "ON UPDATE SET NULL",
                _ => "ON DELETE SET NULL",
            };
            let text = format!("Cannot define foreign key with {clause} clause on a generated column.");
            return Err(Error::new(ErrorCode::ActionOnGeneratedColumn, text));
        }
        let text = column.expression.as_ref().map_or("", |expression| &expression.text);
        if columns_of_text(text)?.iter().any(|used| is_changed(used)) {
            return Err(Error::not_supported("a referential action on a column that a generated column reads"));
        }
    }
    for check in &table.checks {
        if let Some(used) = columns_of_text(&check.expression)?.iter().find(|used| is_changed(used)) {
            let text = format!(
                "Column '{used}' cannot be used in a check constraint '{}': needed in a foreign key constraint '{}' \
                 referential action.",
                check.name, key.name
            );
            return Err(Error::new(ErrorCode::CheckOfReferentialAction, text));
        }
    }
    Ok(())
}

#[cold]
fn not_boolean(name: &str) -> Box<Error> {
    let text = format!("An expression of non-boolean type specified to a check constraint '{name}'.");
    Error::new(ErrorCode::NonBooleanCheck, text)
}

/// Refuses to drop or rename a column that an expression reads. `is_gone` tells the names of such columns.
///
/// # Errors
/// 3108, 3766, 3959.
pub(super) fn check_dependants<'c>(
    table: &str,
    columns: impl Iterator<Item = &'c ColumnDefinition>,
    checks: &[CheckConstraint],
    is_gone: &dyn Fn(&str) -> bool,
) -> Result<()> {
    for column in columns {
        let Some(expression) = &column.expression else { continue };
        let used = columns_of_text(&expression.text)?;
        let Some(gone) = used.iter().find(|used| is_gone(used)) else { continue };
        return Err(match expression.kind {
            ExpressionKind::Default => {
                let text = format!(
                    "Column '{gone}' of table '{table}' has a default value expression dependency and cannot be dropped \
                     or renamed."
                );
                Error::new(ErrorCode::ColumnNeededByDefault, text)
            }
            _ if column.hidden => {
                let text = format!(
                    "Cannot drop column '{gone}' because it is used by a functional index. In order to drop the column, \
                     you must remove the functional index."
                );
                Error::new(ErrorCode::ColumnNeededByFunctionalIndex, text)
            }
            ExpressionKind::Virtual | ExpressionKind::Stored => {
                let text = format!("Column '{gone}' has a generated column dependency.");
                Error::new(ErrorCode::ColumnNeededByGenerated, text)
            }
        });
    }
    for check in checks {
        let used = columns_of_text(&check.expression)?;
        if let Some(gone) = used.iter().find(|used| is_gone(used)) {
            let text = format!(
                "Check constraint '{}' uses column '{gone}', hence column cannot be dropped or renamed.",
                check.name
            );
            return Err(Error::new(ErrorCode::ColumnNeededByCheck, text));
        }
    }
    Ok(())
}
