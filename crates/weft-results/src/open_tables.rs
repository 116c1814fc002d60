//! The tables of a result while it is written.

use crate::error::ResultsError;
use crate::live::LiveTable;
use crate::manifest::TableSummary;
use crate::table_writer::{AnyTableWriter, SavedTable, TableWriter};
use crate::tables::{Table, TableRow, WithRow};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The tables of a result that are wanted. Rows of the others are dropped.
pub(crate) struct OpenTables(BTreeMap<Table, Box<dyn AnyTableWriter>>);

/// A table that is whole, under a temporary name.
pub(crate) struct MergedTable {
    pub(crate) table: Table,
    pub(crate) summary: TableSummary,
    pub(crate) path: PathBuf,
}

/// A table without rows, with its parts in this folder.
struct EmptyTable<'a>(&'a Path);

impl WithRow for EmptyTable<'_> {
    type Output = Box<dyn AnyTableWriter>;

    fn with<R: TableRow>(self) -> Box<dyn AnyTableWriter> {
        Box::new(TableWriter::<R>::new(self.0))
    }
}

/// A table as a snapshot has it.
struct ResumedTable<'a> {
    working: &'a Path,
    saved: &'a SavedTable,
    /// The snapshot.
    path: &'a Path,
}

impl WithRow for ResumedTable<'_> {
    type Output = Result<Box<dyn AnyTableWriter>, ResultsError>;

    fn with<R: TableRow>(self) -> Self::Output {
        if self.saved.version != R::VERSION {
            return Err(ResultsError::SnapshotVersion { path: self.path.to_owned() });
        }
        Ok(Box::new(TableWriter::<R>::resume(self.working, self.saved)?))
    }
}

impl OpenTables {
    /// The `wanted` tables, without rows, with their parts in the folder `working`.
    pub(crate) fn new(working: &Path, wanted: &[Table]) -> OpenTables {
        OpenTables(wanted.iter().map(|&table| (table, table.with_row(EmptyTable(working)))).collect())
    }

    /// The tables as the snapshot at `path` has them; rows after it are dropped.
    pub(crate) fn resume(
        working: &Path,
        tables: &[SavedTable],
        path: &Path,
    ) -> Result<OpenTables, ResultsError> {
        let open = |saved: &SavedTable| {
            let table = Table::by_name(&saved.table);
            let table = table.ok_or_else(|| ResultsError::SnapshotVersion { path: path.to_owned() })?;
            Ok((table, table.with_row(ResumedTable { working, saved, path })?))
        };
        tables.iter().map(open).collect::<Result<_, _>>().map(OpenTables)
    }

    /// Whether rows of `table` are wanted.
    pub(crate) fn wants(&self, table: Table) -> bool {
        self.0.contains_key(&table)
    }

    /// Adds a row to its table.
    pub(crate) fn push<R: TableRow>(&mut self, row: R) -> Result<(), ResultsError> {
        let Some(table) = self.0.get_mut(&R::TABLE) else { return Ok(()) };
        let table: &mut dyn Any = &mut **table;
        table.downcast_mut::<TableWriter<R>>().expect("a table has rows of its type").push(row)
    }

    /// Ends the row groups: all rows before this virtual epoch have been handed over.
    pub(crate) fn epoch(&mut self) -> Result<(), ResultsError> {
        self.0.values_mut().try_for_each(|table| table.epoch())
    }

    /// The tables as they are now.
    pub(crate) fn save(&mut self) -> Result<Vec<SavedTable>, ResultsError> {
        self.0.values_mut().map(|table| table.save()).collect()
    }

    /// The files of the tables for a reader, as they are now.
    pub(crate) fn publish(&mut self, generation: u64) -> Result<BTreeMap<Table, LiveTable>, ResultsError> {
        self.0.iter_mut().map(|(&name, table)| Ok((name, table.publish(generation)?))).collect()
    }

    /// Makes each table whole under a temporary name in `working`, in the order in which tables are listed.
    pub(crate) fn merge(&mut self, working: &Path) -> Result<Vec<MergedTable>, ResultsError> {
        let merge = |(table, writer): (Table, Box<dyn AnyTableWriter>)| {
            let path = working.join(table.file());
            Ok(MergedTable { table, summary: writer.merge(&path)?, path })
        };
        std::mem::take(&mut self.0).into_iter().map(merge).collect()
    }
}
