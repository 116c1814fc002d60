//! `[links.NAME.power]`: power of a kind of link, and when it sleeps. What switches and interfaces take is in
//! [`part_power`](super::part_power).

use super::diagnostic::Placed;
use super::fabric::RawLink;
use super::read::{Entry, Reader, join, section_of_keys};
use super::source::Location;
use weft_fabric::{LinkPower, LinkPowerKeys, MAX_POWER, OffParameters, PowerPolicy, SleepParameters};
use weft_keys::Problem;
use weft_units::{EnergyPerBit, Power};

section_of_keys! {
    /// Power of one direction of a link, transmitter and receiver together.
    struct RawLinkPower {
        keys {
            keys: LinkPowerKeys,
        }
    }
}

/// The sections that say what links of a class take.
pub(super) struct PowerSections<'l> {
    /// Name of the class's section.
    pub class: &'l str,
    pub own: Option<&'l RawLink>,
    pub default: Option<&'l RawLink>,
    /// Whether messages are fluids.
    pub of_fluids: bool,
}

/// The keys of links that sleep, with `policy`.
const SLEEP_KEYS: [&str; 8] =
    ["policy", "low", "off", "idle_after", "off_after", "wake", "wake_from_off", "signal_delay"];

impl<'l> PowerSections<'l> {
    fn pick<T>(&self, key: &str, field: fn(&LinkPowerKeys) -> Option<T>) -> Option<Entry<T>> {
        let of = |link: Option<&RawLink>| {
            let power = link?.power.as_ref()?;
            Some(Entry { value: field(power.keys.as_ref()?)?, location: power.locations.of(key) })
        };
        of(self.own).or_else(|| of(self.default))
    }

    /// The section for what is missing.
    fn location(&self) -> Option<Location> {
        let of = |link: Option<&RawLink>| Some(link?.power.as_ref()?.locations.section);
        of(self.own).or_else(|| of(self.default))
    }

    /// The power of the links. `None`: a problem was reported; of the inner: nothing is said of it.
    pub fn check(&self, reader: &mut Reader<'_>) -> Option<Option<LinkPower>> {
        let Some(location) = self.location() else { return Some(None) };
        let active = self.needed("active", |keys| keys.active, location, reader);
        let policy = self.pick("policy", |keys| keys.policy);
        let per_bit = self.pick("per_bit", |keys| keys.per_bit).map_or(EnergyPerBit::ZERO, |e| e.value);
        let sleep = match policy.map_or(PowerPolicy::AlwaysOn, |policy| policy.value) {
            PowerPolicy::AlwaysOn => self.check_unused(policy, reader).map(|()| None),
            PowerPolicy::IdleTimeout => self.check_timeout(active, location, reader).map(Some),
            PowerPolicy::WakeOnInjection => self.check_injection(active, location, reader).map(Some),
        };
        let sleep = if self.of_fluids { sleep.and_then(|_| self.keep_awake(policy, reader)) } else { sleep };
        let active = active?;
        if active.value > MAX_POWER {
            let title = format!("a link does not take {}", active.value);
            report(active.location, Problem::new(title, "too much", "write 1.5W or 300mW"), reader);
            return None;
        }
        Some(Some(LinkPower { active: active.value, per_bit, sleep: sleep? }))
    }

    /// Links of fluids never sleep: refuses a `--set` that asks for it, and drops what the file has of it.
    fn keep_awake(
        &self,
        policy: Option<Entry<PowerPolicy>>,
        reader: &mut Reader<'_>,
    ) -> Option<Option<SleepParameters>> {
        let is_asked =
            |policy: &Entry<PowerPolicy>| policy.location.is_set() && policy.value != PowerPolicy::AlwaysOn;
        if let Some(policy) = policy.filter(is_asked) {
            let title = "fluids wake no links, so that these never sleep";
            let help = "write fabric.kind = \"packet\", or policy = \"always-on\"";
            report(policy.location, Problem::new(title, "not with flows", help), reader);
            return None;
        }
        for section in [self.class, "default"] {
            let path = format!("links.{section}.power");
            SLEEP_KEYS.iter().for_each(|key| {
                reader.forget(&join(&path, key));
            });
        }
        Some(None)
    }

    fn needed<T>(
        &self,
        key: &str,
        field: fn(&LinkPowerKeys) -> Option<T>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<Entry<T>> {
        let entry = self.pick(key, field);
        if entry.is_none() {
            let class = self.class;
            let title = format!("the power of links of class `{class}` has no `{key}`");
            let help = format!("add `{key}` to [links.{class}.power] or to [links.default.power]");
            report(location, Problem::new(title, "", help), reader);
        }
        entry
    }

    /// Refuses the keys of links that sleep. `None`: there are some.
    fn check_unused(&self, policy: Option<Entry<PowerPolicy>>, reader: &mut Reader<'_>) -> Option<()> {
        let low = self.pick("low", |keys| keys.low).map(|entry| entry.location);
        let off = self.pick("off", |keys| keys.off).map(|entry| entry.location);
        let idle_after = self.pick("idle_after", |keys| keys.idle_after).map(|entry| entry.location);
        let off_after = self.pick("off_after", |keys| keys.off_after).map(|entry| entry.location);
        let wake = self.pick("wake", |keys| keys.wake).map(|entry| entry.location);
        let wake_from_off = self.pick("wake_from_off", |keys| keys.wake_from_off).map(|entry| entry.location);
        let signal_delay = self.pick("signal_delay", |keys| keys.signal_delay).map(|entry| entry.location);
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
        active: Option<Entry<Power>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<SleepParameters> {
        if let Some(delay) = self.pick("signal_delay", |keys| keys.signal_delay) {
            let title = "`power.signal_delay` means nothing for links that wait for packets";
            let help = "remove it, or write policy = \"wake-on-injection\" beside it";
            report(delay.location, Problem::new(title, "not used", help), reader);
            return None;
        }
        self.check_sleep(active, location, reader)
    }

    fn check_injection(
        &self,
        active: Option<Entry<Power>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<SleepParameters> {
        let delay = self.needed("signal_delay", |keys| keys.signal_delay, location, reader);
        let sleep = self.check_sleep(active, location, reader);
        Some(SleepParameters { signal: Some(delay?.value), ..sleep? })
    }

    fn check_sleep(
        &self,
        active: Option<Entry<Power>>,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<SleepParameters> {
        let low = self.needed("low", |keys| keys.low, location, reader);
        let idle_after = self.needed("idle_after", |keys| keys.idle_after, location, reader);
        let wake = self.needed("wake", |keys| keys.wake, location, reader);
        let (active, low, idle_after, wake) = (active?, low?, idle_after?, wake?);
        not_above((&low, "low"), (&active, "active"), reader)?;
        let off_after = self.pick("off_after", |keys| keys.off_after);
        let off = self.pick("off", |keys| keys.off);
        let wake_from_off = self.pick("wake_from_off", |keys| keys.wake_from_off);
        let off = match (off_after, off, wake_from_off) {
            (None, None, None) => None,
            (Some(off_after), Some(off), Some(wake_from_off)) => {
                not_above((&off, "off"), (&low, "low"), reader)?;
                not_above((&wake, "wake"), (&wake_from_off, "wake_from_off"), reader)?;
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
