//! A value as a file writes it.

/// A value without its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// A number with a point, or a whole number beyond 128 bits, as it stands there.
    Float(String),
    /// True or false.
    Boolean(bool),
    /// A date.
    Datetime,
    /// A list.
    List(Vec<Written>),
    /// Keys with values.
    Table,
}

impl Written {
    /// The kind of value, with its article.
    pub fn describe(&self) -> &'static str {
        match self {
            Written::Text(_) => "a text",
            Written::Integer(_) => "an integer",
            Written::Float(_) => "a decimal number",
            Written::Boolean(_) => "a truth value",
            Written::Datetime => "a date",
            Written::List(_) => "a list",
            Written::Table => "a table",
        }
    }
}
