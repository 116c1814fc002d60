//! Texts as values of keys.

use crate::problem::Problem;
use crate::value::{KeyType, Writing};
use crate::written::Written;

impl KeyType for String {
    const NAME: &'static str = "Text";
    const WRITING: Writing = Writing::AnyText;

    fn read(written: &Written) -> Result<String, Problem> {
        let problem = match written {
            // Lines of a file from Windows end as all others do.
            Written::Text(text) if text.contains("\r\n") => {
                return String::read(&Written::Text(text.replace("\r\n", "\n")));
            }
            // Reports print it: a terminal would act on it.
            Written::Text(text) => match text.chars().find(|c| c.is_control() && !['\n', '\t'].contains(c)) {
                None => return Ok(text.clone()),
                Some(control) => Problem::new(
                    "this text holds a control character",
                    format!("this one: {}", control.escape_unicode()),
                    "leave it out",
                ),
            },
            other => Problem::new(
                "this is not a text",
                format!("this is {}", other.describe()),
                "put it in quotes",
            ),
        };
        Err(problem)
    }

    fn show(&self) -> String {
        self.clone()
    }
}
