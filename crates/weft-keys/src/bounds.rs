//! Bounds of values: the options `within` and `not_zero` of [`keys!`](crate::keys!).

use crate::given::{Given, GivenKeys};
use crate::key::Key;
use crate::problem::Problem;
use crate::value::KeyType;
use std::ops::RangeInclusive;

/// A value with bounds.
#[doc(hidden)]
pub trait Bounded {
    type Bound: KeyType + PartialOrd;
    fn bounded(&self) -> Option<&Self::Bound>;
}

impl<T: KeyType + PartialOrd> Bounded for T {
    type Bound = T;

    fn bounded(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T: KeyType + PartialOrd> Bounded for Option<T> {
    type Bound = T;

    fn bounded(&self) -> Option<&T> {
        self.as_ref()
    }
}

/// The value, if it lies from `least` to `most`.
#[doc(hidden)]
pub fn within<B: Bounded>(
    given: &mut impl GivenKeys,
    key: &'static Key,
    value: Given<B>,
    bounds: &RangeInclusive<B::Bound>,
) -> Given<B> {
    let Given::Value(bounded) = &value else { return value };
    let Some(inner) = bounded.bounded().filter(|inner| !bounds.contains(inner)) else { return value };
    let (shown, least, most) = (inner.show(), bounds.start().show(), bounds.end().show());
    let is_zero = inner.magnitude().is_some_and(|magnitude| magnitude.amount == 0);
    let problem = if inner < bounds.start() && is_zero {
        Problem::new("`{}` is zero", "too small", format!("write {least} or more"))
    } else if inner < bounds.start() {
        let (label, help) = (format!("less than {least}"), format!("write {least} or more"));
        Problem::new(format!("`{{}}` of {shown} is too small"), label, help)
    } else {
        Problem::new(format!("`{{}}` of {shown} is impossible"), "too large", format!("write at most {most}"))
    };
    given.report(key.name, problem);
    Given::Wrong
}

/// The value, if it is not zero.
#[doc(hidden)]
pub fn not_zero<B: Bounded>(
    given: &mut impl GivenKeys,
    key: &'static Key,
    value: Given<B>,
    example: &str,
) -> Given<B> {
    let Given::Value(bounded) = &value else { return value };
    let magnitude = bounded.bounded().and_then(KeyType::magnitude);
    if magnitude.is_none_or(|magnitude| magnitude.amount > 0) {
        return value;
    }
    let help = format!("write more than zero, such as {example}");
    given.report(key.name, Problem::new("`{}` is zero", "too small", help));
    Given::Wrong
}
