//! A value of a parameter, as TOML has it.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use toml::de::DeValue;

/// A value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A truth value: an option with or without its word.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A decimal number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
}

impl Value {
    /// Reads a value; the error is what was found.
    pub(crate) fn read(value: &DeValue<'_>) -> Result<Value, &'static str> {
        Ok(match value {
            DeValue::Boolean(truth) => Value::Boolean(*truth),
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(integer) => {
                let whole = i64::from_str_radix(integer.as_str(), integer.radix());
                Value::Integer(whole.map_err(|_| "a number beyond 64 bits")?)
            }
            DeValue::Float(float) => {
                let number: f64 = float.as_str().parse().map_err(|_| "a number that cannot be read")?;
                if !number.is_finite() {
                    return Err("a number without an end");
                }
                Value::Number(number)
            }
            DeValue::Array(items) => {
                let values = items.iter().map(|item| Value::read(item.get_ref()));
                Value::List(values.collect::<Result<_, _>>()?)
            }
            DeValue::Datetime(_) => return Err("a date"),
            DeValue::Table(_) => return Err("a table"),
        })
    }

    /// The word that an option takes: lists are joined by commas.
    pub fn word(&self) -> String {
        match self {
            Value::List(values) => values.iter().map(Value::word).collect::<Vec<_>>().join(","),
            Value::Number(number) => format!("{number:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            Value::Text(text) => text.clone(),
        }
    }

    /// The text that `--set` takes: lists keep their brackets.
    pub fn set(&self) -> String {
        match self {
            Value::List(values) => {
                format!("[{}]", values.iter().map(Value::set_item).collect::<Vec<_>>().join(","))
            }
            other => other.word(),
        }
    }

    /// The text within a list of `--set`, where texts have quotation marks.
    fn set_item(&self) -> String {
        match self {
            Value::Text(text) => format!("{text:?}"),
            other => other.set(),
        }
    }

    /// The words that it stands for, where several may follow each other: the list's, or its own.
    pub fn words(&self) -> Vec<String> {
        match self {
            Value::List(values) => values.iter().map(Value::word).collect(),
            other => vec![other.word()],
        }
    }
}

/// A value of the file with its place.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) at: Range<usize>,
}
