//! The row of a table, and the macro that declares one: its fields, its columns and their
//! documentation are written once.

use crate::cell::{Cell, DataType};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::DataType as _;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use serde::{Serialize, de::DeserializeOwned};
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use weft_units::{EndpointId, SwitchId, Time};

/// Rows that are read at a time, so that memory does not grow with a table.
pub(crate) const BATCH: usize = 4096;

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The name; the unit, where there is one, ends it.
    pub name: &'static str,
    /// `ps`, `bytes`, `bits_per_second`, or empty.
    pub unit: &'static str,
    /// The type in the file.
    pub data_type: DataType,
    /// The type by which the file stores it.
    pub(crate) physical: PhysicalType,
    /// Whether a row may leave it out.
    pub nullable: bool,
    /// The meaning, in one or a few sentences.
    pub doc: String,
}

impl Column {
    /// The column of a field `name` of type `T`.
    pub(crate) fn of<T: Cell>(name: &'static str, doc: &[&str]) -> Column {
        let doc = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let physical = T::Physical::get_physical_type();
        Column { name, unit: T::UNIT, data_type: T::DATA_TYPE, physical, nullable: T::NULLABLE, doc }
    }

    /// The column in the schema of a file.
    fn in_schema(&self) -> ParquetResult<TypePtr> {
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let logical: Option<LogicalType> = self.data_type.logical();
        let builder = Type::primitive_type_builder(self.name, self.physical);
        builder.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    }
}

/// The reason for which a table is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrittenBy {
    /// No option: it is written unless `--tables` names others.
    Default,
    /// `--tables` names it.
    Name,
    /// An option of its own is given.
    Option,
}

/// Columns as a struct.
pub trait Row: Clone + Serialize + DeserializeOwned + 'static {
    /// Raised when a column changes its name, its type or its meaning, or goes.
    const VERSION: u32;
    /// The meaning of the table, in one or a few sentences.
    const DOC: &'static [&'static str];
    /// The reason for which it is written.
    const WRITTEN_BY: WrittenBy;
    /// The options that write it, with the commands that know them: the mend where it is missing.
    const OPTIONS: &'static str;

    /// The columns in the order of the file.
    fn columns() -> Vec<Column>;
    /// Writes rows as a row group.
    ///
    /// # Errors
    /// A file that cannot be written.
    fn write(rows: &[Self], group: &mut RowGroup<'_>) -> ParquetResult<()>;
    /// Calls `visit` with the rows of a row group.
    ///
    /// # Errors
    /// A file that cannot be read, or is of another form.
    fn visit(group: &dyn RowGroupReader, visit: &mut dyn FnMut(Self)) -> Result<(), Unreadable>;
    /// Rows of a file ascend in this: run, time, entity, sequence.
    fn order(&self) -> (u32, Time, u64, u64);

    /// The schema of a file. Its root has the name that files have had from the beginning.
    fn schema() -> TypePtr {
        let fields: ParquetResult<Vec<TypePtr>> = Self::columns().iter().map(Column::in_schema).collect();
        let root = fields.and_then(|all| Type::group_type_builder("arrow_schema").with_fields(all).build());
        Arc::new(root.expect("each type of a column is one of Parquet"))
    }
}

/// A row group that is being written.
pub(crate) type RowGroup<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

/// Why rows cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The column is missing, is of another type or lacks a value.
    Column(&'static str),
    /// The file cannot be read, or is damaged.
    File(ParquetError),
}

impl From<ParquetError> for Unreadable {
    fn from(error: ParquetError) -> Unreadable {
        Unreadable::File(error)
    }
}

/// The writer of the next column of a row group.
pub(crate) fn next_column<'g>(group: &'g mut RowGroup<'_>) -> ParquetResult<SerializedColumnWriter<'g>> {
    Ok(group.next_column()?.expect("the schema has a column for each field"))
}

/// The place of an endpoint or a switch in the order of a table: endpoints come first.
pub(crate) fn entity(endpoint: Option<EndpointId>, switch: Option<SwitchId>) -> u64 {
    match endpoint {
        Some(endpoint) => endpoint.0.into(),
        None => 1 << 32 | switch.map_or(0, |switch| u64::from(switch.0)),
    }
}

/// Declares a row: a struct whose fields are the columns.
macro_rules! row {
    (
        $(#[doc = $table_doc:literal])+
        $row:ident version $version:literal
            written by $by:ident: $options:literal
            ordered by $order:expr;
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, PartialEq, Debug, Default, serde::Deserialize)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        /// Flat where names are written; as it is read, field by field, in snapshots.
        impl serde::Serialize for $row {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::{SerializeMap, SerializeTuple};
                if serializer.is_human_readable() {
                    let mut map = serializer.serialize_map(None)?;
                    $($crate::cell::Cells::show(&self.$field, stringify!($field), &mut map)?;)+
                    return map.end();
                }
                let mut fields = serializer.serialize_tuple([$(stringify!($field)),+].len())?;
                $(fields.serialize_element(&self.$field)?;)+
                fields.end()
            }
        }

        impl $crate::row::Row for $row {
            const VERSION: u32 = $version;
            const DOC: &'static [&'static str] = &[$($table_doc),+];
            const WRITTEN_BY: $crate::row::WrittenBy = $crate::row::WrittenBy::$by;
            const OPTIONS: &'static str = $options;

            fn columns() -> Vec<$crate::row::Column> {
                [$(<$type as $crate::cell::Cells>::columns(stringify!($field), &[$($doc),+])),+].concat()
            }

            fn write(rows: &[Self], group: &mut $crate::row::RowGroup<'_>) -> parquet::errors::Result<()> {
                $($crate::cell::Cells::write(rows.iter().map(|row| row.$field.clone()), group)?;)+
                Ok(())
            }

            fn visit(
                group: &dyn parquet::file::reader::RowGroupReader,
                visit: &mut dyn FnMut(Self),
            ) -> Result<(), $crate::row::Unreadable> {
                use $crate::cell::Cells;
                use $crate::row::{BATCH, Unreadable};
                $(let mut $field = <$type as Cells>::open(group, stringify!($field))?;)+
                let mut left = group.metadata().num_rows() as usize;
                while left > 0 {
                    let rows = left.min(BATCH);
                    $(let mut $field = <$type as Cells>::next(&mut $field, rows)?.into_iter();)+
                    for _ in 0..rows {
                        visit($row {
                            $($field: $field.next().ok_or(Unreadable::Column(stringify!($field)))?,)+
                        });
                    }
                    left -= rows;
                }
                Ok(())
            }

            fn order(&self) -> (u32, weft_units::Time, u64, u64) {
                let order: fn(&$row) -> (u32, weft_units::Time, u64, u64) = $order;
                order(self)
            }
        }
    };
}
pub(crate) use row;
