//! Chooses the access path. Best is a whole unique key, then the index with the longest prefix of columns
//! bound to values, then a range; the last resort is a scan of all rows. Statistics of the table, where it
//! has been sampled, can prefer another index than the one with the longest prefix.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key_list::list_column;
use junctor_model::schema::{Dictionary, IndexDefinition, IndexKind, IndexState, TableDefinition, TableLayout};
use junctor_model::value::Value;
use junctor_signals::program::{Access, Output, ReadProgram};

use super::index_share::index_share;
use super::operand::{Interval, KeyValues, Operand, ValueSet};
use super::restriction::{Restriction, alternatives_of, restrictions_of};
use crate::bind::{ParameterKind, PatternPrefix, message};
use crate::parse::statement::{IndexHint, IndexHintKind};
use crate::statistics::TableProfile;

/// The statistics of a table, if it has been sampled.
pub(super) type FindProfile<'a> = &'a dyn Fn(&TableDefinition) -> Option<Arc<TableProfile>>;

/// An index that finds less than this part of the rows of another one is preferred to it, although fewer of
/// its columns are bound. Estimates that are closer to each other say nothing.
const CLEARLY_FEWER: f64 = 0.5;
/// The score of a range, which is the least of an index that leaves rows out.
const RANGE_SCORE: usize = 2;
/// Maximum number of lists whose values are combined to ranges of an index. Parallel lists are one.
const LISTS_MAX: usize = 4;

/// Whole keys, from which each execution builds its keys: values for every column of a key, in one or several
/// alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyTemplate {
    /// The columns of the key, in key order.
    pub columns: Vec<ColumnNumber>,
    /// Each alternative has one entry for each column. At most one of its entries has several values, or
    /// several have parallel lists.
    pub alternatives: Vec<Vec<KeyValues>>,
}

/// Ranges of index keys: values of the leading columns, then ranges of the next column.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTemplate {
    /// The columns of the index, in key order.
    pub columns: Vec<ColumnNumber>,
    /// Those whose parts of the keys are in descending order.
    pub descending: Vec<ColumnNumber>,
    /// The values of the leading columns. If they have several lists, an execution may use fewer columns, and
    /// the filter tests the conditions of the others.
    pub prefix: Vec<KeyValues>,
    /// The allowed values of the column after the prefix; empty allows all.
    pub value_sets: Vec<ValueSet>,
}

/// The set of partitions that a statement visits. `bind::Scope`, in contrast, is the set of names that it can
/// use.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeTemplate {
    /// Every partition of the table.
    All,
    /// The partition that these values of all partition columns select.
    Bound(Vec<(ColumnNumber, Operand)>),
    /// For each range the partition of its first columns, among which are all partition columns.
    EachRange,
}

/// How a statement finds its rows.
#[derive(Clone, Debug)]
pub enum AccessPath {
    /// No row: the condition is never true.
    Nothing,
    /// By whole primary keys.
    PrimaryKeys(KeyTemplate),
    /// By whole keys of a unique index. A first read returns the index entries, a second one the rows to
    /// which these refer.
    UniqueKeys {
        /// The unique index.
        index: IndexId,
        /// The read of the index entries.
        lookup: Arc<ReadProgram>,
        /// The keys of the entries.
        keys: KeyTemplate,
    },
    /// By ranges of an ordered index.
    Ranges {
        /// The index; it may be a primary or unique one.
        index: IndexId,
        /// Whether the ranges are read from their end to their beginning.
        descending: bool,
        /// The ranges to read.
        ranges: RangeTemplate,
        /// The partitions to read.
        scope: ScopeTemplate,
    },
    /// By a scan of all rows in these partitions.
    AllRows(ScopeTemplate),
}

/// The chosen access path.
#[derive(Clone, Debug)]
pub(super) struct ChosenPath {
    pub path: AccessPath,
    pub access: Access,
    /// Positions of the conjuncts that hold for every row that the path finds, so the filter omits them.
    pub implied: Vec<usize>,
    /// Whether several indexes leave rows out, so that statistics decide.
    pub is_by_statistics: bool,
}

/// The input of the choice of an access path.
pub(super) struct AccessRequest<'a> {
    pub dictionary: &'a Dictionary,
    pub layout: &'a Arc<TableLayout>,
    pub conjuncts: &'a [Expression],
    pub parameters: &'a [ParameterKind],
    pub hints: &'a [IndexHint],
    /// Whether rows are written or locked. The path then needs a single request, so it cannot read entries of
    /// a unique index before the rows.
    pub for_write: bool,
    /// The columns of ORDER BY, if reading the rows in index order would save work.
    pub order: Option<&'a [OrderColumn]>,
    /// Called if several indexes leave rows out.
    pub profile: FindProfile<'a>,
    /// The parameters that are lists of a join, which tests its rows again. Several lists are parallel: each
    /// key has one value of each.
    pub join_lists: Range<u16>,
}

/// An index that finds the rows.
struct Candidate<'d> {
    /// Any equality or list outweighs a range, and a range outweighs a saved sort. Ties go to the first
    /// index.
    score: usize,
    /// How the rows are read in the order of the request, if they have it.
    walk: Option<Walk>,
    index: &'d IndexDefinition,
    ranges: RangeTemplate,
    implied: Vec<usize>,
}

/// Chooses the access path. Error: 1176 for a hint that names an unknown index.
pub(super) fn choose(request: &AccessRequest<'_>) -> Result<ChosenPath> {
    let definition = &request.layout.definition;
    check_hints(definition, request.hints)?;
    let mut restrictions = restrictions_of(definition, request.conjuncts);
    // The range of a pattern without a literal prefix is the whole index, which costs more than a scan of the
    // rows.
    restrictions.retain(|restriction| !restriction.value_sets.iter().any(|set| is_open(set, request.parameters)));
    for set in restrictions.iter_mut().flat_map(|restriction| &mut restriction.value_sets) {
        if let ValueSet::Values(values) = set
            && let KeyValues::Parameters(ordinal) = *values
            && request.join_lists.len() > 1
            && request.join_lists.contains(&ordinal)
        {
            *values = KeyValues::Parallel(ordinal);
        }
    }
    let usable = |index: &IndexDefinition| is_usable(definition, index, request.hints);
    let primary = definition.primary();
    if usable(primary)
        && let Some((keys, implied)) = whole_keys(definition, primary, &restrictions, request.conjuncts)
    {
        let path = AccessPath::PrimaryKeys(keys);
        return Ok(ChosenPath { path, access: Access::PrimaryKeys, implied, is_by_statistics: false });
    }
    if let Some(chosen) = unique_keys(request, &restrictions, &usable) {
        return Ok(chosen);
    }
    let mut scope = scope_of(definition, &restrictions);
    let mut candidates = Vec::new();
    for index in definition.indexes.iter().filter(|index| index.is_ordered() && usable(index)) {
        let list = list_column(&definition.columns, index);
        let lists_max = if list.is_none() { LISTS_MAX } else { 1 };
        let (ranges, implied) = ranges_of((definition, index), &restrictions, lists_max, &request.join_lists);
        if list.is_some_and(|list| !has_elements(&ranges, list)) {
            continue;
        }
        // Rows with several elements have no place in the order.
        let order = request.order.filter(|_| list.is_none());
        let walk = order.and_then(|order| walk_in_order(&ranges, order));
        let gives_order = walk.is_some();
        let of_ranges = RANGE_SCORE * usize::from(!ranges.value_sets.is_empty());
        let score = 4 * ranges.prefix.len() + of_ranges + usize::from(gives_order);
        if score > 0 {
            candidates.push(Candidate { score, walk, index, ranges, implied });
        }
    }
    let is_by_statistics = candidates.iter().filter(|candidate| candidate.score >= RANGE_SCORE).count() > 1;
    let profile = if is_by_statistics { (request.profile)(definition) } else { None };
    Ok(match best_of(candidates, profile.as_deref()) {
        Some(Candidate { index, ranges, implied, walk, .. }) => {
            let descending = walk == Some(Walk::Down);
            let access = Access::IndexRanges { index: index.id, descending };
            if scope == ScopeTemplate::All && binds_partition(definition, &ranges) {
                scope = ScopeTemplate::EachRange;
            }
            let path = AccessPath::Ranges { index: index.id, descending, ranges, scope };
            ChosenPath { path, access, implied, is_by_statistics }
        }
        None => {
            let path = AccessPath::AllRows(scope);
            ChosenPath { path, access: Access::AllRows, implied: Vec::new(), is_by_statistics }
        }
    })
}

/// Whether the ranges bind the list of a multi-valued index to elements, so that they find all rows of the
/// condition: a row without elements has no entry. Several elements and several values of a column before
/// them would make too many ranges.
fn has_elements(ranges: &RangeTemplate, list: ColumnNumber) -> bool {
    let Some(place) = ranges.columns.iter().position(|column| *column == list) else { return false };
    match (&ranges.value_sets[..], place.cmp(&ranges.prefix.len())) {
        (_, Ordering::Less) => true,
        ([ValueSet::Values(_)], Ordering::Equal) => true,
        (sets, Ordering::Equal) => {
            let are_elements = !sets.is_empty() && sets.iter().all(|set| matches!(set, ValueSet::Values(_)));
            are_elements && ranges.prefix.iter().all(KeyValues::is_single)
        }
        (_, Ordering::Greater) => false,
    }
}

/// The candidate with the highest score, or one that finds clearly fewer rows.
fn best_of<'d>(mut candidates: Vec<Candidate<'d>>, profile: Option<&TableProfile>) -> Option<Candidate<'d>> {
    let by_score = |(place, candidate): &(usize, &Candidate<'_>)| (candidate.score, std::cmp::Reverse(*place));
    let (mut best, _) = candidates.iter().enumerate().max_by_key(by_score)?;
    let share = |candidate: &Candidate<'_>| {
        profile.filter(|_| candidate.score >= RANGE_SCORE).and_then(|profile| index_share(profile, &candidate.ranges))
    };
    if let Some(mut least) = share(&candidates[best]) {
        // A saved sort may be worth more than fewer rows, because a limit may end the read early.
        let keeps_order = candidates[best].walk.is_some();
        for (place, candidate) in candidates.iter().enumerate() {
            let Some(share) = share(candidate).filter(|_| candidate.walk.is_some() || !keeps_order) else { continue };
            if share < CLEARLY_FEWER * least {
                (best, least) = (place, share);
            }
        }
    }
    Some(candidates.swap_remove(best))
}

/// A column of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderColumn {
    pub column: ColumnNumber,
    /// DESC.
    pub descending: bool,
}

/// The direction in which an index is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    Up,
    Down,
}

/// The direction in which the rows of these ranges are read in this order; `None` if no direction gives it.
pub(super) fn walk_in_order(ranges: &RangeTemplate, order: &[OrderColumn]) -> Option<Walk> {
    // Columns bound to a single value do not affect the order.
    let fixed = ranges.prefix.iter().take_while(|values| values.is_single()).count();
    let mut rest = ranges.columns[fixed..].iter();
    let mut found = None;
    for OrderColumn { column, descending } in order.iter().filter(|it| !ranges.columns[..fixed].contains(&it.column)) {
        if rest.next() != Some(column) {
            return None;
        }
        let walk = if *descending == ranges.descending.contains(column) { Walk::Up } else { Walk::Down };
        if *found.get_or_insert(walk) != walk {
            return None;
        }
    }
    Some(found.unwrap_or(Walk::Up))
}

fn check_hints(definition: &TableDefinition, hints: &[IndexHint]) -> Result<()> {
    for (hint, name) in hints.iter().flat_map(|hint| hint.indexes.iter().map(move |name| (hint, name))) {
        if index_in_hint(definition, hint, name).is_none_or(|index| index.attributes.invisible) {
            return Err(message::key_does_not_exist(name, &definition.name));
        }
    }
    Ok(())
}

/// The index that a name in a hint means. In USE INDEX and its kin, that is also an unambiguous beginning of
/// the index's name.
fn index_in_hint<'d>(definition: &'d TableDefinition, hint: &IndexHint, name: &str) -> Option<&'d IndexDefinition> {
    let exact = definition.index_named(name);
    if exact.is_some() || hint.is_comment {
        return exact;
    }
    let begins = |index: &&IndexDefinition| {
        let is_of_statement =
            !index.columns.iter().any(|column| definition.columns[usize::from(column.0)].is_hidden_key());
        let start = index.name.get(..name.len());
        is_of_statement
            && index.state == IndexState::Online
            && start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    let mut fitting = definition.indexes.iter().filter(begins);
    let found = fitting.next()?;
    fitting.next().is_none().then_some(found)
}

/// Whether a LIKE pattern has no characters before its first wildcard. A computed pattern is assumed to have
/// some.
fn is_open(set: &ValueSet, parameters: &[ParameterKind]) -> bool {
    match set {
        ValueSet::Prefix { pattern: Operand::Parameter(ordinal), .. } => {
            parameters.get(usize::from(*ordinal)).is_some_and(|kind| kind.prefix == PatternPrefix::Absent)
        }
        ValueSet::Prefix { pattern: Operand::Constant(Value::Bytes(pattern)), .. } => {
            PatternPrefix::of(pattern) == PatternPrefix::Absent
        }
        _ => false,
    }
}

pub(super) fn is_usable(definition: &TableDefinition, index: &IndexDefinition, hints: &[IndexHint]) -> bool {
    let is_open = index.state == IndexState::Online && !index.attributes.invisible;
    is_open && is_allowed(definition, index, hints)
}

fn is_allowed(definition: &TableDefinition, index: &IndexDefinition, hints: &[IndexHint]) -> bool {
    let is_it = |hint: &IndexHint, name: &String| {
        index_in_hint(definition, hint, name).is_some_and(|named| named.id == index.id)
    };
    let names = |hint: &IndexHint| hint.indexes.iter().any(|name| is_it(hint, name));
    let mut positive = hints.iter().filter(|hint| hint.kind != IndexHintKind::Ignore).peekable();
    let is_chosen = positive.peek().is_none() || positive.any(names);
    is_chosen && !hints.iter().any(|hint| hint.kind == IndexHintKind::Ignore && names(hint))
}

/// Whether the values of the first columns of each range select its partition.
fn binds_partition(definition: &TableDefinition, ranges: &RangeTemplate) -> bool {
    let bound = &ranges.columns[..ranges.prefix.len()];
    let columns = &definition.partition_columns;
    !columns.is_empty() && columns.iter().all(|column| bound.contains(column))
}

/// The restriction that binds a column to values. A single value is preferred to a list, and a parallel list
/// to another one.
fn values_for(restrictions: &[Restriction], column: ColumnNumber) -> Option<(&Restriction, &KeyValues)> {
    let values = restrictions.iter().filter(|restriction| restriction.column == column).filter_map(|restriction| {
        match restriction.value_sets.as_slice() {
            [ValueSet::Values(values)] => Some((restriction, values)),
            _ => None,
        }
    });
    values.min_by_key(|(_, values)| match values {
        KeyValues::One(_) | KeyValues::Null => 0,
        KeyValues::Parallel(_) => 1,
        KeyValues::List(_) | KeyValues::Parameters(_) => 2,
    })
}

/// Whole keys of an index: every column is bound to values other than NULL.
fn whole_keys(
    definition: &TableDefinition,
    index: &IndexDefinition,
    restrictions: &[Restriction],
    conjuncts: &[Expression],
) -> Option<(KeyTemplate, Vec<usize>)> {
    let mut key = Vec::with_capacity(index.columns.len());
    let mut implied = Vec::new();
    for column in &index.columns {
        let Some((restriction, values)) = values_for(restrictions, *column) else {
            return whole_alternatives(definition, index, restrictions, conjuncts);
        };
        key.push(values.clone());
        if restriction.exact {
            implied.push(restriction.conjunct);
        }
    }
    // A unique index admits any number of NULLs, and a template holds at most one list.
    let has_null = key.iter().any(|values| matches!(values, KeyValues::Null));
    if KeyValues::lists(&key) > 1 || has_null {
        return None;
    }
    Some((KeyTemplate { columns: index.columns.clone(), alternatives: vec![key] }, implied))
}

/// Whole keys from a disjunction whose branches, together with the other conjuncts, bind every column.
fn whole_alternatives(
    definition: &TableDefinition,
    index: &IndexDefinition,
    restrictions: &[Restriction],
    conjuncts: &[Expression],
) -> Option<(KeyTemplate, Vec<usize>)> {
    for (position, conjunct) in conjuncts.iter().enumerate() {
        let Some(branches) = alternatives_of(definition, conjunct) else { continue };
        let key_of = |branch: &Vec<(ColumnNumber, KeyValues, bool)>| -> Option<(Vec<KeyValues>, bool)> {
            let mut key = Vec::with_capacity(index.columns.len());
            for column in &index.columns {
                let own = branch.iter().find(|(bound, ..)| bound == column).map(|(_, values, _)| values);
                let values = own.or_else(|| values_for(restrictions, *column).map(|(_, values)| values))?;
                key.push(values.clone());
            }
            let lists = KeyValues::lists(&key);
            let has_null = key.iter().any(|values| matches!(values, KeyValues::Null));
            // The key uses only one restriction of each column. If the branch has more, the filter must test
            // the row.
            let is_exact = branch.iter().all(|(column, _, exact)| *exact && index.columns.contains(column));
            let names_each_once =
                index.columns.iter().all(|column| branch.iter().filter(|(bound, ..)| bound == column).count() <= 1);
            (lists <= 1 && !has_null).then_some((key, is_exact && names_each_once))
        };
        let Some(keys) = branches.iter().map(key_of).collect::<Option<Vec<_>>>() else { continue };
        let is_exact = keys.iter().all(|(_, exact)| *exact);
        let implied = if is_exact { vec![position] } else { Vec::new() };
        let alternatives = keys.into_iter().map(|(key, _)| key).collect();
        return Some((KeyTemplate { columns: index.columns.clone(), alternatives }, implied));
    }
    None
}

fn unique_keys(
    request: &AccessRequest<'_>,
    restrictions: &[Restriction],
    usable: &dyn Fn(&IndexDefinition) -> bool,
) -> Option<ChosenPath> {
    if request.for_write {
        return None;
    }
    let UniqueLookup { index, lookup, keys, .. } = unique_lookup(request, restrictions, usable)?;
    let path = AccessPath::UniqueKeys { index, lookup, keys };
    // The row is read after its entry and may differ from it, so the row is tested against the whole
    // condition.
    Some(ChosenPath { path, access: Access::PrimaryKeys, implied: Vec::new(), is_by_statistics: false })
}

/// The read of unique entries that refer to the rows of a condition.
pub(super) struct UniqueLookup {
    pub index: IndexId,
    pub lookup: Arc<ReadProgram>,
    pub keys: KeyTemplate,
    /// The hidden table of the entries.
    pub entries: Arc<TableLayout>,
}

fn unique_lookup(
    request: &AccessRequest<'_>,
    restrictions: &[Restriction],
    usable: &dyn Fn(&IndexDefinition) -> bool,
) -> Option<UniqueLookup> {
    let definition = &request.layout.definition;
    definition.indexes.iter().filter(|index| usable(index)).find_map(|index| {
        let IndexKind::Unique { entries, .. } = index.kind else { return None };
        if list_column(&definition.columns, index).is_some() {
            return None;
        }
        let (keys, _) = whole_keys(definition, index, restrictions, request.conjuncts)?;
        let entries = request.dictionary.table(entries)?;
        let lookup = ReadProgram::new(entries, Access::PrimaryKeys, Output::Images);
        Some(UniqueLookup { index: index.id, lookup: Arc::new(lookup), keys, entries: Arc::clone(entries) })
    })
}

/// The lookup of the one row that a change can find by a unique key. `None` if `path` already reaches its
/// rows by primary keys or by ranges in one partition, or if the condition allows several keys.
pub(super) fn unique_row(request: &AccessRequest<'_>, path: &AccessPath) -> Option<UniqueLookup> {
    let is_in_one_partition = match path {
        AccessPath::Nothing | AccessPath::PrimaryKeys(_) | AccessPath::UniqueKeys { .. } => true,
        AccessPath::Ranges { scope, .. } => {
            matches!(scope, ScopeTemplate::Bound(_)) || request.layout.definition.partition_count == 1
        }
        // A scan reads many rows, even in one partition.
        AccessPath::AllRows(_) => false,
    };
    if is_in_one_partition {
        return None;
    }
    let usable = |index: &IndexDefinition| is_usable(&request.layout.definition, index, request.hints);
    let restrictions = restrictions_of(&request.layout.definition, request.conjuncts);
    let found = unique_lookup(request, &restrictions, &usable)?;
    let is_single = matches!(found.keys.alternatives.as_slice(), [key] if key.iter().all(KeyValues::is_single));
    is_single.then_some(found)
}

/// Whether a prefix has at most so many lists with these values.
fn has_room(prefix: &[KeyValues], values: &KeyValues, lists_max: usize) -> bool {
    match values {
        KeyValues::One(_) | KeyValues::Null => true,
        KeyValues::Parallel(_) if prefix.iter().any(|part| matches!(part, KeyValues::Parallel(_))) => true,
        KeyValues::Parallel(_) | KeyValues::List(_) | KeyValues::Parameters(_) => KeyValues::lists(prefix) < lists_max,
    }
}

/// The ranges of an index that satisfy the restrictions, and the conjuncts that the ranges imply. From the
/// second list on, they imply only those of a join.
fn ranges_of(
    (definition, index): (&TableDefinition, &IndexDefinition),
    restrictions: &[Restriction],
    lists_max: usize,
    join_lists: &Range<u16>,
) -> (RangeTemplate, Vec<usize>) {
    let (columns, descending) = (index.columns.clone(), index.attributes.descending.clone());
    let mut ranges = RangeTemplate { columns, descending, prefix: Vec::new(), value_sets: Vec::new() };
    let mut implied = Vec::new();
    for column in &index.columns {
        let is_string = definition.columns[usize::from(column.0)].column_type.collation().is_some();
        if let Some((restriction, values)) = values_for(restrictions, *column)
            && has_room(&ranges.prefix, values, lists_max)
        {
            ranges.prefix.push(values.clone());
            let is_tested = match values {
                KeyValues::Parallel(ordinal) | KeyValues::Parameters(ordinal) => join_lists.contains(ordinal),
                KeyValues::One(_) | KeyValues::Null | KeyValues::List(_) => false,
            };
            if restriction.exact && !is_string && (is_tested || KeyValues::lists(&ranges.prefix) < 2) {
                implied.push(restriction.conjunct);
            }
            continue;
        }
        let (value_sets, conjuncts) = value_sets_for(restrictions, *column);
        ranges.value_sets = value_sets;
        if KeyValues::lists(&ranges.prefix) < 2 {
            implied.extend(conjuncts);
        }
        break;
    }
    (ranges, implied)
}

/// The value sets of a column and the conjuncts that they imply: one interval made of all bounds, or the sets
/// of a list, disjunction or pattern. The sets are preferred to an interval that is open at one end.
fn value_sets_for(restrictions: &[Restriction], column: ColumnNumber) -> (Vec<ValueSet>, Vec<usize>) {
    let of_column = || restrictions.iter().filter(|restriction| restriction.column == column);
    let implied = |restriction: &Restriction| restriction.exact.then_some(restriction.conjunct);
    let mut interval = Interval::default();
    let mut conjuncts = Vec::new();
    for restriction in of_column() {
        let [ValueSet::Interval(next)] = restriction.value_sets.as_slice() else { continue };
        let fits =
            (next.lower.is_none() || interval.lower.is_none()) && (next.upper.is_none() || interval.upper.is_none());
        // Only the first bound on each side limits the range. Others stay in the filter.
        if fits {
            interval.lower = interval.lower.take().or_else(|| next.lower.clone());
            interval.upper = interval.upper.take().or_else(|| next.upper.clone());
            conjuncts.extend(implied(restriction));
        }
    }
    let several = of_column().find(|restriction| !matches!(restriction.value_sets.as_slice(), [ValueSet::Interval(_)]));
    match several {
        Some(several) if interval.lower.is_none() || interval.upper.is_none() => {
            (several.value_sets.clone(), implied(several).into_iter().collect())
        }
        _ if interval == Interval::default() => (Vec::new(), Vec::new()),
        _ => (vec![ValueSet::Interval(interval)], conjuncts),
    }
}

/// The partition of the rows if every partition column is bound to one value; otherwise all partitions.
fn scope_of(definition: &TableDefinition, restrictions: &[Restriction]) -> ScopeTemplate {
    if definition.partition_columns.is_empty() {
        return ScopeTemplate::All;
    }
    let mut bound = Vec::with_capacity(definition.partition_columns.len());
    for column in &definition.partition_columns {
        match values_for(restrictions, *column) {
            Some((_, KeyValues::One(operand))) => bound.push((*column, operand.clone())),
            _ => return ScopeTemplate::All,
        }
    }
    ScopeTemplate::Bound(bound)
}
