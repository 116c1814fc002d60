//! The offer at a point of the curve: pattern, and the gaps between messages.
//!
//! ```text
//!  mean gap = time of the message on its endpoint's link / load
//!  load of capacity = share × channel-load bound of the pattern
//! ```

use super::{LoadOf, TrafficRequest};
use crate::experiment::load::Load;
use crate::experiment::{ExperimentError, machine::relative_rates};
use weft_assembly::{self as assembly, ExactTime};
use weft_engine::Stream;
use weft_fabric::parameters::IdealParameters;
use weft_machine::{Fabric, Machine};
use weft_topo::{Layout, Topology, channel_load};
use weft_units::{Bytes, EndpointId, Span};
use weft_workload::arrival::{Arrival, Periodic, Poisson};
use weft_workload::pattern::{Pattern, PatternKind, Settings, TrafficGroup};

/// Keys the random streams of patterns.
const PURPOSE_PATTERN: u32 = 3;

/// The longest time that is simulated, 2⁶² ps: sums of two stay below the end of time.
pub(super) const LONGEST_PS: u64 = 1 << 62;

/// The pattern of a seed on a machine.
pub(super) fn pattern(
    request: &TrafficRequest,
    (machine, layout): (&Machine, &Layout),
    seed: u64,
) -> Result<Pattern, ExperimentError> {
    let kind: PatternKind = request.pattern.parse().map_err(ExperimentError::input)?;
    let mut rng = Stream::new(seed, 0, PURPOSE_PATTERN);
    let mut settings = Settings::default();
    if kind == PatternKind::Multicast {
        if machine.flows {
            return Err(ExperimentError::input(
                "pattern multicast: switches copy packets, and fabric.kind = flow has none; set \
                 fabric.kind=packet, or choose another pattern",
            ));
        }
        if !machine.nic.model().multicasts() {
            return Err(ExperimentError::input(
                "pattern multicast: the interface of this machine sends to one endpoint at a time (TR-488 \
                 has no multicast); set nic.model=overheads, or choose another pattern",
            ));
        }
        let groups = assembly::machine_groups(machine, layout).map_err(ExperimentError::input)?;
        let of_traffic = groups.into_iter().zip(0..).map(|(group, number)| TrafficGroup {
            number,
            members: group.members.all().to_vec(),
            root: group.root,
        });
        settings.groups = of_traffic.collect();
    }
    Pattern::new(kind, layout, &settings, &mut || rng.next_u64()).map_err(ExperimentError::input)
}

/// The traffic that endpoints offer at one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offered {
    /// Payload of a message.
    pub bytes: Bytes,
    /// The load as asked for.
    pub load: Load,
    /// How long a message takes on its endpoint's link.
    pub message_time: ExactTime,
    /// The share of the link's rate that a load of 1 means, in billionths.
    pub full_load: u64,
    /// Messages that each endpoint has at once, if not a load.
    pub messages: Option<u64>,
    /// The mean time between messages of an endpoint; `None`: it sends none.
    gap: Option<(u64, u64)>,
    /// Messages that are delivered for one of each sender, where switches copy them; `None`: as many.
    deliveries: Option<u64>,
}

const BILLION: u64 = 1_000_000_000;

impl Offered {
    pub(super) fn new(
        request: &TrafficRequest,
        (machine, layout): (&Machine, &Layout),
        bytes: Bytes,
        load: Load,
    ) -> Result<Offered, ExperimentError> {
        let message_time = match machine.fabric {
            Fabric::Ideal(parameters) => ideal_message_time(machine, &parameters, bytes)?,
            Fabric::Packet { .. } => {
                let links = assembly::links(machine, layout).unwrap_or_default();
                // Class 0 is that of the links to endpoints on every topology.
                let endpoint =
                    links.first().ok_or_else(|| ExperimentError::input("the machine has no links"))?;
                assembly::message_time(machine, endpoint, bytes)
            }
        };
        let full_load = match request.load_of {
            LoadOf::Injection => BILLION,
            LoadOf::Capacity => capacity(request, machine, layout, bytes)?,
        };
        let too_long = || {
            ExperimentError::input(format!(
                "--size {bytes} at load {load}: a message takes longer than weft can count; write a smaller \
                 size"
            ))
        };
        let messages = request.messages.map(u64::from);
        if let Some(messages) = messages
            && all_of(messages, message_time).is_none()
        {
            return Err(ExperimentError::input(format!(
                "--messages {messages} of {bytes} take longer than weft can count; write fewer or smaller \
                 ones"
            )));
        }
        let mut gap = None;
        if load > Load::from_millionths(0) {
            let shared = message_time
                .divided_by(load.millionths().into(), 1_000_000)
                .and_then(|time| time.divided_by(full_load, BILLION));
            gap = Some(shared.and_then(narrowed).ok_or_else(too_long)?);
        }
        Ok(Offered { bytes, load, message_time, full_load, messages, gap, deliveries: None })
    }

    /// The same under a pattern, whose messages may be copied.
    pub(super) fn under(self, pattern: &Pattern) -> Offered {
        Offered { deliveries: pattern.deliveries(), ..self }
    }

    /// Messages that are delivered for one of each of so many senders.
    pub(super) fn deliveries(&self, senders: u32) -> u64 {
        self.deliveries.unwrap_or_else(|| senders.into())
    }

    /// The arrivals of an endpoint.
    pub(super) fn arrival(&self) -> Arrival {
        match self.gap {
            _ if self.messages.is_some() => Arrival::AtOnce,
            Some((numerator, denominator)) => Arrival::Poisson(
                Poisson::new(numerator, denominator).expect("gaps are positive where there is a load"),
            ),
            // The first message would come at the end of time.
            None => Arrival::Periodic(Periodic::new(u64::MAX, 1).expect("this is a positive time")),
        }
    }

    /// How long the messages of an endpoint that has them at once take on its link, rounded up; `None`: it
    /// has a load.
    pub(super) fn burst(&self) -> Option<Span> {
        self.messages.and_then(|messages| all_of(messages, self.message_time))
    }

    /// Messages that an endpoint offers in so many picoseconds, for estimates.
    pub(super) fn messages_in(&self, ps: f64) -> f64 {
        if let Some(messages) = self.messages {
            return messages as f64;
        }
        self.gap.map_or(0.0, |(numerator, denominator)| ps * denominator as f64 / numerator as f64)
    }

    /// Those that its link sends in so many picoseconds, at most.
    pub(super) fn messages_sent_in(&self, ps: f64) -> f64 {
        self.messages_in(ps).min(ps / self.message_time.as_ps_f64())
    }

    /// The load that `bytes` delivered within `ps` from `senders` endpoints are, in the unit of the offered
    /// load.
    pub(super) fn accepted(&self, bytes: Bytes, ps: u64, senders: u32) -> f64 {
        let deliveries = self.deliveries(senders).max(1) as f64;
        let per_endpoint = bytes.get() as f64 / self.bytes.get() as f64 / deliveries;
        let of_injection = per_endpoint * self.message_time.as_ps_f64() / ps as f64;
        of_injection * BILLION as f64 / self.full_load as f64
    }
}

/// How long so many messages take, rounded up; `None`: longer than is simulated.
fn all_of(messages: u64, message_time: ExactTime) -> Option<Span> {
    let ExactTime { numerator, denominator } = message_time;
    let ps = numerator.checked_mul(u128::from(messages))?.div_ceil(denominator);
    u64::try_from(ps).ok().filter(|&ps| ps < LONGEST_PS / 4).map(Span::from_ps)
}

/// A time in 64 bits, its last bits cut off where they are too many; `None`: too long.
fn narrowed(time: ExactTime) -> Option<(u64, u64)> {
    let ExactTime { mut numerator, mut denominator } = time;
    while numerator.max(denominator) > u128::from(u64::MAX) {
        (numerator, denominator) = (numerator >> 1, denominator >> 1);
    }
    let (numerator, denominator) = (numerator as u64, denominator as u64);
    (numerator > 0 && denominator > 0 && numerator / denominator < LONGEST_PS)
        .then_some((numerator, denominator))
}

/// On the ideal network packets leave at its rate, and no faster than its gap allows.
fn ideal_message_time(
    machine: &Machine,
    parameters: &IdealParameters,
    bytes: Bytes,
) -> Result<ExactTime, ExperimentError> {
    const PS_PER_SECOND: u128 = 1_000_000_000_000;
    let payload = machine.packet.payload;
    let bits = parameters.rate.map_or(1, |rate| u128::from(rate.bits_per_second()));
    let gap = u128::from(parameters.gap.as_ps()) * bits;
    let packet = |bytes: u64| {
        let line = if parameters.rate.is_some() { u128::from(bytes) * 8 * PS_PER_SECOND } else { 0 };
        line.max(gap)
    };
    let whole = u128::from(bytes.get() / payload.get());
    let rest = bytes.get() % payload.get();
    let last = if rest > 0 { packet(rest) } else { 0 };
    let numerator = packet(payload.get()).saturating_mul(whole).saturating_add(last);
    if numerator == 0 {
        return Err(ExperimentError::input(
            "ideal.rate: an interface that sends without end and without a gap has no load; set a rate, such \
             as --set ideal.rate=100Gb/s",
        ));
    }
    Ok(ExactTime { numerator, denominator: bits })
}

/// The channel-load bound of the pattern in billionths of the endpoint link's rate.
fn capacity(
    request: &TrafficRequest,
    machine: &Machine,
    layout: &Layout,
    bytes: Bytes,
) -> Result<u64, ExperimentError> {
    if matches!(machine.fabric, Fabric::Ideal(_)) {
        return Ok(BILLION);
    }
    let kind: PatternKind = request.pattern.parse().map_err(ExperimentError::input)?;
    let bounded = kind.bound().ok_or_else(|| {
        ExperimentError::input(format!(
            "--load-of capacity: the channel-load bound of {kind} is not known; write --load-of injection"
        ))
    })?;
    let load = channel_load(layout, bounded).map_err(ExperimentError::input)?;
    let bound = load.bound(&relative_rates(machine, layout, bytes));
    Ok(((bound * BILLION as f64).round() as u64).max(1))
}

/// Endpoints that the pattern lets send.
pub(super) fn senders(pattern: &Pattern, layout: &Layout) -> u32 {
    (0..layout.endpoints()).filter(|&endpoint| pattern.sends(EndpointId(endpoint))).count() as u32
}

/// Links that a packet of the pattern crosses on average in an idle network, from a sample of sources.
pub(super) fn mean_hops(pattern: &Pattern, layout: &Layout) -> f64 {
    const SAMPLE: u32 = 256;
    let mut rng = Stream::new(0, 1, PURPOSE_PATTERN);
    let endpoints = layout.endpoints();
    let step = (endpoints / SAMPLE).max(1);
    let (mut hops, mut packets) = (0u64, 0u64);
    for (number, source) in (0..endpoints).step_by(step as usize).map(EndpointId).enumerate() {
        if pattern.sends(source) {
            let to = pattern.destination(source, number as u64, &mut || rng.next_u64());
            hops += 1;
            packets += 1;
            if let Some(deliveries) = pattern.deliveries() {
                // About a link into each switch and to each member.
                hops += 2 * deliveries / u64::from(senders(pattern, layout).max(1));
                continue;
            }
            weft_topo::idle_path(layout, source, to, |_, _| hops += 1);
        }
    }
    hops as f64 / packets.max(1) as f64
}
