//! Optimizer hints: what they change in a statement before it is planned, and their warnings.

use std::sync::Arc;

use junctor_model::error::ErrorCode;
use junctor_model::schema::TableLayout;

use crate::bind::Environment;
use crate::parse::hint::{Hint, HintKind, HintTable, Hints};
use crate::parse::query::{DerivedSource, FromItem};
use crate::parse::statement::{IndexHint, IndexHintKind, Select, Statement, TableReference};

/// The variable that is the same as the hint MAX_EXECUTION_TIME.
const EXECUTION_TIME: &str = "max_execution_time";

/// The variables of SET_VAR that direct MySQL's optimizer and the sizes of its buffers. They change nothing
/// here, also without a hint.
const WITHOUT_EFFECT: [&str; 23] = [
    "big_tables",
    "bulk_insert_buffer_size",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "join_buffer_size",
    "max_heap_table_size",
    "max_length_for_sort_data",
    "max_seeks_for_key",
    "max_sort_length",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "sort_buffer_size",
    "sql_big_selects",
    "sql_buffer_result",
    "tmp_table_size",
    "unique_checks",
    "updatable_views_with_limit",
    "windowing_use_high_precision",
];

/// The variables of SET_VAR that the session sets for the statement.
pub const STATEMENT_VARIABLES: [&str; 11] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "cte_max_recursion_depth",
    "foreign_key_checks",
    "insert_id",
    "lock_wait_timeout",
    "max_error_count",
    "sql_mode",
    "sql_select_limit",
    "time_zone",
    "timestamp",
];

/// The variables of SET_VAR on which plans depend, with their least and greatest values.
const OF_PLANS: [(&str, u64, u64); 2] = [("div_precision_increment", 0, 30), ("group_concat_max_len", 4, u64::MAX)];

/// A query whose hints have been applied.
#[derive(Debug)]
pub(super) struct HintedSelect {
    /// The query without hints.
    pub select: Select,
    /// MAX_EXECUTION_TIME, in milliseconds; 0 is unlimited.
    pub execution_time_max_ms: Option<u32>,
    /// The values of the variables in [`OF_PLANS`].
    numbers: [Option<u64>; OF_PLANS.len()],
    /// The errors and texts of the warnings.
    pub warnings: Vec<(ErrorCode, Box<str>)>,
    /// The variables of SET_VAR that it does not set, in lower case.
    pub unset: Vec<String>,
    /// Whether the time of the statement can be limited.
    has_time_limit: bool,
}

/// A hint, the number of the query block for which it is meant, and whether that is a statement's own.
struct Addressed {
    block: usize,
    is_outermost: bool,
    hint: Hint,
}

/// Adds the hints of the outermost queries of a statement: of all operands of UNION and the like.
pub fn outermost_hints<'s>(select: &'s Select, found: &mut Vec<&'s Hints>) {
    match &select.from {
        Some(FromItem::Derived(derived)) if derived.alias.is_none() => match &derived.source {
            DerivedSource::Select(query) => outermost_hints(query, found),
            DerivedSource::Set { first, rest } => {
                outermost_hints(first, found);
                rest.iter().for_each(|operand| outermost_hints(&operand.query, found));
            }
            DerivedSource::Values(_) | DerivedSource::JsonTable(_) => {}
        },
        _ => found.extend(select.hints.as_deref()),
    }
}

/// Applies the hints of a query and of those in it; `None` if there are none.
pub(super) fn apply_hints(environment: &Environment<'_>, select: &Select) -> Option<HintedSelect> {
    select.has_hints.then(|| apply(environment, select.clone(), true))
}

/// Applies the hints of a statement that changes rows, and those of the queries in its FROM and WHERE.
/// Returns the statement without hints.
pub(super) fn apply_to_change(environment: &Environment<'_>, statement: &Statement) -> (Statement, HintedSelect) {
    let mut statement = statement.clone();
    let (from, filter, hints) = match &mut statement {
        Statement::Insert(insert) => {
            let target = TableReference { name: insert.table.clone(), alias: None, index_hints: Vec::new() };
            (Some(FromItem::Table(target)), None, insert.hints.take())
        }
        Statement::Update(update) => {
            (Some(FromItem::Table(update.table.clone())), update.filter.take(), update.hints.take())
        }
        Statement::Delete(delete) => {
            (Some(FromItem::Table(delete.table.clone())), delete.filter.take(), delete.hints.take())
        }
        Statement::Modify(modify) => (Some(modify.from.clone()), modify.filter.take(), modify.hints.take()),
        _ => (None, None, None),
    };
    let select = Select { from, filter, hints, has_hints: true, ..Select::default() };
    let mut hinted = apply(environment, select, false);
    let Select { from, filter, keeps_order, join_orders, .. } = std::mem::take(&mut hinted.select);
    match (&mut statement, from) {
        (Statement::Update(update), Some(FromItem::Table(table))) => (update.table, update.filter) = (table, filter),
        (Statement::Delete(delete), Some(FromItem::Table(table))) => (delete.table, delete.filter) = (table, filter),
        (Statement::Modify(modify), Some(from)) => {
            (modify.from, modify.filter) = (from, filter);
            (modify.keeps_order, modify.join_orders) = (keeps_order, join_orders);
        }
        _ => {}
    }
    (statement, hinted)
}

fn apply(environment: &Environment<'_>, select: Select, has_time_limit: bool) -> HintedSelect {
    let mut hinted = HintedSelect {
        select,
        execution_time_max_ms: None,
        numbers: [None; OF_PLANS.len()],
        warnings: Vec::new(),
        unset: Vec::new(),
        has_time_limit,
    };
    let mut names = Vec::new();
    let mut found: Vec<(usize, bool, Hints)> = Vec::new();
    hinted.select.has_hints = false;
    hinted.select.for_each_query_mut(true, &mut |query, is_outermost| {
        names.push(vec![format!("select#{}", names.len() + 1)]);
        if let Some(hints) = query.hints.take() {
            found.push((names.len() - 1, is_outermost, *hints));
        }
    });
    for (block, _, hints) in &found {
        for hint in &hints.list {
            if let HintKind::BlockName(name) = &hint.kind {
                names[*block].push(name.clone());
            }
        }
        if let Some((text, line)) = &hints.error {
            hinted.warn(ErrorCode::SyntaxError, format!("Optimizer hint syntax error near '{text}' at line {line}"));
        }
    }
    let block_of = |name: &str| names.iter().position(|of| of.iter().any(|known| known.eq_ignore_ascii_case(name)));
    let mut addressed = Vec::new();
    for (own, is_outermost, hints) in found {
        for hint in hints.list {
            // A hint for a table of another block is one for that block.
            let of_table = match &hint.kind {
                HintKind::Index(_, table, _) => table.block.as_deref(),
                _ => None,
            };
            let named = hint.block.as_deref().or(of_table);
            match named.map(|name| (name, block_of(name))) {
                None => addressed.push(Addressed { block: own, is_outermost, hint }),
                Some((_, Some(block))) => addressed.push(Addressed { block, is_outermost: false, hint }),
                Some((name, None)) => hinted.warn(
                    ErrorCode::UnknownQueryBlock,
                    format!("Query block name `{name}` is not found for {} hint", hint.name),
                ),
            }
        }
    }
    let mut number = 0;
    let mut select = std::mem::take(&mut hinted.select);
    select.for_each_query_mut(true, &mut |query, _| {
        let own = addressed.iter().filter(|addressed| addressed.block == number);
        own.for_each(|addressed| hinted.apply(environment, query, (addressed, &names[number])));
        number += 1;
    });
    HintedSelect { select, ..hinted }
}

impl HintedSelect {
    fn warn(&mut self, code: ErrorCode, text: String) {
        self.warnings.push((code, text.into()));
    }

    fn apply(
        &mut self,
        environment: &Environment<'_>,
        query: &mut Select,
        (addressed, names): (&Addressed, &[String]),
    ) {
        let Addressed { is_outermost, hint, .. } = addressed;
        let is_own = |table: &&HintTable| {
            table.block.as_ref().is_none_or(|block| names.iter().any(|name| name.eq_ignore_ascii_case(block)))
        };
        let mut tables: Vec<String> = Vec::new();
        if let HintKind::JoinOrder(_, named) | HintKind::Tables(named) = &hint.kind {
            for table in named.iter().filter(is_own) {
                match with_member(query, &table.name, |_| ()) {
                    Some(()) => tables.push(table.name.clone()),
                    None => self.warn_unresolved(hint, &table.name, (names, None)),
                }
            }
        }
        match &hint.kind {
            HintKind::ExecutionTime(limit) => self.limit(hint, *limit, *is_outermost),
            HintKind::SetVariable { name, value } if name.eq_ignore_ascii_case(EXECUTION_TIME) => {
                // The variable concerns queries only.
                if !self.has_time_limit {
                    return;
                }
                let limit = value.number().map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX));
                self.limit(hint, limit, *is_outermost);
            }
            HintKind::SetVariable { name, .. } if *is_outermost && is_of_statement(name) => {}
            HintKind::SetVariable { name, value } => {
                let of_plan = OF_PLANS.iter().position(|(known, ..)| known.eq_ignore_ascii_case(name));
                if let Some(position) = of_plan.filter(|_| *is_outermost) {
                    self.set_number(position, value.number());
                } else if !WITHOUT_EFFECT.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                    self.unset.push(name.to_ascii_lowercase());
                }
            }
            HintKind::FixedOrder => query.keeps_order = true,
            HintKind::JoinOrder(kind, _) => query.join_orders.push((*kind, tables)),
            HintKind::Index(kind, table, indexes) => {
                self.index(environment, query, (hint, *kind), (table, indexes, names));
            }
            HintKind::BlockName(_) | HintKind::Tables(_) | HintKind::Nothing => {}
        }
    }

    /// The environment with the variables that the hints set.
    pub fn environment<'a>(&self, environment: &Environment<'a>) -> Environment<'a> {
        let [increment, concat_bytes_max] = self.numbers;
        Environment {
            division_increment: increment.map_or(environment.division_increment, |increment| increment as u8),
            concat_bytes_max: concat_bytes_max.unwrap_or(environment.concat_bytes_max),
            ..*environment
        }
    }

    /// Sets a variable on which plans depend.
    fn set_number(&mut self, position: usize, number: Option<u64>) {
        let (name, least, greatest) = OF_PLANS[position];
        let Some(number) = number else {
            return self.warn(ErrorCode::WrongTypeForVariable, format!("Incorrect argument type to variable '{name}'"));
        };
        if self.numbers[position].is_some() {
            let text = format!("Hint SET_VAR({name}={number}) is ignored as conflicting/duplicated");
            return self.warn(ErrorCode::ConflictingHint, text);
        }
        if !(least..=greatest).contains(&number) {
            self.warn(ErrorCode::TruncatedWrongValue, format!("Truncated incorrect {name} value: '{number}'"));
        }
        self.numbers[position] = Some(number.clamp(least, greatest));
    }

    /// Limits the time of the statement.
    fn limit(&mut self, hint: &Hint, limit: u32, is_outermost: bool) {
        if !is_outermost || !self.has_time_limit {
            let text = "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only";
            return self.warn(ErrorCode::UnsupportedExecutionTime, text.to_owned());
        }
        if self.execution_time_max_ms.is_some() {
            let text = format!("Hint {}({limit}) is ignored as conflicting/duplicated", hint.name);
            return self.warn(ErrorCode::ConflictingHint, text);
        }
        self.execution_time_max_ms = Some(limit);
    }

    fn warn_unresolved(&mut self, hint: &Hint, table: &str, (names, index): (&[String], Option<&str>)) {
        let block = names.last().map_or("", String::as_str);
        let index = index.map_or_else(String::new, |index| format!(" `{index}`"));
        let text = format!("Unresolved name `{table}`@`{block}`{index} for {} hint", hint.name);
        self.warn(ErrorCode::UnresolvedHintName, text);
    }

    /// Tells a table which of its indexes it uses. Hints take the place of USE INDEX and its kin.
    fn index(
        &mut self,
        environment: &Environment<'_>,
        query: &mut Select,
        (hint, kind): (&Hint, Option<IndexHintKind>),
        (table, indexes, names): (&HintTable, &[String], &[String]),
    ) {
        let mut unknown = Vec::new();
        let known = with_member(query, &table.name, |reference| {
            let Some(reference) = reference else { return };
            let database = reference.name.database.as_deref().or(environment.database).unwrap_or_default();
            let stored = environment.dictionary.table_seen_by(environment.owner, database, &reference.name.name);
            let mut own = indexes.to_vec();
            own.retain(|name| {
                let found = |layout: &Arc<TableLayout>| {
                    layout.definition.index_named(name).is_some_and(|index| !index.attributes.invisible)
                };
                let is_known = stored.is_none_or(found);
                if !is_known {
                    unknown.push(name.clone());
                }
                is_known
            });
            let Some(kind) = kind else { return };
            if own.is_empty() && (!indexes.is_empty() || kind == IndexHintKind::Use) {
                return;
            }
            reference.index_hints.retain(|hint| hint.is_comment);
            // No index may be used: USE INDEX ().
            let kind = if own.is_empty() { IndexHintKind::Use } else { kind };
            reference.index_hints.push(IndexHint { kind, indexes: own, is_comment: true });
        });
        if known.is_none() {
            self.warn_unresolved(hint, &table.name, (names, None));
        }
        for index in unknown {
            self.warn_unresolved(hint, &table.name, (names, Some(&index)));
        }
    }
}

fn is_of_statement(name: &str) -> bool {
    STATEMENT_VARIABLES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Calls `run` for the member of FROM with a name; `None` if there is none.
fn with_member<T>(query: &mut Select, name: &str, mut run: impl FnMut(Option<&mut TableReference>) -> T) -> Option<T> {
    let mut result = None;
    query.from.as_mut()?.for_each_member_mut(&mut |member, reference| {
        if result.is_none() && member.eq_ignore_ascii_case(name) {
            result = Some(run(reference));
        }
    });
    result
}
