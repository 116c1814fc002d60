//! `[[multicast]]`: groups of endpoints to which switches copy packets.

use super::read::Reader;
use super::row::{Row, RowValue};
use super::table::Locations;
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_keys::Problem;

weft_keys::keys! {
    /// A multicast group. Whether its members exist is for whoever has the layout.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct GroupRule {
        /// The group's name, by which patterns and messages call it.
        name: String;
        /// The members, as in `["0:15", "20"]`: endpoints, `first:last` for all from one to another, or
        /// `all`.
        members: Vec<String>;
        /// The member that sends; any may where not given.
        root: Option<String>;
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
