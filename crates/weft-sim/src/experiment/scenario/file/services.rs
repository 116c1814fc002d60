//! The part of a scenario file that says services and clients.
//!
//! ```toml
//! [[services]]            # a key-value store
//! name = "store"
//! on = "0-1"              # endpoints, one store at each: a key lives in that of its number, in turn
//! service_time = "2us"    # from when a thread takes a request until it answers
//! threads = 4             # requests that are served at a time, at each endpoint; 1 where not given
//! key = "16"              # bytes of a key in a request; 16 where not given
//! value = "1K"            # bytes of each value before the first put; where not given there is none
//!
//! [[clients]]             # closed loops
//! name = "readers"
//! role = "victim"
//! of = "store"
//! from = "2-15"           # endpoints, a client at each
//! window = 4              # requests that a client has under way; 1 where not given
//! gap = "1us"             # from an answer to the next request; 0 where not given
//! gets = 0.9              # the share of requests that are gets; all where not given
//! size = "1K"             # of values that are put, or distribution = "key-value"
//! keys = 1000             # how many there are; 1000 where not given
//! requests = 500          # of each client; as many as there is time for where not given
//! start = "10us"          # the first requests; stop = "1ms": none from there on
//! ```

use super::{Flows, Group, RawDistribution, RawSizes, Scenario};
use crate::experiment::ExperimentError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use toml::Spanned;
use weft_units::{Bytes, EndpointId, Span, Time};
use weft_workload::scenario::Sizes;
use weft_workload::services::key_value::{ClientPlan, KeyValue, StorePlan};

/// The largest key or value.
const MOST_BYTES: Bytes = Bytes::new(1 << 30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawService {
    name: Spanned<String>,
    on: Spanned<String>,
    service_time: Spanned<String>,
    threads: Option<Spanned<u64>>,
    key: Option<Spanned<String>>,
    value: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawClients {
    name: Spanned<String>,
    role: Option<Spanned<String>>,
    of: Spanned<String>,
    from: Spanned<String>,
    window: Option<Spanned<u64>>,
    gap: Option<Spanned<String>>,
    gets: Option<Spanned<f64>>,
    size: Option<Spanned<String>>,
    distribution: Option<Spanned<RawDistribution>>,
    keys: Option<Spanned<u64>>,
    requests: Option<Spanned<u64>>,
    start: Option<Spanned<String>>,
    stop: Option<Spanned<String>>,
}

/// A service: a store at each of its endpoints.
#[derive(Clone, Debug)]
pub(in super::super) struct ServiceGroup {
    pub(in super::super) group: Group,
    pub(in super::super) at: Vec<EndpointId>,
    pub(in super::super) plan: StorePlan,
}

/// Clients of a service, one at each of their endpoints.
#[derive(Clone, Debug)]
pub(in super::super) struct ClientGroup {
    pub(in super::super) group: Group,
    pub(in super::super) from: Vec<EndpointId>,
    pub(in super::super) plan: ClientPlan,
}

/// The part of each endpoint in the services of a scenario.
pub(in super::super) fn by_endpoint(scenario: &Scenario, seed: u64) -> BTreeMap<EndpointId, KeyValue> {
    let mut parts = BTreeMap::<EndpointId, KeyValue>::new();
    for (service, number) in scenario.services.iter().zip(0..) {
        for endpoint in &service.at {
            parts.entry(*endpoint).or_default().add_store(number);
        }
    }
    let clients = scenario.clients.iter().zip(0..);
    let clients =
        clients.flat_map(|(clients, number)| clients.from.iter().map(move |at| (at, number, clients)));
    for ((endpoint, number, clients), client) in clients.zip(0..) {
        parts.entry(*endpoint).or_default().add_client(
            number,
            &clients.plan,
            KeyValue::client_rng(seed, client),
        );
    }
    parts
}

impl Flows<'_> {
    pub(super) fn add_service(
        &self,
        raw: RawService,
        scenario: &mut Scenario,
    ) -> Result<(), ExperimentError> {
        let text = self.text;
        self.check_unused("services.name", &raw.name, scenario)?;
        let at = self.endpoints(&raw.on, "services.on")?;
        let others = scenario.services.iter().flat_map(|service| service.at.iter());
        let mut taken: BTreeSet<EndpointId> = others.copied().collect();
        if let Some(endpoint) = at.iter().find(|endpoint| !taken.insert(**endpoint)) {
            let what = format!("there are two stores at endpoint {}", endpoint.0);
            let mend = "name another endpoint: each has one store at most";
            return Err(text.refuse(&raw.on.span(), "services.on", &what, mend));
        }
        let service_time = text.read(&raw.service_time, ("services.service_time", "2us"))?;
        let threads = self.count(raw.threads.as_ref(), ("services.threads", 1), 1..=4096)?;
        let key = self.bytes(raw.key.as_ref(), "services.key")?.unwrap_or(Bytes::new(16));
        let value = self.bytes(raw.value.as_ref(), "services.value")?;
        let plan = StorePlan { service_time, threads: threads as u32, key, value };
        let group = Group { name: raw.name.into_inner(), role: "service".to_owned() };
        scenario.services.push(ServiceGroup { group, at, plan });
        Ok(())
    }

    pub(super) fn add_clients(
        &self,
        raw: RawClients,
        scenario: &mut Scenario,
    ) -> Result<(), ExperimentError> {
        let text = self.text;
        let role = self.role("clients.role", raw.role.as_ref())?;
        self.check_unused("clients.name", &raw.name, scenario)?;
        let service = scenario.services.iter().position(|service| service.group.name == *raw.of.get_ref());
        let Some(store) = service else {
            let what = format!("there is no service \"{}\"", raw.of.get_ref());
            let mend = "write the name of one of [[services]]";
            return Err(text.refuse(&raw.of.span(), "clients.of", &what, mend));
        };
        let from = self.endpoints(&raw.from, "clients.from")?;
        let most = KeyValue::MOST_SLOTS as u64;
        let window = self.count(raw.window.as_ref(), ("clients.window", 1), 1..=most - 1)?;
        let others = scenario.clients.iter().map(|clients| (&clients.from, u64::from(clients.plan.window)));
        let mut slots = BTreeMap::<EndpointId, u64>::new();
        for (endpoints, window) in others.chain([(&from, window)]) {
            endpoints.iter().for_each(|endpoint| *slots.entry(*endpoint).or_default() += window);
        }
        if let Some((endpoint, slots)) = slots.iter().find(|(_, slots)| **slots > most) {
            let what = format!("the clients of endpoint {} have windows of {slots} in all", endpoint.0);
            let mend = format!("make them smaller, or spread them: an endpoint has {most} at most");
            return Err(text.refuse(&raw.from.span(), "clients.window", &what, &mend));
        }
        let keys = self.count(raw.keys.as_ref(), ("clients.keys", 1000), 1..=KeyValue::MOST_KEYS.into())?;
        let gets = raw.gets.as_ref().map_or(1.0, |gets| *gets.get_ref());
        if let Some(given) = raw.gets.as_ref().filter(|_| !(0.0..=1.0).contains(&gets)) {
            let mend = "write a number from 0 to 1, such as 0.95";
            return Err(text.refuse(&given.span(), "clients.gets", "it is no share", mend));
        }
        let given = RawSizes { of: "clients", size: &raw.size, distribution: &raw.distribution };
        let sizes = match (gets < 1.0, &raw.size, &raw.distribution) {
            (false, None, None) => Sizes::Fixed(Bytes::ZERO),
            _ => self.sizes(given)?,
        };
        if sizes.largest() > MOST_BYTES {
            let at = raw.size.as_ref().map_or(self.at.clone(), Spanned::span);
            return Err(text.refuse(&at, "clients.size", "a value is too large", "write at most \"1G\""));
        }
        let times = [("clients.start", &raw.start), ("clients.stop", &raw.stop)];
        let (start, stop) = self.start_and_stop(times)?;
        let requests = self.not_zero(raw.requests.as_ref(), "clients.requests")?;
        let gap = match &raw.gap {
            Some(gap) => text.read(gap, ("clients.gap", "5us"))?,
            None => Span::ZERO,
        };
        let plan = ClientPlan {
            store: store as u32,
            at: scenario.services[store].at.clone(),
            window: window as u8,
            gap,
            requests,
            gets: (gets * 1e6).round() as u32,
            keys: keys as u32,
            sizes,
            start: Time::ZERO + start,
            stop: Time::ZERO + stop,
        };
        let group = Group { name: raw.name.into_inner(), role };
        scenario.clients.push(ClientGroup { group, from, plan });
        Ok(())
    }

    /// A count within bounds; `usual` where it is not given.
    fn count(
        &self,
        given: Option<&Spanned<u64>>,
        (field, usual): (&str, u64),
        bounds: RangeInclusive<u64>,
    ) -> Result<u64, ExperimentError> {
        let Some(given) = given else { return Ok(usual) };
        if bounds.contains(given.get_ref()) {
            return Ok(*given.get_ref());
        }
        let mend = format!("write a number from {} to {}", bounds.start(), bounds.end());
        Err(self.text.refuse(
            &given.span(),
            field,
            &format!("{} is too few or too many", given.get_ref()),
            &mend,
        ))
    }

    /// A size of a key or value, which is not zero.
    fn bytes(&self, given: Option<&Spanned<String>>, field: &str) -> Result<Option<Bytes>, ExperimentError> {
        let Some(given) = given else { return Ok(None) };
        let bytes: Bytes = self.text.read(given, (field, "1K"))?;
        if bytes == Bytes::ZERO || bytes > MOST_BYTES {
            let mend = "write 1 or more, and at most \"1G\"";
            return Err(self.text.refuse(&given.span(), field, "no key or value is that long", mend));
        }
        Ok(Some(bytes))
    }
}
