//! Costs in cycles of a clock that another key gives: the options `cycles_of` and `time_of` of
//! [`keys!`](crate::keys!).

use crate::given::{Given, GivenKeys};
use crate::key::Key;
use crate::problem::Problem;
use crate::quantity::Cost;
use weft_units::{Clock, Span};

/// A type that whole cycles of a clock give.
#[doc(hidden)]
pub trait OfCycles {
    fn of_cycles(cycles: u32, clock: &Clock) -> Self;
}

impl OfCycles for u32 {
    fn of_cycles(cycles: u32, _: &Clock) -> u32 {
        cycles
    }
}

impl OfCycles for Span {
    fn of_cycles(cycles: u32, clock: &Clock) -> Span {
        clock.cycles(cycles.into())
    }
}

/// A cost in whole cycles of the clock at a path.
#[doc(hidden)]
pub fn cycles_of<T: OfCycles>(given: &impl GivenKeys, cost: Given<Cost>, path: &'static str) -> Given<T> {
    match (cost, given.other(path)) {
        (Given::Value(cost), Given::Value(clock)) => Given::Value(T::of_cycles(cost.cycles(&clock), &clock)),
        (Given::Absent, _) => Given::Absent,
        _ => Given::Wrong,
    }
}

/// A cost as a time, where cycles are those of the clock at a path.
#[doc(hidden)]
pub fn time_of(
    given: &mut impl GivenKeys,
    key: &'static Key,
    cost: Given<Cost>,
    path: &'static str,
) -> Given<Span> {
    match (cost, given.other(path)) {
        (Given::Value(Cost::Time(span)), _) => Given::Value(span),
        (Given::Value(cost), Given::Value(clock)) => Given::Value(cost.time(&clock)),
        (Given::Value(_), Given::Absent) => {
            let (section, clock) = path.rsplit_once('.').unwrap_or(("", path));
            let help = format!("add `{clock} = \"150MHz\"` to [{section}], or write a time");
            given.report(key.name, Problem::new("`{}` counts cycles of no clock", "which clock?", help));
            Given::Wrong
        }
        (Given::Absent, _) => Given::Absent,
        _ => Given::Wrong,
    }
}
