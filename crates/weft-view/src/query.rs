//! Parameters of an address, such as `?result=0&run=2`.

use crate::api::Refusal;
use std::str::FromStr;

/// The parameters of an address.
pub struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// The path of an address, and its parameters.
    pub fn split(address: &'a str) -> (&'a str, Query<'a>) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        (path, Query(query))
    }

    /// A parameter as text.
    pub fn text(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.0.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// A parameter that may be left out.
    pub fn optional<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let parsed = text.parse().map_err(|_| Refusal::input(format!("{name}={text} cannot be read")));
        parsed.map(Some)
    }

    /// A parameter.
    pub fn required<T: FromStr>(&self, name: &str) -> Result<T, Refusal> {
        self.optional(name)?.ok_or_else(|| Refusal::input(format!("the parameter {name} is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let (path, query) = Query::split("api/path?from=M1+Q%41&to=%3Cb%3E&run=7&cut=%4&not=%zz");
        assert_eq!(path, "api/path");
        assert_eq!(query.text("from").unwrap(), "M1 QA");
        assert_eq!(query.text("to").unwrap(), "<b>");
        assert_eq!(query.text("cut").unwrap(), "%4");
        assert_eq!(query.text("not").unwrap(), "%zz");
        assert_eq!(query.required::<u32>("run").ok(), Some(7));
        assert!(query.required::<u32>("from").is_err() && query.required::<u32>("result").is_err());
        assert_eq!(query.optional::<u32>("result").ok(), Some(None));
    }
}
