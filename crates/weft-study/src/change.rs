//! The difference between a study file and what was measured by it before.

use crate::point::Point;
use std::collections::BTreeSet;

/// Values of a parameter that a sentence names.
const VALUES_SHOWN: usize = 4;

/// The properties that tell points apart. Files that they name are not among them: a changed one runs again.
fn causes(point: &Point) -> (&str, BTreeSet<(&str, String)>) {
    let parameters = point.parameters.iter().map(|(name, value)| (name.as_str(), value.set()));
    (command(point), parameters.collect())
}

fn command(point: &Point) -> &str {
    point.words.first().map_or("", String::as_str)
}

/// The values of a parameter in their order, each once; empty where no point has it.
fn values(points: &[Point], name: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for (_, value) in points.iter().flat_map(|point| &point.parameters).filter(|(of, _)| of == name) {
        let value = value.set();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn list(values: &[String]) -> String {
    let shown = values.iter().take(VALUES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if values.len() > VALUES_SHOWN { format!("{shown}, …") } else { shown }
}

/// The first thing that keeps points of `before` from being among those of `now`; `None`: all of them are,
/// with others or without.
pub(crate) fn lost(before: &[Point], now: &[Point]) -> Option<String> {
    let kept: BTreeSet<_> = now.iter().map(causes).collect();
    let gone = before.iter().filter(|point| !kept.contains(&causes(point))).count();
    if gone == 0 {
        return None;
    }
    if let (Some(one), Some(other)) = (before.first().map(command), now.first().map(command))
        && one != other
    {
        return Some(format!("its command was {one}, and is {other}"));
    }
    let names = before.iter().chain(now).flat_map(|point| &point.parameters).map(|(name, _)| name);
    let mut seen = BTreeSet::new();
    for name in names.filter(|name| seen.insert(name.as_str())) {
        let (had, has) = (values(before, name), values(now, name));
        match (had.as_slice(), has.as_slice()) {
            ([], has) => return Some(format!("`{name}` is new, with {}", list(has))),
            (had, []) => return Some(format!("`{name}` was {}, and is not given any more", list(had))),
            (had, _) if had.iter().any(|value| !has.contains(value)) => {
                return Some(format!("`{name}` was {}, and is {}", list(had), list(&has)));
            }
            _ => {}
        }
    }
    Some(format!("it lacks {gone} of the {} points that it had", before.len()))
}
