//! The data set of a study: columns of any parameters and any rows.

use crate::FORMAT_VERSION;
use crate::case::{Case, Mean, OF_THE_COMPUTER, parameters};
use crate::point::Point;
use parquet::basic::{Compression, LogicalType, Repetition};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Number, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Columns of the same height. Each has the type of its values, or texts where these differ.
#[derive(Default)]
pub(crate) struct Frame {
    columns: Vec<(String, Vec<Json>)>,
    by_name: BTreeMap<String, usize>,
    height: usize,
}

impl Frame {
    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// Adds a row. The first value of a name counts: parameters come before what was measured.
    fn push(&mut self, cells: Vec<(String, Json)>) {
        for (name, value) in cells {
            let columns = &mut self.columns;
            let number = *self.by_name.entry(name.clone()).or_insert_with(|| {
                columns.push((name, Vec::new()));
                columns.len() - 1
            });
            let column = &mut columns[number].1;
            if column.len() <= self.height {
                column.resize(self.height, Json::Null);
                column.push(value);
            }
        }
        self.height += 1;
    }

    /// The frame as a Parquet file.
    pub(crate) fn parquet(&self, name: &str) -> Result<Vec<u8>, ParquetError> {
        let fields: Result<Vec<TypePtr>, _> =
            self.columns.iter().map(|(name, values)| ColumnKind::of(values).field(name)).collect();
        let schema = Type::group_type_builder("schema").with_fields(fields?).build()?;
        let entry = |key: &str, value: String| KeyValue::new(format!("weft.{key}"), value);
        let table = name.trim_end_matches(".parquet").to_owned();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("weft ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![
                entry("table", table),
                entry("version", FORMAT_VERSION.to_string()),
            ]))
            .build();
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        if !self.columns.is_empty() {
            let mut group = writer.next_row_group()?;
            for (_, values) in &self.columns {
                let Some(mut column) = group.next_column()? else { break };
                // A column that ends early ends with rows without a value.
                let missing = self.height - values.len();
                let all = values.iter().chain(std::iter::repeat_n(&Json::Null, missing));
                ColumnKind::of(values).write(all, &mut column)?;
                column.close()?;
            }
            group.close()?;
        }
        writer.into_inner()
    }
}

/// The narrowest type of a column that takes all its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColumnKind {
    Boolean,
    Integer,
    Number,
    Text,
}

impl ColumnKind {
    fn of(values: &[Json]) -> ColumnKind {
        let all = |is: fn(&Json) -> bool| values.iter().all(|value| value.is_null() || is(value));
        if all(Json::is_boolean) {
            ColumnKind::Boolean
        } else if all(Json::is_i64) {
            ColumnKind::Integer
        } else if all(Json::is_number) {
            ColumnKind::Number
        } else {
            ColumnKind::Text
        }
    }

    /// A column of this type in the schema of a file. Any row may leave it out.
    fn field(self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            ColumnKind::Boolean => (BoolType::get_physical_type(), None),
            ColumnKind::Integer => (Int64Type::get_physical_type(), None),
            ColumnKind::Number => (DoubleType::get_physical_type(), None),
            ColumnKind::Text => (ByteArrayType::get_physical_type(), Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    }

    fn write<'j>(
        self,
        values: impl Iterator<Item = &'j Json>,
        column: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let text = |value: &Json| match value {
            Json::Null => None,
            Json::String(text) => Some(ByteArray::from(text.as_str())),
            other => Some(ByteArray::from(other.to_string().as_str())),
        };
        match self {
            ColumnKind::Boolean => write::<BoolType>(values.map(Json::as_bool), column),
            ColumnKind::Integer => write::<Int64Type>(values.map(Json::as_i64), column),
            ColumnKind::Number => write::<DoubleType>(values.map(Json::as_f64), column),
            ColumnKind::Text => write::<ByteArrayType>(values.map(text), column),
        }
    }
}

/// Writes the values of a column.
fn write<T: DataType>(
    cells: impl Iterator<Item = Option<T::T>>,
    column: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

/// The values of a measured row: those of objects within it by `name.part`; lists have no column.
fn flat(name: &str, value: &Json, cells: &mut Vec<(String, Json)>) {
    match value {
        Json::Array(_) => {}
        Json::Object(parts) => {
            for (part, value) in parts {
                flat(&if name.is_empty() { part.clone() } else { format!("{name}.{part}") }, value, cells);
            }
        }
        _ if OF_THE_COMPUTER.contains(&name) => {}
        value => cells.push((name.to_owned(), value.clone())),
    }
}

/// A row per point and measured row.
pub(crate) fn rows(documents: &[(&Point, Json)]) -> Frame {
    let mut frame = Frame::default();
    for (point, document) in documents {
        let empty = [Json::Null];
        let measured = document["rows"].as_array().filter(|rows| !rows.is_empty());
        for row in measured.map_or(&empty[..], Vec::as_slice) {
            let mut cells = vec![("point".to_owned(), Json::from(point.id.clone()))];
            cells.extend(parameters(point, row, true));
            cells.push(("ended".to_owned(), document["ended"].clone()));
            if row.is_object() {
                flat("", row, &mut cells);
            }
            frame.push(cells);
        }
    }
    frame
}

/// A row per case: means over seeds, and intervals of Student's t distribution at 95 %.
pub(crate) fn intervals(cases: &[Case]) -> Frame {
    let mut frame = Frame::default();
    for case in cases {
        let mut cells = [&case.parameters[..], &case.measured_of].concat();
        cells.push(("seeds".to_owned(), Json::from(case.seeds)));
        for (name, Mean { mean, half_width }) in &case.means {
            let number = |value: f64| Number::from_f64(value).map_or(Json::Null, Json::Number);
            let bound = |sign: f64| half_width.map_or(Json::Null, |half| number(mean + sign * half));
            cells.extend([
                (name.clone(), number(*mean)),
                (format!("{name}.low"), bound(-1.0)),
                (format!("{name}.high"), bound(1.0)),
            ]);
        }
        frame.push(cells);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a column that begins late or ends early, and one of several types.
    #[test]
    fn columns_are_as_high_as_the_frame() {
        let mut frame = Frame::default();
        let cell = |name: &str, value: Json| (name.to_owned(), value);
        frame.push(vec![cell("a", 1.into()), cell("a", 9.into())]);
        frame.push(vec![cell("b", "x".into()), cell("a", 2.5.into())]);
        frame.push(vec![cell("b", 3.into())]);
        let (a, b) = (&frame.columns[0].1, &frame.columns[1].1);
        assert_eq!(ColumnKind::of(a), ColumnKind::Number);
        assert_eq!((a.len(), b.len()), (2, 3));
        assert_eq!(ColumnKind::of(b), ColumnKind::Text);
        assert!(!frame.parquet("study.parquet").unwrap().is_empty());
    }
}
