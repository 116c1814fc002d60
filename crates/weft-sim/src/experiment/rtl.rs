//! RTL of the interface in step with a run, or in the place of the model's blocks.

use super::ExperimentError;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use weft_machine::{Fabric, Machine, Nic};
use weft_nic::data;
use weft_nic::edge_form::{EdgeBlockSource, PortUse};
use weft_nic::ports::{Arrival, Crossing, PortEvent, SmallPayload};
use weft_rtl::{
    BlockName, Counts, LockStep, RtlError, RtlInPlace, RtlLibrary, WaveWindow, WavesError, WrittenWaves,
    check_packet_words,
};
use weft_topo::{Layout, Topology};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Payloads that are kept, for packets that come again.
const MOST_PAYLOADS: usize = 1 << 14;

/// The RTL that runs in step with the model.
#[derive(Clone, Debug, Default)]
pub struct RtlOptions {
    /// Names of blocks.
    pub blocks: Vec<String>,
    /// Names of the endpoints whose blocks they are; empty: all.
    pub at: Vec<String>,
    /// Whether the RTL decides in the place of the model's blocks.
    pub drive: bool,
    /// The waves of the first run; `None`: none are written.
    pub waves: Option<WavesOptions>,
    /// The packets that the runs of these options have compared.
    pub tally: RtlTally,
}

/// The packets that runs have compared: those of options and of their clones.
#[derive(Clone, Debug, Default)]
pub struct RtlTally(Arc<Mutex<Tallied>>);

#[derive(Debug, Default)]
struct Tallied {
    /// Counts over all endpoints, and the endpoints with packets, by block.
    blocks: BTreeMap<BlockName, (Counts, BTreeSet<EndpointId>)>,
    /// The names of the endpoints that were asked for.
    at: BTreeMap<EndpointId, String>,
    /// The reason why there are no waves, though they were asked for.
    no_waves: Option<Arc<WavesError>>,
}

/// Packets of a block that were compared: none of its outputs was another than the model's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlockCompared {
    /// The block.
    pub block: &'static str,
    /// Endpoints where it has taken or sent packets.
    pub endpoints: usize,
    /// Packets that it has taken from the network.
    pub packets_taken: u64,
    /// Packets that the network has taken from it.
    pub packets_sent: u64,
    /// Cycles that it was stepped, over all endpoints.
    pub cycles: u64,
}

impl RtlTally {
    /// Adds what a run has compared.
    fn add(&self, lock_step: &LockStep, at: impl Iterator<Item = (EndpointId, String)>) {
        let mut tallied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tallied.at.extend(at);
        for (endpoint, block, counts) in lock_step.counts() {
            let (of_block, endpoints) = tallied.blocks.entry(block).or_default();
            of_block.add(counts);
            if counts.packets() > 0 {
                endpoints.insert(endpoint);
            }
        }
    }

    /// The packets of these blocks that were compared.
    pub fn compared(&self, blocks: &[String]) -> Vec<BlockCompared> {
        let tallied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<BlockName> = blocks.iter().filter_map(|name| name.parse().ok()).collect();
        let compared = known.into_iter().map(|block| {
            let (counts, endpoints) = tallied.blocks.get(&block).cloned().unwrap_or_default();
            let Counts { cycles, taken, sent } = counts;
            BlockCompared {
                block: block.name(),
                endpoints: endpoints.len(),
                packets_taken: taken,
                packets_sent: sent,
                cycles,
            }
        });
        compared.collect()
    }

    /// Waves that were asked for are not written, for this reason.
    fn lacks_waves(&self, why: WavesError) {
        let mut tallied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tallied.no_waves.get_or_insert(Arc::new(why));
    }

    /// The reason why waves that were asked for are not written, if they are not.
    pub fn no_waves(&self) -> Option<Arc<WavesError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).no_waves.clone()
    }

    /// The endpoints that were asked for, and where no block has had a packet.
    pub fn idle(&self) -> Vec<String> {
        let tallied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = |endpoint| tallied.blocks.values().any(|(_, endpoints)| endpoints.contains(endpoint));
        let idle = tallied.at.iter().filter(|(endpoint, _)| !is_busy(endpoint));
        idle.map(|(_, name)| name.clone()).collect()
    }
}

/// The waves of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WavesOptions {
    /// The file.
    pub file: PathBuf,
    /// Virtual time from which on they are written; `None`: from the beginning.
    pub from: Option<Span>,
    /// Virtual time up to which they are written; `None`: to the end.
    pub to: Option<Span>,
}

/// The RTL of a run, and the names of its endpoints.
pub(crate) struct RtlOfRun {
    lock_step: LockStep,
    in_place: Option<Arc<dyn EdgeBlockSource>>,
    payloads: CarriedBytes,
    layout: Layout,
    at: BTreeSet<EndpointId>,
    tally: RtlTally,
    difference: Option<String>,
}

/// Bytes of small messages, for the RTL.
enum CarriedBytes {
    /// Those of a run with real bytes from this seed on.
    OfSeed(u64),
    /// Those that hosts have reported, by source and number, and these in their order.
    Reported(BTreeMap<(EndpointId, u32), SmallPayload>, VecDeque<(EndpointId, u32)>),
}

/// RTL was asked for of a run that goes on from where it was saved.
#[derive(Debug, thiserror::Error)]
#[error("--rtl: what the RTL holds is not saved; run from the beginning, without --save-every and --resume")]
pub(crate) struct NoRtlOfSaved;

impl RtlOptions {
    /// The RTL of a run of this number, whose messages carry real bytes from a seed on, if they do.
    pub(crate) fn begin(
        &self,
        machine: &Machine,
        layout: &Layout,
        run: u32,
        data: Option<u64>,
    ) -> Result<RtlOfRun, ExperimentError> {
        let blocks = self.blocks.iter().map(|name| name.parse::<BlockName>());
        let blocks = blocks.collect::<Result<BTreeSet<_>, _>>().map_err(ExperimentError::input)?;
        let parameters = match &machine.nic {
            Nic::Exanet(nic) => nic.parameters(0),
            Nic::Carvnet(nic) => nic.parameters(0),
            _ => {
                let block = blocks.first().map_or("such block", |block| block.name());
                return Err(ExperimentError::input(RtlError::NoBlock(block)));
            }
        };
        if machine.flows || matches!(machine.fabric, Fabric::Ideal { .. }) {
            return Err(ExperimentError::input(
                "--rtl: blocks of the interface take packets word by word, and this network has none; take \
                 packets with --set fabric.kind=packet",
            ));
        }
        let format = &machine.packet;
        check_packet_words(format.header, format.footer).map_err(ExperimentError::input)?;
        let at = self.at.iter().map(|name| layout.endpoint(name)).collect::<Result<BTreeSet<_>, _>>();
        let asked = at.map_err(ExperimentError::input)?;
        let at = Some(asked.clone()).filter(|at| !at.is_empty());
        let library = RtlLibrary::find().map_err(ExperimentError::input)?;
        let lock_step = LockStep::new(&library, &blocks, &parameters, at.clone());
        let mut lock_step = lock_step.map_err(ExperimentError::input)?;
        let in_place: Option<Arc<dyn EdgeBlockSource>> = match self.drive {
            true => {
                let in_place = RtlInPlace::new(&library, &blocks, &parameters, at);
                Some(Arc::new(in_place.map_err(ExperimentError::input)?))
            }
            false => None,
        };
        if let (0, Some(WavesOptions { file, from, to })) = (run, &self.waves) {
            let time = |span: &Option<Span>, otherwise| span.map_or(otherwise, |span| Time::ZERO + span);
            let window = WaveWindow { from: time(from, Time::ZERO), to: time(to, Time::NEVER) };
            lock_step.write_waves(file, window).map_err(ExperimentError::input)?;
        }
        let payloads = CarriedBytes::new(data);
        let (layout, tally) = (layout.clone(), self.tally.clone());
        Ok(RtlOfRun { lock_step, in_place, payloads, layout, at: asked, tally, difference: None })
    }
}

impl RtlOfRun {
    /// The use of the ports of its blocks.
    pub(crate) fn ports(&self) -> PortUse {
        PortUse { reported: true, in_place: self.in_place.clone() }
    }

    /// Takes the bytes of a small message that a host sends, or is about to.
    pub(crate) fn take_payload(&mut self, message: (EndpointId, u32), payload: SmallPayload) {
        self.payloads.keep(message, payload);
    }

    /// Takes what has crossed ports up to `now`, and steps the RTL, unless the user asks the run to end.
    pub(crate) fn take(
        &mut self,
        events: Vec<PortEvent>,
        now: Time,
        interrupt: &AtomicBool,
    ) -> Result<(), ExperimentError> {
        let name = |endpoint: EndpointId| self.layout.endpoint_name(endpoint);
        for mut event in events {
            self.payloads.fill(&mut event);
            self.lock_step.take(&event, name).map_err(ExperimentError::input)?;
        }
        if self.lock_step.advance(now, interrupt).is_some() {
            self.close(now);
        }
        Ok(())
    }

    /// Steps the RTL to the end of a run in which nothing is under way any more at `now`.
    pub(crate) fn finish(&mut self, now: Time) {
        self.lock_step.finish(now);
        self.close(now);
    }

    /// Ends a run that is over at `now`: tells the first difference, and ends the waves, which have it. The
    /// results are whole where the waves are not.
    pub(crate) fn close(&mut self, now: Time) {
        let name = |endpoint: EndpointId| self.layout.endpoint_name(endpoint);
        let closed = self.lock_step.close(now);
        let Some(difference) = self.lock_step.difference() else {
            if let Err(error) = closed {
                self.tally.lacks_waves(error);
            }
            return;
        };
        let endpoint = name(difference.endpoint);
        let waves = match closed {
            Ok(Some(WrittenWaves { file, edges: (first, last) })) => {
                format!("; {} has its waves from edge {first} to {last}", file.display())
            }
            Ok(None) => "; with --waves FILE the same run writes its waves".to_owned(),
            Err(error) => format!("; {error}"),
        };
        self.difference.get_or_insert(difference.tell(&endpoint) + &waves);
    }

    /// The first difference, in words.
    pub(crate) fn difference(&self) -> Option<&str> {
        self.difference.as_deref()
    }
}

impl Drop for RtlOfRun {
    /// However the run has ended.
    fn drop(&mut self) {
        let name = |endpoint: &EndpointId| (*endpoint, self.layout.endpoint_name(*endpoint));
        self.tally.add(&self.lock_step, self.at.iter().map(name));
    }
}

impl CarriedBytes {
    fn new(data: Option<u64>) -> CarriedBytes {
        data.map_or_else(|| CarriedBytes::Reported(BTreeMap::new(), VecDeque::new()), CarriedBytes::OfSeed)
    }

    fn keep(&mut self, message: (EndpointId, u32), payload: SmallPayload) {
        let CarriedBytes::Reported(payloads, order) = self else { return };
        if payloads.insert(message, payload).is_none() {
            order.push_back(message);
        }
        if order.len() > MOST_PAYLOADS
            && let Some(oldest) = order.pop_front()
        {
            payloads.remove(&oldest);
        }
    }

    fn of(&self, message: (EndpointId, u32), bytes: Bytes) -> Option<SmallPayload> {
        match self {
            CarriedBytes::OfSeed(seed) => {
                let mut payload = [0; 64];
                let carried = data::message_bytes(*seed, message.0, message.1, bytes);
                payload.iter_mut().zip(carried).for_each(|(byte, carried)| *byte = carried);
                Some(payload)
            }
            CarriedBytes::Reported(payloads, _) => payloads.get(&message).copied(),
        }
    }

    /// Gives a message its bytes.
    fn fill(&self, event: &mut PortEvent) {
        match &mut event.what {
            Crossing::Stored { parcel, .. } => {
                parcel.payload = self.of((event.endpoint, parcel.parcel.message), parcel.parcel.bytes);
            }
            Crossing::Waits(packet) | Crossing::Arrived(Arrival { packet, .. }) => {
                packet.payload = self.of((packet.from, packet.message), packet.bytes);
            }
            _ => {}
        }
    }
}
