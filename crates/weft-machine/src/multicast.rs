//! `[[multicast]]`: groups of endpoints to which switches copy packets.

use super::read::Reader;
use super::row::{Row, RowValue};
use super::table::Locations;
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_keys::{KeyType, Problem, Writing, Written};

weft_keys::keys! {
    /// A multicast group. Whether its members exist is for whoever has the layout.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct GroupRule {
        /// The group's name, by which patterns and messages call it.
        name: String;
        /// The members, as in `["0:15", "20"]`: endpoints, `first:last` for all from one to another, or
        /// `all`.
        members: Vec<String>, read_as(MemberList);
        /// The member that sends; any may where not given.
        root: Option<String>;
    }
}

/// A list of endpoints.
struct MemberList(Vec<String>);

impl KeyType for MemberList {
    const NAME: &'static str = "MemberList";
    const WRITING: Writing = Writing::Texts { least: 1, most: None };

    fn read(written: &Written) -> Result<MemberList, Problem> {
        let no_list = |label: &str| {
            let help =
                "write members = [\"0:15\", \"20\"]: names of endpoints, from one to another, or \"all\"";
            Problem::new("this is no list of endpoints", label, help)
        };
        match written {
            Written::List(list) if !list.is_empty() => {
                list.iter().map(String::read).collect::<Result<_, _>>().map(MemberList)
            }
            Written::List(_) => Err(no_list("it is empty")),
            other => Err(no_list(other.describe())),
        }
    }

    fn show(&self) -> String {
        self.0.join(", ")
    }
}

impl From<MemberList> for Vec<String> {
    fn from(MemberList(members): MemberList) -> Vec<String> {
        members
    }
}

impl RowValue for GroupRule {
    type Keys = GroupRule;
    const NAME: &'static str = "GroupRule";
    const MEANING: &'static str = "Endpoints to which switches copy packets.";

    fn of(keys: GroupRule, _: &Locations, _: &mut Reader<'_>) -> Option<GroupRule> {
        Some(keys)
    }
}

/// Checks that no two groups have the same name.
pub(super) fn check(rules: Vec<Row<GroupRule>>, reader: &mut Reader<'_>) -> Option<Vec<GroupRule>> {
    for (place, Row { value: rule, location }) in rules.iter().enumerate() {
        if rules[..place].iter().any(|before| before.value.name == rule.name) {
            let what = format!("multicast: two groups are called `{}`", rule.name);
            reader.report(*location, Problem::new(what, "", "give each group a name of its own"));
            return None;
        }
    }
    Some(rules.into_iter().map(|row| row.value).collect())
}

impl fmt::Display for GroupRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupRule { name, members, root } = self;
        write!(f, "{name}: {}", members.join(", "))?;
        root.as_ref().map_or(Ok(()), |root| write!(f, "; {root} sends"))
    }
}
