//! Small programs, and their replay on an ideal network.

use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation};
use weft_fabric::Ideal;
use weft_fabric::parameters::IdealParameters;
use weft_formats::{Trace, TraceHeader, TraceWriter};
use weft_msg::Protocol;
use weft_nic::{NicParameters, OverheadsNic, OverheadsParameters};
use weft_trace::op::*;
use weft_units::{BitRate, Bytes, RankId, Span, Time};
use weft_workload::mapping::Hosts;
use weft_workload::replay::*;

pub fn compute(us: u64) -> Op {
    Op::Compute { span: Span::from_us(us) }
}

pub fn send(to: u32, tag: i32, bytes: u64, request: u32) -> Op {
    let (to, bytes, request) = (RankId(to), Bytes::new(bytes), RequestId(request));
    Op::Isend { to, tag, comm: CommId::WORLD, bytes, mode: SendMode::Standard, request, buffer: None }
}

/// A send in another mode.
pub fn in_mode(other: SendMode, mut send: Op) -> Op {
    if let Op::Isend { mode, .. } = &mut send {
        *mode = other;
    }
    send
}

pub fn receive(from: u32, tag: i32, bytes: u64, request: u32) -> Op {
    let (from, tag, bytes, request) = (Some(RankId(from)), Some(tag), Bytes::new(bytes), RequestId(request));
    Op::Irecv { from, tag, comm: CommId::WORLD, bytes, matched: None, request, buffer: None }
}

pub fn wait(request: u32) -> Op {
    Op::Wait { request: RequestId(request) }
}

/// Waits for requests 0 and 1.
pub fn both() -> Op {
    Op::Waitall { requests: vec![RequestId(0), RequestId(1)] }
}

pub fn collective(kind: Collective, bytes: u64) -> Op {
    let bytes = Bytes::new(bytes);
    let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 8, ..CollectiveSizes::default() };
    Op::Collective {
        kind,
        comm: CommId::WORLD,
        root: None,
        sizes,
        request: None,
        buffers: Default::default(),
    }
}

/// The trace of some ranks, in memory.
pub fn trace_of(ranks: &[Vec<Op>]) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.weft");
    let header = TraceHeader { ranks: ranks.len() as u32, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(&path, header).unwrap();
    for (rank, ops) in ranks.iter().enumerate() {
        writer.begin_rank(RankId::from(rank)).unwrap();
        ops.iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
    Trace::from_bytes("test.weft", std::fs::read(path).unwrap()).unwrap()
}

/// An ideal network and what is on it.
pub struct Setup {
    pub ideal: IdealParameters,
    pub simple: OverheadsParameters,
    pub protocol: Protocol,
    pub progress: ProgressRule,
    /// Ranks per endpoint.
    pub per_host: u32,
    pub timeline: bool,
    pub cores: Option<CoreSpeed>,
}

impl Setup {
    /// Nothing costs anything.
    pub fn zero(progress: ProgressRule) -> Setup {
        let none = Span::ZERO;
        Setup {
            ideal: IdealParameters { latency: none, gap: none, rate: None },
            simple: OverheadsParameters { channels: 4, ..OverheadsParameters::free(Bytes::new(256)) },
            protocol: Protocol::zero(),
            progress,
            per_host: 1,
            timeline: false,
            cores: None,
        }
    }

    /// Everything costs something, and nothing a round number.
    pub fn costly(progress: ProgressRule) -> Setup {
        let zero = Setup::zero(progress);
        let ns = Span::from_ns;
        Setup {
            ideal: IdealParameters {
                latency: ns(1_003),
                gap: ns(17),
                rate: Some(BitRate::from_gigabits(16)),
            },
            simple: OverheadsParameters {
                send_message: ns(31),
                send_write: ns(31),
                message_gap: ns(13),
                send_packet: ns(7),
                receive_packet: ns(5),
                receive_message: ns(41),
                ..zero.simple
            },
            protocol: Protocol {
                send_call: ns(113),
                receive_call: ns(71),
                wait_call: ns(53),
                collective_call: ns(29),
                receive_message: ns(97),
                control_send: ns(61),
                control_receive: ns(59),
                data_send: ns(67),
                matching_entry: ns(3),
                eager_limit: Bytes::new(300),
                eager_buffered: false,
                eager_header: Bytes::new(24),
                control_bytes: Bytes::new(16),
                ..zero.protocol
            },
            ..zero
        }
    }

    /// Runs recorded programs. With `reload`, the run is saved and resumed once per such period.
    pub fn run(&self, programs: &[Trace], reload: Option<Span>) -> Outcome {
        let operations: Vec<Operations> = programs.iter().map(|trace| trace.source().into()).collect();
        self.run_all(&operations, reload)
    }

    /// Runs programs.
    pub fn run_all(&self, programs: &[Operations], reload: Option<Span>) -> Outcome {
        let ranks: u32 = programs.iter().map(Operations::ranks).sum();
        let endpoints = ranks.div_ceil(self.per_host);
        let hosts = Hosts { hosts: endpoints, cores: self.per_host, endpoints_per_host: 1 };
        let build = || {
            let mut places = hosts.linear(ranks.into(), None).unwrap().into_iter();
            let programs = programs
                .iter()
                .map(|operations| Program {
                    operations: operations.clone(),
                    places: places.by_ref().take(operations.ranks() as usize).collect(),
                })
                .collect();
            let mut parameters = ReplayParameters::new(programs, self.protocol.clone(), self.progress);
            parameters.wanted.timeline = self.timeline;
            parameters.cores = self.cores;
            parameters.wanted.messages = true;
            parameters.report_clocks = true;
            let mut nics = parameters.hosts(endpoints).into_iter().map(OverheadsNic::new);
            let shared = NicParameters { interface: self.simple, host: parameters };
            Ideal::build(self.ideal, endpoints, shared, |_, _| nics.next().unwrap())
        };
        let mut simulation = Simulation::new(build(), 1);
        let never = AtomicBool::new(false);
        let mut outcome = Outcome::default();
        let mut until = Time::ZERO;
        loop {
            until = reload.map_or(Time::NEVER, |period| until + period);
            let progress = simulation.run_until(until, &never);
            for output in simulation.outputs_mut() {
                let output = std::mem::take(output);
                outcome.messages.extend(output.messages);
                outcome.timeline.extend(output.timeline);
                outcome.clocks.extend(output.clocks);
                outcome.faults.extend(output.faults);
            }
            if progress == Progress::Dry {
                break;
            }
            let saved = simulation.save().unwrap();
            simulation = Simulation::resume(build(), &saved, 1).unwrap();
        }
        let sites: Vec<_> = simulation.sites().collect();
        for (_, nic) in sites.iter().flat_map(|(_, site)| site.interfaces()) {
            outcome.ranks.extend(nic.host.ranks());
            outcome.blocked.extend(nic.host.blocked().map(|(_, blocked)| blocked.to_string()));
        }
        outcome.messages.sort_by_key(|m| (m.delivered, m.source, m.number));
        outcome
    }
}

#[derive(Default)]
pub struct Outcome {
    pub ranks: Vec<RankReport>,
    pub blocked: Vec<String>,
    pub messages: Vec<ReplayedMessage>,
    pub timeline: Vec<TimelineEvent>,
    pub faults: Vec<RankFailure>,
    pub clocks: Vec<ClockReading>,
}

impl Outcome {
    /// Panics unless all ranks have done all their operations.
    pub fn assert_finished(&self) {
        assert!(self.faults.is_empty(), "{:?}", self.faults);
        assert!(self.ranks.iter().all(|rank| rank.finished), "{:#?}", self.blocked);
    }

    /// The end of the last rank.
    pub fn run_time(&self) -> Span {
        self.ranks.iter().map(|rank| rank.end).max().unwrap() - Time::ZERO
    }
}
