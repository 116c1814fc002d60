//! The row of a table, and the macro that declares one: its fields, its columns and their
//! documentation are written once.

use crate::cell::Cell;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;
use weft_units::Time;

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The name; the unit, where there is one, ends it.
    pub name: &'static str,
    /// `ps`, `bytes`, `bits_per_second`, or empty.
    pub unit: &'static str,
    /// The type in the file.
    pub data_type: DataType,
    /// Whether a row may leave it out.
    pub nullable: bool,
    /// The meaning, in one or a few sentences.
    pub doc: String,
}

impl Column {
    /// The column of a field `name` of type `T`.
    pub(crate) fn of<T: Cell>(name: &'static str, doc: &[&str]) -> Column {
        let doc = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        Column { name, unit: T::UNIT, data_type: T::DATA_TYPE, nullable: T::NULLABLE, doc }
    }
}

/// A row of one of the result tables.
pub trait Row: Clone + Serialize + DeserializeOwned {
    /// The table's name; its file is `NAME.parquet`.
    const TABLE: &'static str;
    /// Raised when a column changes its name, its type or its meaning, or goes.
    const VERSION: u32;
    /// The meaning of the table, in one or a few sentences.
    const DOC: &'static [&'static str];

    /// The columns in the order of the file.
    fn columns() -> Vec<Column>;
    /// The rows as columns.
    fn arrays(rows: &[Self]) -> Vec<ArrayRef>;
    /// The rows of a part of a file.
    ///
    /// # Errors
    /// The name of a column that is missing, is of another type or lacks a value.
    fn rows(batch: &RecordBatch) -> Result<Vec<Self>, &'static str>;
    /// Rows of a file ascend in this: run, time, entity, sequence.
    fn order(&self) -> (u32, Time, u64, u64);

    /// The Arrow schema.
    fn schema() -> Arc<Schema> {
        let field = |column: Column| Field::new(column.name, column.data_type, column.nullable);
        Arc::new(Schema::new(Self::columns().into_iter().map(field).collect::<Vec<_>>()))
    }

    /// A row group's worth of rows.
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> RecordBatch {
        RecordBatch::try_new(schema.clone(), Self::arrays(rows))
            .expect("schema and arrays come from the same list of fields")
    }
}

/// Declares a row: a struct whose fields are the columns.
macro_rules! row {
    (
        $(#[doc = $table_doc:literal])+
        $row:ident in $table:literal version $version:literal ordered by $order:expr;
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $crate::Row for $row {
            const TABLE: &'static str = $table;
            const VERSION: u32 = $version;
            const DOC: &'static [&'static str] = &[$($table_doc),+];

            fn columns() -> Vec<$crate::Column> {
                vec![$($crate::Column::of::<$type>(stringify!($field), &[$($doc),+])),+]
            }

            fn arrays(rows: &[Self]) -> Vec<arrow_array::ArrayRef> {
                vec![$(<$type as $crate::cell::Cell>::column(
                    rows.iter().map(|row| Some(row.$field.clone()))
                )),+]
            }

            fn rows(batch: &arrow_array::RecordBatch) -> Result<Vec<Self>, &'static str> {
                $(let $field = batch.column_by_name(stringify!($field)).ok_or(stringify!($field))?;)+
                (0..batch.num_rows())
                    .map(|row| {
                        Ok($row {
                            $($field: <$type as $crate::cell::Cell>::read($field, row)
                                .ok_or(stringify!($field))?,)+
                        })
                    })
                    .collect()
            }

            fn order(&self) -> (u32, weft_units::Time, u64, u64) {
                let order: fn(&$row) -> (u32, weft_units::Time, u64, u64) = $order;
                order(self)
            }
        }
    };
}
pub(crate) use row;
