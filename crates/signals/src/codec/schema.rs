//! Tables, catalogs and schema changes.

use junctor_kernel::DecodeError;
use junctor_model::access::{AccessChange, AccessControl};
#[cfg(test)]
use junctor_model::access::{AccountDefinition, AccountName};
use junctor_model::alteration::{Alteration, ColumnSource, Redefinition};
use junctor_model::foreign_key::ForeignKey;
use junctor_model::schema::{
    DatabaseDefinition, Dictionary, IndexAttributes, IndexDefinition, IndexKind, IndexState, Sharing, TableDefinition,
    TableLayout,
};
use junctor_model::stored_schema::DictionaryChange;

use super::definition::{decode_reference, encode_reference};
use super::page::Page;
#[cfg(test)]
use super::sample::{self, Draw};
use super::wire::{Reader, Result, Wire, Writer};
use crate::change_schema::*;
use crate::row_expressions::{ComputedColumn, RowExpressions};

layout! { DatabaseDefinition { name, collation } }
choices! { IndexKind { 0 Primary { ordered }; 1 Unique { ordered, entries }; 2 Ordered; } }
choices! { IndexState { 0 Building; 1 Online; } }
layout! { IndexDefinition { id, name, kind, columns, state, attributes } }
layout! { IndexAttributes { invisible, descending, comment, names_btree, key_block_size, of_foreign_key } }
layout! { ForeignKey { name, columns, parent, parent_columns, on_delete, on_update } }
layout! {
    Alteration {
        drop_indexes, rename_indexes, show_indexes, add_indexes, drop_foreign_keys, add_foreign_keys, rename,
        needs_parents, redefinition, planned_for,
    }
}
choices! { ColumnSource { 0 Column(column); 1 Value(value); 2 Numbers; 3 Computed; } }
layout! { ComputedColumn { column, value } }
layout! { RowExpressions { columns, checks } }
layout! { Redefinition { old, new, copy, renamed_columns, auto_increment, rules, now_us, is_strict } }
layout! { TableLockRequest { name, writes } }
layout! { TableRename { from, to } }
choices! { Sharing { 0 Shared; 1 Temporary(owner); 2 Unfinished(owner); } }
choices! {
    SchemaChange {
        0 CreateDatabase { name, collation, if_not_exists };
        1 DropDatabase { name, if_exists };
        2 CreateTable { definition, if_not_exists, auto_increment };
        3 DropTables { names, if_exists };
        4 TruncateTable { table };
        5 AlterTable { table, alteration, expressions };
        6 RenameTables { renames };
        7 LockTables { tables };
        8 AlterDatabase { name, collation };
        9 CreateOwnTable { definition, sharing, auto_increment };
        10 DropOwnTables { tables };
        11 FinishTable { table };
        12 CreateView { definition, or_replace, alters };
        13 DropViews { names, if_exists };
        14 ChangeAccess { change };
    }
}
choices! { PartitionChange { 0 Create { chain }; 1 Drop; 2 ReplaceLayout; 3 BuildIndex(index); } }
layout! { defined Catalog { dictionary, distribution } }

/// A table's definition has the form in which the log keeps it, so that both have one reader.
impl Wire for TableDefinition {
    fn encode(&self, writer: &mut Writer<'_>) {
        let stored = DictionaryChange { tables: vec![self.clone()], ..DictionaryChange::default() };
        writer.bytes(&stored.encode());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<TableDefinition> {
        let stored = DictionaryChange::decode(reader.bytes()?).map_err(|_| DecodeError::Invalid("table"))?;
        match <[TableDefinition; 1]>::try_from(stored.tables) {
            Ok([table]) => Ok(table),
            Err(_) => Err(DecodeError::Invalid("number of tables")),
        }
    }

    fn describe(page: &mut Page) -> String {
        page.add("TableDefinition", |_| "bytes: a schema (`docs/format.md`, \"Schema\") with this table only".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> TableDefinition {
        let mut table = sample::layout().definition.clone();
        table.comment = Wire::sample(draw);
        table.sharing = Wire::sample(draw);
        table
    }
}

impl Wire for TableLayout {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.definition.encode(writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<TableLayout> {
        TableDefinition::decode(reader).map(TableLayout::new)
    }

    fn encode_shared(shared: &std::sync::Arc<TableLayout>, writer: &mut Writer<'_>) {
        encode_reference(shared, writer);
    }

    fn decode_shared(reader: &mut Reader<'_>) -> Result<std::sync::Arc<TableLayout>> {
        decode_reference(reader)
    }

    fn describe(page: &mut Page) -> String {
        page.add("TableLayout", TableDefinition::describe)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> TableLayout {
        TableLayout::new(TableDefinition::sample(draw))
    }
}

/// Accounts have the form in which the log keeps them.
impl Wire for AccessChange {
    fn encode(&self, writer: &mut Writer<'_>) {
        let stored = DictionaryChange { access: self.clone(), ..DictionaryChange::default() };
        writer.bytes(&stored.encode());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<AccessChange> {
        let stored = DictionaryChange::decode(reader.bytes()?).map_err(|_| DecodeError::Invalid("accounts"))?;
        Ok(stored.access)
    }

    fn describe(page: &mut Page) -> String {
        page.add("AccessChange", |_| "bytes: a schema (`docs/format.md`, \"Schema\") with these accounts only".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> AccessChange {
        let mut account = AccountDefinition::default();
        account.authentication.stored = Vec::sample(draw);
        account.is_locked = draw.below(2) == 1;
        let name = AccountName::new(&format!("u{}", draw.below(9)), "%");
        AccessChange { version: draw.below(7), changed: vec![(name.clone(), account.into())], dropped: vec![name] }
    }
}

impl Wire for Dictionary {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.version.encode(writer);
        writer.count(self.databases().count());
        self.databases().for_each(|database| database.encode(writer));
        writer.count(self.tables().count());
        self.tables().for_each(|table| table.encode(writer));
        self.access.to_change().encode(writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Dictionary> {
        let mut dictionary = Dictionary::default();
        dictionary.version = u64::decode(reader)?;
        for _ in 0..reader.count()? {
            dictionary.put_database(DatabaseDefinition::decode(reader)?);
        }
        for _ in 0..reader.count()? {
            dictionary.put_layout(Wire::decode(reader)?);
        }
        dictionary.access = AccessControl::of(AccessChange::decode(reader)?).into();
        Ok(dictionary)
    }

    fn describe(page: &mut Page) -> String {
        page.add("Dictionary", |page| {
            let (database, table) = (DatabaseDefinition::describe(page), TableLayout::describe(page));
            let accounts = AccessChange::describe(page);
            format!("version: u64, databases: list of {database}, tables: list of {table}, accounts: {accounts}")
        })
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Dictionary {
        let mut dictionary = Dictionary::default();
        dictionary.version = draw.number();
        Vec::sample(draw).into_iter().for_each(|database| dictionary.put_database(database));
        for number in 0..draw.below(4) {
            let mut table = TableDefinition::sample(draw);
            table.id.0 = number as u32;
            table.name = format!("t{number}").into();
            dictionary.put_table(table);
        }
        dictionary
    }
}

impl Wire for Distribution {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.count(self.chains().count());
        for (partition, chain) in self.chains() {
            partition.encode(writer);
            Wire::encode_all(chain, writer);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Distribution> {
        let mut distribution = Distribution::default();
        for _ in 0..reader.count()? {
            distribution.put(Wire::decode(reader)?, Wire::decode(reader)?);
        }
        Ok(distribution)
    }

    fn describe(page: &mut Page) -> String {
        page.add("Distribution", |page| {
            format!("list of {}", <(junctor_model::id::PartitionId, Vec<junctor_kernel::Address>)>::describe(page))
        })
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Distribution {
        let mut distribution = Distribution::default();
        let chains: Vec<_> = Vec::sample(draw);
        chains.into_iter().for_each(|(partition, chain)| distribution.put(partition, chain));
        distribution
    }
}
