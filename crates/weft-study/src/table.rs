//! The data set of a study: columns of any parameters and any rows.

use crate::FORMAT_VERSION;
use crate::point::Point;
use parquet::basic::{Compression, LogicalType, Repetition};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Number, Value as Json};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_analysis::{is_case, is_measured};

/// Upper quantile of two-sided intervals of 95 %.
const UPPER_QUANTILE: f64 = 0.975;

/// Fields of a row that tell of the computer it was simulated on: the same study is the same data set.
const OF_THE_COMPUTER: [&str; 4] =
    ["build_time_s", "packet_hops_per_second", "peak_memory_bytes", "wall_seconds"];

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

/// The parameters of a point, with those of one of its rows; `seed`: with it. A parameter may be a list for
/// each entry of which there is a row, as of ways to control congestion: then the row's own entry stands.
fn parameters(point: &Point, row: &Json, seed: bool) -> Vec<(String, Json)> {
    let mut cells = vec![("command".to_owned(), Json::from(point.words[0].clone()))];
    for (name, value) in point.parameters.iter().filter(|(name, _)| seed || name != "seed") {
        let own = Some(&row[name.as_str()]).filter(|own| is_case(name) && !own.is_null());
        let given = || serde_json::to_value(value).unwrap_or(Json::Null);
        cells.push((name.clone(), own.cloned().unwrap_or_else(given)));
    }
    cells
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

/// A group of rows that differ by their seeds.
#[derive(Default)]
struct Group {
    parameters: Vec<(String, Json)>,
    case: Vec<(String, Json)>,
    /// Measured values by their names, in the order of the first row.
    values: Vec<(String, Vec<f64>)>,
    seeds: u64,
}

/// A row per case: means over seeds, and intervals of Student's t distribution at 95 %.
pub(crate) fn intervals(documents: &[(&Point, Json)]) -> Frame {
    let mut order: Vec<Group> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (point, document) in documents {
        for json in document["rows"].as_array().into_iter().flatten() {
            let Some(row) = json.as_object() else { continue };
            let parameters = parameters(point, json, false);
            let asked: Vec<&str> = point.parameters.iter().map(|(name, _)| name.as_str()).collect();
            let case: Vec<(String, Json)> = row
                .iter()
                .filter(|(name, value)| is_case(name) && !value.is_null() && !asked.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let name = format!("{parameters:?} {case:?}");
            let number = *known.entry(name).or_insert_with(|| {
                order.push(Group { parameters, case, ..Group::default() });
                order.len() - 1
            });
            let group = &mut order[number];
            group.seeds += 1;
            for (name, value) in row.iter().filter(|(name, _)| is_outcome(name)) {
                let Some(value) = value.as_f64() else { continue };
                match group.values.iter_mut().find(|(other, _)| other == name) {
                    Some((_, values)) => values.push(value),
                    None => group.values.push((name.clone(), vec![value])),
                }
            }
        }
    }
    let mut frame = Frame::default();
    for Group { parameters, case, values, seeds } in order {
        let mut cells = [parameters, case].concat();
        cells.push(("seeds".to_owned(), Json::from(seeds)));
        for (name, values) in values {
            let (mean, half) = mean_and_half_width(&values);
            let number = |value: f64| Number::from_f64(value).map_or(Json::Null, Json::Number);
            let bound = |sign: f64| half.map_or(Json::Null, |half| number(mean + sign * half));
            cells.extend([
                (format!("{name}.low"), bound(-1.0)),
                (format!("{name}.high"), bound(1.0)),
                (name, number(mean)),
            ]);
            // The mean stands before its bounds.
            let at = cells.len();
            cells[at - 3..].rotate_right(1);
        }
        frame.push(cells);
    }
    frame
}

fn is_outcome(name: &str) -> bool {
    is_measured(name) && !OF_THE_COMPUTER.contains(&name)
}

/// The mean, and half the width of its interval; `None` for one value.
fn mean_and_half_width(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, None);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let quantile = StudentsT::new(0.0, 1.0, count - 1.0).ok().map(|t| t.inverse_cdf(UPPER_QUANTILE));
    (mean, quantile.map(|quantile| quantile * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three values 1, 2, 3: mean 2, deviation 1; t of two degrees of freedom is 4.302653 in tables of it.
    #[test]
    fn intervals_are_those_of_the_tables() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12);
        assert!((half.unwrap() - 4.302_653 / 3f64.sqrt()).abs() < 1e-5, "{half:?}");
        assert_eq!(mean_and_half_width(&[5.0]), (5.0, None));
    }

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
