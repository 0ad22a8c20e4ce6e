//! CREATE, ALTER and DROP VIEW. A view is a table without partitions.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{SchemaVersion, TableId};
use junctor_model::schema::TableDefinition;

use super::block::MainBlock;
use super::state::{Plan, TableName};

impl MainBlock {
    /// A view that is replaced keeps its id, and gets the next version.
    pub(super) fn plan_create_view(
        &self,
        mut definition: TableDefinition,
        or_replace: bool,
        alters: bool,
    ) -> Result<Plan> {
        let mut plan = Plan::default();
        let dictionary = &self.catalog.dictionary;
        let (database, name) = (&definition.database, &definition.name);
        if dictionary.database(database).is_none() {
            return Err(Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{database}'")));
        }
        match dictionary.table_named(database, name) {
            Some(old) if !(or_replace || alters) => {
                let message = format!("Table '{}' already exists", old.definition.name);
                return Err(Error::new(ErrorCode::TableExists, message));
            }
            Some(old) if old.definition.view.is_none() => return Err(not_a_view(database, name)),
            Some(old) => {
                definition.id = old.definition.id;
                definition.version = SchemaVersion(old.definition.version.0 + 1);
            }
            None if alters => {
                let message = format!("Table '{database}.{name}' doesn't exist");
                return Err(Error::new(ErrorCode::NoSuchTable, message));
            }
            None => {
                definition.id = self.next_table;
                definition.version = SchemaVersion(1);
                plan.tables_made += 1;
            }
        }
        let mut catalog = self.next_catalog();
        catalog.dictionary.put_table(definition);
        plan.then_publish(catalog);
        Ok(plan)
    }

    pub(super) fn plan_drop_views(&self, names: &[TableName], if_exists: bool) -> Result<Plan> {
        let mut plan = Plan::default();
        let (mut found, mut missing): (Vec<TableId>, Vec<String>) = Default::default();
        for (database, name) in names {
            match self.catalog.dictionary.table_named(database, name) {
                Some(layout) if layout.definition.view.is_some() => found.push(layout.definition.id),
                Some(_) => return Err(not_a_view(database, name)),
                None => missing.push(format!("{database}.{name}")),
            }
        }
        if !missing.is_empty() && !if_exists {
            return Err(Error::new(ErrorCode::UnknownTable, format!("Unknown table '{}'", missing.join(","))));
        }
        let note = |name: String| (ErrorCode::UnknownTable.errno(), format!("Unknown table '{name}'").into());
        plan.notes.extend(missing.into_iter().map(note));
        if !found.is_empty() {
            let mut catalog = self.next_catalog();
            found.iter().for_each(|view| catalog.dictionary.remove_table(*view));
            plan.then_publish(catalog);
        }
        Ok(plan)
    }
}

fn not_a_view(database: &str, name: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongObject, format!("'{database}.{name}' is not VIEW"))
}
