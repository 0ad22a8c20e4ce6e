//! Values of the rows of columns: privileges and collations.

use junctor_model::access::rights::TableRights;
use junctor_model::access::{Privilege, Privileges};
use junctor_model::collation::CollationId;
use junctor_model::schema::{ColumnDefinition, TableDefinition};

/// The privileges of the session on a column, as a list; `None` if it has none, so that the column is hidden.
/// A temporary table is the session's own.
pub(super) fn privileges(table: &TableDefinition, column: &ColumnDefinition, rights: &TableRights) -> Option<String> {
    let all = Privileges::of(&[Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::References]);
    let own = if table.is_temporary() { all } else { rights.on_column(&column.name) };
    if own.is_empty() {
        return None;
    }
    let names: Vec<String> =
        own.iter().filter(|privilege| all.has(*privilege)).map(|privilege| privilege.name().to_lowercase()).collect();
    Some(names.join(","))
}

/// The collation of a character column; binary strings and numbers have none.
pub(super) fn collation(column: &ColumnDefinition) -> Option<&'static str> {
    column.column_type.collation().filter(|collation| *collation != CollationId::BINARY).map(CollationId::name)
}
