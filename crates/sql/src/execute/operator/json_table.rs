//! The rows of JSON_TABLE.

use std::ops::Range;
use std::sync::Arc;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::{self, Json};
use junctor_model::scratch::Scratch;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::{Value, ValueRef};

use super::batch::{Batch, Frame};
use super::{Operator, Run, Step};
use crate::execute::memory::Account;
use crate::plan::tree::{JsonOtherwise, JsonSource, JsonTablePlan, JsonValue};

#[derive(Debug)]
pub(super) struct JsonTable {
    plan: Arc<JsonTablePlan>,
    frame: Arc<Frame>,
    document: Vec<u8>,
    account: Account,
    is_started: bool,
    /// The current row of each level from the first one inwards.
    levels: Vec<Level>,
}

/// The rows of a level inside the current row of the level above.
#[derive(Debug)]
struct Level {
    number: usize,
    /// The places of the rows in the document.
    rows: Vec<Range<usize>>,
    row: usize,
    /// The values of the current row; `None` before they are computed.
    values: Option<Vec<(u16, Value)>>,
    /// The level inside that comes next, and whether one before it had rows.
    child: usize,
    has_children: bool,
}

impl JsonTable {
    pub fn new(plan: &Arc<JsonTablePlan>, frame: &Arc<Frame>) -> JsonTable {
        let (plan, frame) = (Arc::clone(plan), Arc::clone(frame));
        JsonTable {
            plan,
            frame,
            document: Vec::new(),
            account: Account::default(),
            is_started: false,
            levels: Vec::new(),
        }
    }

    /// Evaluates the document. Errors: 3141, 3146, 3157.
    fn start(&mut self, run: &mut Run<'_, '_, '_>) -> Result<()> {
        self.is_started = true;
        run.scratch.reset();
        match self.plan.document.evaluate(None, self.frame.row(), run.scratch)? {
            ValueRef::Null => return Ok(()),
            ValueRef::Json(document) => self.document = document.to_vec(),
            ValueRef::Bytes(text) => match json::parse(text, &mut self.document) {
                Ok(()) => {}
                Err(json::JsonError::Invalid(defect, at)) => {
                    let text = format!(
                        "Invalid JSON text in argument 1 to function json_table: \"{defect}\" at position {at}."
                    );
                    return Err(Error::new(ErrorCode::InvalidJsonArgument, text));
                }
                Err(_) => return Err(too_deep()),
            },
            _ => {
                let text = "Invalid data type for JSON data in argument 1 to function json_table; a JSON string or JSON \
                            type is required.";
                return Err(Error::new(ErrorCode::WrongJsonArgument, text));
            }
        }
        self.account.hold(run.memory, self.document.len())?;
        self.levels.push(self.level(0, 0..self.document.len()));
        Ok(())
    }

    /// The rows of a level inside a part of the document.
    fn level(&self, number: usize, inside: Range<usize>) -> Level {
        let base = self.document.as_ptr() as usize;
        let mut rows = Vec::new();
        self.plan.levels[number].path.find(&self.document[inside], &mut |found| {
            let start = found.as_ptr() as usize - base;
            rows.push(start..start + found.len());
        });
        Level { number, rows, row: 0, values: None, child: 0, has_children: false }
    }

    /// Goes to the next row. Returns false after the last one.
    fn advance(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        loop {
            let Some(last) = self.levels.last_mut() else { return Ok(false) };
            let Some(place) = last.rows.get(last.row).cloned() else {
                let has_rows = !last.rows.is_empty();
                self.levels.pop();
                if let Some(above) = self.levels.last_mut() {
                    above.has_children |= has_rows;
                }
                continue;
            };
            let plan = Arc::clone(&self.plan);
            let planned = &plan.levels[last.number];
            if last.values.is_none() {
                let mut values = Vec::with_capacity(planned.columns.len());
                for column in &planned.columns {
                    run.scratch.reset();
                    let value = value_of(column, (&self.document[place.clone()], last.row + 1), run.scratch)?;
                    values.push((column.slot, value));
                }
                last.values = Some(values);
            }
            if let Some(child) = planned.children.get(last.child) {
                last.child += 1;
                let level = self.level(*child, place);
                self.levels.push(level);
                continue;
            }
            if !last.has_children {
                return Ok(true);
            }
            last.next_row();
        }
    }
}

impl Level {
    fn next_row(&mut self) {
        self.row += 1;
        (self.values, self.child, self.has_children) = (None, 0, false);
    }
}

impl Operator for JsonTable {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if !self.is_started {
            self.start(run)?;
        }
        let mut batch = Batch::new(&self.frame);
        while !batch.is_full() && run.rows_left > 0 && self.advance(run)? {
            batch.push();
            let row = batch.len() - 1;
            for (slot, value) in self.levels.iter().flat_map(|level| &level.values).flatten() {
                batch.set(row, *slot, value.as_ref());
            }
            if let Some(last) = self.levels.last_mut() {
                last.next_row();
            }
            run.is_spent(1);
        }
        if batch.len() > 0 {
            return Ok(Step::Batch(batch));
        }
        if self.levels.is_empty() {
            self.document = Vec::new();
            self.account.clear();
            return Ok(Step::Done);
        }
        run.is_spent(0);
        Ok(Step::Wait)
    }
}

/// The value of a column for a row. Errors: 3156, 3665, 3666, 3669, and those of the column's type.
fn value_of(column: &JsonValue, (row, number): (&[u8], usize), scratch: &Scratch) -> Result<Value> {
    let (path, on_empty, on_error) = match &column.source {
        JsonSource::Ordinality => return Ok(Value::UInt(number as u64)),
        JsonSource::Exists(path) => {
            let mut exists = false;
            path.find(row, &mut |_| exists = true);
            return stored(column, ValueRef::Int(exists.into()), scratch);
        }
        JsonSource::Path { path, on_empty, on_error } => (path, on_empty, on_error),
    };
    let mut found: Vec<&[u8]> = Vec::new();
    path.find(row, &mut |value| found.push(value));
    let fit = match &*found {
        [] => match on_empty {
            JsonOtherwise::Null => return Ok(Value::Null),
            JsonOtherwise::Default(document) => return fitted(column, document, scratch),
            JsonOtherwise::Error => {
                let text = format!("Missing value for JSON_TABLE column '{}'", column.definition.name);
                return Err(Error::new(ErrorCode::MissingJsonTableValue, text));
            }
        },
        [only] => fitted(column, only, scratch),
        several => {
            let mut array = Vec::new();
            json::append_array(several.iter().copied(), &mut array);
            if json::is_valid(&array) { fitted(column, &array, scratch) } else { Err(too_deep()) }
        }
    };
    match (fit, on_error) {
        (Err(_), JsonOtherwise::Null) => Ok(Value::Null),
        (Err(_), JsonOtherwise::Default(document)) => fitted(column, document, scratch),
        (fit, _) => fit,
    }
}

/// A part of a document as a value of the column.
fn fitted(column: &JsonValue, found: &[u8], scratch: &Scratch) -> Result<Value> {
    let definition = &column.definition;
    if definition.column_type.is_json() {
        return Ok(Value::Json(found.into()));
    }
    let is_text = definition.column_type.collation().is_some();
    let scalar = match Json::of(found) {
        Json::Null => return Ok(Value::Null),
        Json::Array(_) | Json::Object(_) => {
            let text =
                format!("Can't store an array or an object in the scalar JSON_TABLE column '{}'", definition.name);
            return Err(Error::new(ErrorCode::WrongJsonTableValue, text));
        }
        Json::Boolean(_) | Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) if is_text => {
            ValueRef::Json(found)
        }
        other => other.as_scalar().unwrap_or(ValueRef::Null),
    };
    stored(column, scalar, scratch)
}

fn stored(column: &JsonValue, value: ValueRef<'_>, scratch: &Scratch) -> Result<Value> {
    let definition = &column.definition;
    let target = StoreTarget { column: definition, row_number: 1, mode: StoreMode::Strict };
    let converted = target.convert(value, scratch).map_err(|error| match error.code {
        ErrorCode::OutOfRange => {
            let text = format!("Value is out of range for JSON_TABLE's column '{}'", definition.name);
            Error::new(ErrorCode::JsonTableValueOutOfRange, text)
        }
        _ => error,
    })?;
    Ok(scratch.in_session_zone(converted).to_value())
}

fn too_deep() -> Box<Error> {
    Error::new(ErrorCode::JsonTooDeep, "The JSON document exceeds the maximum depth.")
}
