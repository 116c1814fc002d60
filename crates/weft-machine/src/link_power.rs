//! `[links.NAME.power]`: power of a kind of link, and when it sleeps. What switches and interfaces take is in
//! [`part_power`](super::part_power).

use super::diagnostic::Placed;
use super::fabric::RawLink;
use super::read::{Entry, Reader, join, names, section};
use super::source::Location;
use weft_fabric::{LinkPower, OffParameters, SleepParameters};
use weft_keys::Problem;
use weft_units::{EnergyPerBit, Power, Span};

/// Above this a power is a slip of the unit.
pub(super) const MAX_POWER: Power = Power::from_uw(1_000_000_000_000);

/// Policies of power by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PolicyName {
    AlwaysOn,
    IdleTimeout,
    WakeOnInjection,
}

names!(PolicyName, "PowerPolicy", "a power policy", {
    AlwaysOn = "always-on",
    IdleTimeout = "idle-timeout",
    WakeOnInjection = "wake-on-injection",
});

section! {
    /// Power of one direction of a link, transmitter and receiver together.
    struct RawLinkPower {
        /// Power while it is active, and while it wakes.
        active: Option<Entry<Power>>,
        /// Energy on top of that, for each bit of packets and framing.
        per_bit: Option<Entry<EnergyPerBit>>,
        /// When it sleeps: `always-on`, never, which is usual; `idle-timeout`, after an idle time;
        /// `wake-on-injection`, the same, and a signal wakes the links of a packet's way ahead of it.
        policy: Option<Entry<PolicyName>>,
        /// Power while it sleeps.
        low: Option<Entry<Power>>,
        /// Idle time after which it sleeps.
        idle_after: Option<Entry<Span>>,
        /// From a packet's head at the sleeping line to the head on the line.
        wake: Option<Entry<Span>>,
        /// Power while it is off.
        off: Option<Entry<Power>>,
        /// Idle time after which it is off; never where not given.
        off_after: Option<Entry<Span>>,
        /// As `wake`, from off.
        wake_from_off: Option<Entry<Span>>,
        /// With `wake-on-injection`: logic of a switch, from the signal on one link to that on the next.
        signal_delay: Option<Entry<Span>>,
    }
}

/// The sections that say what links of a class take.
pub(super) struct PowerSections<'l> {
    /// Name of the class's section.
    pub class: &'l str,
    pub own: Option<&'l RawLink>,
    pub default: Option<&'l RawLink>,
}

impl<'l> PowerSections<'l> {
    fn pick<T>(&self, field: fn(&RawLinkPower) -> Option<&Entry<T>>) -> Option<&'l Entry<T>> {
        let of = |link: Option<&'l RawLink>| link.and_then(|link| link.power.as_ref()).and_then(field);
        of(self.own).or_else(|| of(self.default))
    }

    /// The section for what is missing.
    fn location(&self) -> Option<Location> {
        let of = |link: Option<&RawLink>| Some(link?.power.as_ref()?.location);
        of(self.own).or_else(|| of(self.default))
    }

    /// The power of the links. `None`: a problem was reported; of the inner: nothing is said of it.
    pub fn check(&self, reader: &mut Reader<'_>) -> Option<Option<LinkPower>> {
        let Some(location) = self.location() else { return Some(None) };
        let active = self.needed("active", |power| power.active.as_ref(), location, reader);
        let policy = self.pick(|power| power.policy.as_ref());
        let per_bit = self.pick(|power| power.per_bit.as_ref()).map_or(EnergyPerBit::ZERO, |e| e.value);
        let sleep = match policy.map_or(PolicyName::AlwaysOn, |policy| policy.value) {
            PolicyName::AlwaysOn => self.check_unused(policy, reader).map(|()| None),
            PolicyName::IdleTimeout => self.check_timeout(active, location, reader).map(Some),
            PolicyName::WakeOnInjection => self.check_injection(active, location, reader).map(Some),
        };
        let active = active?;
        if active.value > MAX_POWER {
            let title = format!("a link does not take {}", active.value);
            report(active.location, Problem::new(title, "too much", "write 1.5W or 300mW"), reader);
            return None;
        }
        Some(Some(LinkPower { active: active.value, per_bit, sleep: sleep? }))
    }

    fn needed<T>(
        &self,
        key: &str,
        field: fn(&RawLinkPower) -> Option<&Entry<T>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<&'l Entry<T>> {
        let entry = self.pick(field);
        if entry.is_none() {
            let class = self.class;
            let title = format!("the power of links of class `{class}` has no `{key}`");
            let help = format!("add `{key}` to [links.{class}.power] or to [links.default.power]");
            report(location, Problem::new(title, "", help), reader);
        }
        entry
    }

    /// Refuses the keys of links that sleep. `None`: there are some.
    fn check_unused(&self, policy: Option<&Entry<PolicyName>>, reader: &mut Reader<'_>) -> Option<()> {
        let low = self.pick(|power| power.low.as_ref()).map(|entry| entry.location);
        let off = self.pick(|power| power.off.as_ref()).map(|entry| entry.location);
        let idle_after = self.pick(|power| power.idle_after.as_ref()).map(|entry| entry.location);
        let off_after = self.pick(|power| power.off_after.as_ref()).map(|entry| entry.location);
        let wake = self.pick(|power| power.wake.as_ref()).map(|entry| entry.location);
        let wake_from_off = self.pick(|power| power.wake_from_off.as_ref()).map(|entry| entry.location);
        let signal_delay = self.pick(|power| power.signal_delay.as_ref()).map(|entry| entry.location);
        let is_set = policy.is_some_and(|policy| policy.location.is_set());
        let mut is_good = Some(());
        for (key, location) in [
            ("low", low),
            ("off", off),
            ("idle_after", idle_after),
            ("off_after", off_after),
            ("wake", wake),
            ("wake_from_off", wake_from_off),
            ("signal_delay", signal_delay),
        ] {
            let Some(location) = location else { continue };
            // Left behind in the file while a `--set` tries another policy.
            if is_set && !location.is_set() {
                for section in [self.class, "default"] {
                    reader.forget(&join(&format!("links.{section}.power"), key));
                }
                continue;
            }
            let title = format!("`power.{key}` means nothing for links that never sleep");
            let help = "remove it, or write policy = \"idle-timeout\" beside it";
            report(location, Problem::new(title, "not used", help), reader);
            is_good = None;
        }
        is_good
    }

    fn check_timeout(
        &self,
        active: Option<&Entry<Power>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<SleepParameters> {
        if let Some(delay) = self.pick(|power| power.signal_delay.as_ref()) {
            let title = "`power.signal_delay` means nothing for links that wait for packets";
            let help = "remove it, or write policy = \"wake-on-injection\" beside it";
            report(delay.location, Problem::new(title, "not used", help), reader);
            return None;
        }
        self.check_sleep(active, location, reader)
    }

    fn check_injection(
        &self,
        active: Option<&Entry<Power>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<SleepParameters> {
        let delay = self.needed("signal_delay", |power| power.signal_delay.as_ref(), location, reader);
        let sleep = self.check_sleep(active, location, reader);
        Some(SleepParameters { signal: Some(delay?.value), ..sleep? })
    }

    fn check_sleep(
        &self,
        active: Option<&Entry<Power>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<SleepParameters> {
        let low = self.needed("low", |power| power.low.as_ref(), location, reader);
        let idle_after = self.needed("idle_after", |power| power.idle_after.as_ref(), location, reader);
        let wake = self.needed("wake", |power| power.wake.as_ref(), location, reader);
        let (active, low, idle_after, wake) = (active?, low?, idle_after?, wake?);
        not_above((low, "low"), (active, "active"), reader)?;
        let off_after = self.pick(|power| power.off_after.as_ref());
        let off = self.pick(|power| power.off.as_ref());
        let wake_from_off = self.pick(|power| power.wake_from_off.as_ref());
        let off = match (off_after, off, wake_from_off) {
            (None, None, None) => None,
            (Some(off_after), Some(off), Some(wake_from_off)) => {
                not_above((off, "off"), (low, "low"), reader)?;
                not_above((wake, "wake"), (wake_from_off, "wake_from_off"), reader)?;
                if off_after.value <= idle_after.value {
                    let title = format!("links are off after {}, before they sleep", off_after.value);
                    let label = format!("`power.idle_after` is {}", idle_after.value);
                    let help = "let off_after be longer than idle_after";
                    report(off_after.location, Problem::new(title, label, help), reader);
                    return None;
                }
                let (power, off_after, wake) = (off.value, off_after.value, wake_from_off.value);
                Some(OffParameters { power, off_after, wake })
            }
            (off_after, off, wake_from_off) => {
                let any = off_after.or(wake_from_off).map(|entry| entry.location);
                let any = any.or(off.map(|entry| entry.location)).unwrap_or(location);
                let title = "`power.off`, `power.off_after` and `power.wake_from_off` go together";
                report(any, Problem::new(title, "not all are there", "write all three, or none"), reader);
                return None;
            }
        };
        let (low, idle_after, wake) = (low.value, idle_after.value, wake.value);
        Some(SleepParameters { low, idle_after, wake, off, signal: None })
    }
}

/// Refuses a value above another. `None`: it is.
fn not_above<T: Ord + std::fmt::Display>(
    (entry, key): (&Entry<T>, &str),
    (most, most_key): (&Entry<T>, &str),
    reader: &mut Reader<'_>,
) -> Option<()> {
    if entry.value <= most.value {
        return Some(());
    }
    let title = format!("`power.{key}` of {} is above `power.{most_key}`, {}", entry.value, most.value);
    let help = format!("write at most {}", most.value);
    report(entry.location, Problem::new(title, "too much", help), reader);
    None
}

/// Reports a problem, once where several classes have it from the default's section.
fn report(location: Location, problem: Problem, reader: &mut Reader<'_>) {
    let diagnostic = problem.at(location, reader.sources);
    if !reader.diagnostics.contains(&diagnostic) {
        reader.diagnostics.push(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fabric, load};
    use weft_fabric::LinkPower;
    use weft_units::{Power, Span};

    const SLEEPS: [&str; 5] = [
        "links.default.power.active=2W",
        "links.default.power.policy=idle-timeout",
        "links.default.power.low=200mW",
        "links.default.power.idle_after=1us",
        "links.default.power.wake=3us",
    ];

    fn power(sets: &[&str], class: &str) -> Option<LinkPower> {
        let machine = load("bxi3-fattree", sets).unwrap();
        let Fabric::Packet { links, .. } = machine.fabric else { panic!("a packet network") };
        links[class].layer.power
    }

    /// Catches keys that come to the wrong place, a class that does not have what the default says, and one
    /// whose own key does not win.
    #[test]
    fn keys_are_those_of_the_class_or_the_default() {
        assert_eq!(power(&[], "endpoint"), None);
        let own = [&SLEEPS[..], &["links.endpoint.power.active=3W"]].concat();
        let (endpoint, level) = (power(&own, "endpoint").unwrap(), power(&own, "tree").unwrap());
        assert_eq!((endpoint.active, level.active), (Power::from_uw(3_000_000), Power::from_uw(2_000_000)));
        assert_eq!(endpoint.sleep, level.sleep);
        let sleep = level.sleep.unwrap();
        assert_eq!((sleep.low, sleep.idle_after), (Power::from_uw(200_000), Span::from_us(1)));
        assert_eq!((sleep.wake, sleep.off, sleep.signal), (Span::from_us(3), None, None));
        let policy = "links.default.power.policy=wake-on-injection";
        let ahead = [&SLEEPS[..], &[policy, "links.default.power.signal_delay=50ns"]].concat();
        let signal = power(&ahead, "tree").unwrap().sleep.unwrap().signal;
        assert_eq!(signal, Some(Span::from_ns(50)));
    }

    /// Catches keys that contradict each other and pass, and an error without a mend or told for every class.
    #[test]
    fn what_contradicts_is_refused_with_a_mend() {
        let cases: [(&[&str], &str, &str); 10] = [
            (&["links.default.power.signal_delay=9ns"], "wait for packets", "wake-on-injection"),
            (&["links.default.power.policy=wake-on-injection"], "no `signal_delay`", "add `signal_delay`"),
            (&["links.default.power.low=3W"], "above `power.active`, 2W", "at most 2W"),
            (&["links.default.power.active=1MW"], "not a power", "write 1mW"),
            (&["links.default.power.policy=naps"], "not a power policy", "always-on, idle-timeout"),
            (&["links.default.power.policy=always-on"], "means nothing", "idle-timeout"),
            (&["links.default.power.off=1mW"], "go together", "all three"),
            (
                &[
                    "links.default.power.off=1W",
                    "links.default.power.off_after=9us",
                    "links.default.power.wake_from_off=9us",
                ],
                "above `power.low`, 200mW",
                "at most 200mW",
            ),
            (
                &[
                    "links.default.power.off=1mW",
                    "links.default.power.off_after=1us",
                    "links.default.power.wake_from_off=9us",
                ],
                "before they sleep",
                "longer than idle_after",
            ),
            (
                &[
                    "links.default.power.off=1mW",
                    "links.default.power.off_after=9us",
                    "links.default.power.wake_from_off=1us",
                ],
                "above `power.wake_from_off`",
                "at most 1us",
            ),
        ];
        for (sets, title, help) in cases {
            let sets = [&SLEEPS[..], sets].concat();
            let error = load("bxi3-fattree", &sets).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(title) && text.contains(help), "{sets:?}: {text}");
        }
        let lacking = load("bxi3-fattree", &["links.default.power.wake=3us"]).unwrap_err().to_string();
        assert!(lacking.contains("has no `active`") && lacking.contains("means nothing"), "{lacking}");
        assert_eq!(lacking.matches("means nothing").count(), 1, "{lacking}");
    }
}
