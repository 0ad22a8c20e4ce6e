//! JSON_TABLE.

use std::sync::Arc;

use junctor_expression::{Expression, JsonPath, ResultType};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::ColumnDefinition;
use junctor_model::types::DataType;

use super::{BlockPlan, PlanNode, TreePlanner};
use crate::bind::Clause;
use crate::bind::block::{BlockScope, BlockView, SlotSpace};
use crate::definition::column_of;
use crate::parse::json_table::{JsonAction, JsonColumn, JsonTable};

/// Maximum number of NESTED PATH in one another, as in MySQL.
const NESTED_MAX: usize = 16;

/// The rows that JSON_TABLE makes of a document.
#[derive(Debug)]
pub struct JsonTablePlan {
    /// The document.
    pub document: Expression,
    /// The levels of rows: those of the table, then those of NESTED PATH, parents before children.
    pub levels: Vec<JsonLevel>,
}

/// The rows of one path.
#[derive(Debug)]
pub struct JsonLevel {
    /// The path within a row of the level above.
    pub path: JsonPath,
    /// The columns.
    pub columns: Vec<JsonValue>,
    /// The levels inside, whose rows follow one another.
    pub children: Vec<usize>,
}

/// A column of JSON_TABLE.
#[derive(Debug)]
pub struct JsonValue {
    /// The column.
    pub definition: ColumnDefinition,
    /// Its slot.
    pub slot: u16,
    /// The value.
    pub source: JsonSource,
}

/// The source of a value.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum JsonSource {
    Ordinality,
    Exists(JsonPath),
    Path { path: JsonPath, on_empty: JsonOtherwise, on_error: JsonOtherwise },
}

/// The value in place of one that is missing or does not fit.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum JsonOtherwise {
    Null,
    /// A document.
    Default(Vec<u8>),
    Error,
}

/// The columns that are planned so far.
struct Columns<'s> {
    space: &'s SlotSpace,
    values: Vec<Expression>,
    described: Vec<ResultColumn>,
}

impl TreePlanner<'_> {
    /// Plans a call of JSON_TABLE. Errors: 1067, 3143, 3670, and those of types.
    pub(super) fn json_table(&self, table: &JsonTable, outer: &BlockView<'_>) -> Result<BlockPlan> {
        let space = SlotSpace::new(self.environment.parameters.len());
        let scope = BlockScope::new(&space, Vec::new(), Some(outer));
        let view = BlockView { block: &scope, names: Vec::new(), relations: Vec::new() };
        let mut binder = self.binder(&view);
        let document = binder.bind_in(Clause::From, &table.document)?;
        self.note(&binder);
        drop(binder);
        if document.is_stateful() {
            return Err(Error::not_supported("a user variable that the statement assigns, in JSON_TABLE"));
        }
        let mut columns = Columns { space: &space, values: Vec::new(), described: Vec::new() };
        let mut levels = Vec::new();
        self.json_level((&table.path, &table.columns), 0, &mut columns, &mut levels)?;
        let Columns { values, described, .. } = columns;
        let plan = JsonTablePlan { document, levels };
        Ok(self.rows(PlanNode::JsonTable(Arc::new(plan)), &space, values, described))
    }

    /// Plans a level and those inside it. Returns its position.
    fn json_level(
        &self,
        (path, written): (&[u8], &[JsonColumn]),
        depth: usize,
        columns: &mut Columns<'_>,
        levels: &mut Vec<JsonLevel>,
    ) -> Result<usize> {
        if depth > NESTED_MAX {
            let text = format!("More than supported {NESTED_MAX} NESTED PATHs were found in JSON_TABLE");
            return Err(Error::new(ErrorCode::JsonTableNesting, text));
        }
        let place = levels.len();
        levels.push(JsonLevel { path: JsonPath::parse(path)?, columns: Vec::new(), children: Vec::new() });
        for column in written {
            let (definition, source) = match column {
                JsonColumn::Nested { path, columns: inner } => {
                    let child = self.json_level((path, inner), depth + 1, columns, levels)?;
                    levels[place].children.push(child);
                    continue;
                }
                JsonColumn::Ordinality(name) => {
                    (ColumnDefinition::new(name, DataType::integer(4, true)), JsonSource::Ordinality)
                }
                JsonColumn::Exists { column, path } => {
                    (column_of(column, self.environment.collation)?, JsonSource::Exists(JsonPath::parse(path)?))
                }
                JsonColumn::Path { column, path, on_empty, on_error } => {
                    let otherwise = |action| otherwise(action, &column.name);
                    let (on_empty, on_error) = (otherwise(on_empty)?, otherwise(on_error)?);
                    let source = JsonSource::Path { path: JsonPath::parse(path)?, on_empty, on_error };
                    (column_of(column, self.environment.collation)?, source)
                }
            };
            let definition = ColumnDefinition { nullable: true, ..definition };
            let value = columns.space.computed(ResultType::of_column(&definition), "")?;
            let slot = value.as_column().map_or(0, |slot| slot.0);
            columns.described.push(value.result.result_column(&definition.name));
            columns.values.push(value);
            levels[place].columns.push(JsonValue { definition, slot, source });
        }
        Ok(place)
    }
}

/// Error 1067 for a default that is no document.
fn otherwise(action: &JsonAction, column: &str) -> Result<JsonOtherwise> {
    Ok(match action {
        JsonAction::Null => JsonOtherwise::Null,
        JsonAction::Error => JsonOtherwise::Error,
        JsonAction::Default(text) => {
            let mut document = Vec::new();
            json::parse(text, &mut document)
                .map_err(|_| Error::new(ErrorCode::InvalidDefault, format!("Invalid default value for '{column}'")))?;
            JsonOtherwise::Default(document)
        }
    })
}
