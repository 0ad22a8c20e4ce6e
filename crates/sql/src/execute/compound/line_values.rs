//! LOAD DATA: the values of SET that a query computes for each line.
//!
//! The queries of a line run one after the other, and their values become parameters of the line. A few lines
//! are then inserted together.

use junctor_expression::{Parameters, ParametersBuilder};
use junctor_model::error::Result;
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;

use super::drive::unexpected_step;
use super::insert::Insert;
use super::source::{SelectedRows, Source, push_values};
use crate::execute::context::StatementContext;
use crate::execute::insert::values_before;
use crate::plan::{InsertPlan, LineQuery, LoadPlan, LoadTarget};

/// Maximum number of lines whose values are computed before they are inserted, so that one turn is short and
/// user variables are not far ahead of the rows.
pub(super) const LINES_MAX: usize = 64;

/// The lines whose values are being computed.
#[derive(Debug, Default)]
pub(super) struct LineValues {
    /// The parameters of the lines, without values of queries.
    lines: SelectedRows,
    /// The current line.
    line: usize,
    /// The parameters of the current line with the values so far; empty before its first query.
    current: SelectedRows,
    /// The query whose values are next.
    query: usize,
    is_running: bool,
    /// The values of queries that are the same for all lines, each with the number of its query.
    constants: Vec<(usize, Vec<u8>)>,
    /// Number of warnings of the statement before the queries of the current line.
    warnings_before: u16,
}

/// The outcome of computing lines.
pub(super) enum LineStep {
    /// A query waits for a reply or for its next step.
    Wait,
    /// The lines of the batch are complete.
    Batch,
}

impl LineValues {
    /// Begins with these lines.
    pub fn begin(&mut self, lines: SelectedRows) {
        let constants = std::mem::take(&mut self.constants);
        *self = LineValues { lines, constants, ..LineValues::default() };
    }

    /// Whether lines are left.
    pub fn has_lines(&self) -> bool {
        self.line < self.lines.len()
    }

    /// Whether a query is running.
    pub fn is_running(&self) -> bool {
        self.is_running
    }
}

/// Computes the values of lines, and adds the lines to the batch. A line whose queries warn is the last one
/// of its batch, so that warnings are in the order of the lines. Errors: those of the first line that fails,
/// if the batch is empty; otherwise the error is kept until the batch is inserted.
pub(super) fn compute_lines(context: &mut StatementContext<'_, '_>, insert: &mut Insert<'_>) -> Result<LineStep> {
    let (Some(source), Some(plan)) = (insert.work.source.as_deref_mut(), insert.plan.load.as_ref()) else {
        unexpected_step("values of a line without a file")
    };
    let Some(mut load) = source.load.take() else { unexpected_step("values of a line without a file") };
    let mut computer = Computer { insert: insert.plan, plan, values: &mut load.queries, source };
    let outcome = computer.run(context);
    let is_empty = source.batch.len() == 0;
    let step = match outcome {
        Err(error) if is_empty => Err(error),
        Err(error) => {
            load.queries = LineValues::default();
            load.failed = Some(error);
            Ok(LineStep::Batch)
        }
        Ok(step) => Ok(step),
    };
    source.load = Some(load);
    step
}

struct Computer<'a> {
    insert: &'a InsertPlan,
    plan: &'a LoadPlan,
    values: &'a mut LineValues,
    source: &'a mut Source,
}

impl Computer<'_> {
    fn run(&mut self, context: &mut StatementContext<'_, '_>) -> Result<LineStep> {
        loop {
            if self.values.is_running {
                let Some(row) = self.source.line_values(context)? else { return Ok(LineStep::Wait) };
                self.values.is_running = false;
                self.add_values(context, &row)?;
                if self.plan.queries.queries[self.values.query].is_constant {
                    self.values.constants.push((self.values.query, row));
                }
                self.values.query += 1;
            }
            if let Some(query) = self.plan.queries.queries.get(self.values.query) {
                if self.values.query == 0 {
                    self.begin_line(context)?;
                }
                match self.values.constants.iter().position(|(known, _)| *known == self.values.query) {
                    None => self.start(context, query)?,
                    Some(place) => {
                        let (number, row) = self.values.constants.swap_remove(place);
                        self.add_values(context, &row)?;
                        self.values.constants.push((number, row));
                        self.values.query += 1;
                    }
                }
                continue;
            }
            self.keep(context)?;
            if !self.values.has_lines() || context.session.warning_count != self.values.warnings_before {
                return Ok(LineStep::Batch);
            }
        }
    }

    /// Makes the parameters of the next line the current ones, and assigns its user variables.
    fn begin_line(&mut self, context: &mut StatementContext<'_, '_>) -> Result<()> {
        self.values.warnings_before = context.session.warning_count;
        let line = Parameters::from_bytes(self.values.lines.row(self.values.line));
        let collation = self.plan.encoding.collation();
        for (position, target) in self.plan.fields.iter().enumerate() {
            if let LoadTarget::Variable(name) = target {
                let value = line.get(position as u16).to_value();
                let value = UserValue::new(value, collation);
                context.session.variables.put_user_variable(name, value)?;
            }
        }
        let builder = &mut context.engine.work.builder;
        push_line(self.values.lines.row(self.values.line), builder);
        self.values.current.clear();
        self.values.current.append(builder)
    }

    /// Starts a query of the current line.
    fn start(&mut self, context: &mut StatementContext<'_, '_>, query: &LineQuery) -> Result<()> {
        let mut builder = std::mem::take(&mut context.engine.work.builder);
        push_line(self.values.current.row(0), &mut builder);
        let mut made = Ok(());
        if !query.columns.is_empty() {
            let row = (&self.values.current, self.source.rows_before + self.source.batch.len() as u64);
            made = values_before(context, self.insert, row, (query.before, &query.columns), &mut builder);
        }
        let parameters = &mut context.engine.work.parameters;
        parameters.clear();
        let made = made.and_then(|()| builder.append_to(parameters));
        context.engine.work.builder = builder;
        made?;
        let variables = &context.session.variables;
        let value = |name: &str| match variables.user_value(name) {
            Some(value) => value.clone(),
            None => UserValue::new(Value::Null, variables.collation_connection),
        };
        let assigned = self.plan.queries.assigned.iter().map(|name| (name.clone(), value(name))).collect();
        self.source.start_line(context, &query.query, assigned);
        self.values.is_running = true;
        Ok(())
    }

    /// Adds the values of a query to the parameters of the current line.
    fn add_values(&mut self, context: &mut StatementContext<'_, '_>, row: &[u8]) -> Result<()> {
        let builder = &mut context.engine.work.builder;
        push_line(self.values.current.row(0), builder);
        push_values(row, builder)?;
        self.values.current.clear();
        self.values.current.append(builder)
    }

    /// Adds the current line to the batch.
    fn keep(&mut self, context: &mut StatementContext<'_, '_>) -> Result<()> {
        let builder = &mut context.engine.work.builder;
        push_line(self.values.current.row(0), builder);
        self.source.batch.append(builder)?;
        self.values.line += 1;
        self.values.query = 0;
        Ok(())
    }
}

/// Makes the parameters of a line those of the builder.
fn push_line(line: &[u8], builder: &mut ParametersBuilder) {
    let line = Parameters::from_bytes(line);
    builder.clear();
    (0..line.count()).for_each(|number| builder.push(line.get(number as u16)));
}
