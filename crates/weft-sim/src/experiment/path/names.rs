//! Ranks, links, switches and blocks in words.

use super::split::ejects;
use crate::experiment::busiest::name_of_link;
use crate::experiment::ranks::hosts;
use std::collections::BTreeMap;
use weft_fabric::LinkEnd;
use weft_machine::{Fabric, Labels, Machine};
use weft_msg::Work;
use weft_nic::BlockKind;
use weft_topo::{Attachment, Layout, LinkClass, Topology};
use weft_units::{EndpointId, RankId};
use weft_workload::mapping::Hosts;
use weft_workload::path::{Leg, Location, Piece, PieceKind};
use weft_workload::replay::Seating;

/// The names of ranks, endpoints and links on a machine with programs.
pub(crate) struct Names<'a> {
    layout: &'a Layout,
    labels: &'a Labels,
    /// Whether links join an endpoint to all others.
    ideal: bool,
    /// The hosts whose endpoints ranks sit at.
    hosts: Hosts,
    seating: &'a Seating,
    programs: &'a [String],
}

impl<'a> Names<'a> {
    /// The names of a run. `programs`: what its programs are called, in their order.
    pub fn new(
        machine: &'a Machine,
        layout: &'a Layout,
        seating: &'a Seating,
        programs: &'a [String],
    ) -> Names<'a> {
        let ideal = matches!(machine.fabric, Fabric::Ideal(_));
        Names { layout, labels: &machine.labels, ideal, hosts: hosts(machine), seating, programs }
    }

    /// A rank: `rank 3 (M1QAF1)`, after its program's name where there are several.
    pub fn rank(&self, number: RankId) -> String {
        let endpoint = self.layout.endpoint_name(self.seating.endpoint(number));
        let (program, rank) = self.seating.program(number);
        match self.programs.get(program as usize) {
            Some(name) if self.programs.len() > 1 => format!("{name} rank {rank} ({endpoint})"),
            _ => format!("rank {rank} ({endpoint})"),
        }
    }

    /// The messages from one rank to another: `rank 3 → rank 5`, after their programs' names where there are
    /// several.
    pub fn flow(&self, from: RankId, to: RankId) -> String {
        let name = |number| {
            let (program, rank) = self.seating.program(number);
            match self.programs.get(program as usize) {
                Some(name) if self.programs.len() > 1 => format!("{name} rank {rank}"),
                _ => format!("rank {rank}"),
            }
        };
        format!("{} → {}", name(from), name(to))
    }

    /// Ranks of all programs.
    pub fn ranks(&self) -> u32 {
        self.seating.ranks()
    }

    /// The endpoint of a rank.
    pub fn endpoint(&self, rank: RankId) -> EndpointId {
        self.seating.endpoint(rank)
    }

    /// The endpoints of the ranks if hosts were filled in order, with as many ranks each as the fullest has;
    /// `None`: there are too few.
    pub fn in_order(&self) -> Option<Vec<EndpointId>> {
        let ranks = self.seating.ranks();
        let mut by_host: BTreeMap<u32, u32> = BTreeMap::new();
        for rank in (0..ranks).map(RankId) {
            *by_host.entry(self.endpoint(rank).0 / self.hosts.endpoints_per_host.max(1)).or_default() += 1;
        }
        let places = self.hosts.linear(ranks.into(), by_host.values().max().copied()).ok()?;
        Some(places.into_iter().map(|place| place.endpoint).collect())
    }

    /// The machine's switches and links.
    pub fn layout(&self) -> &Layout {
        self.layout
    }

    /// Whether links join an endpoint to all others.
    pub fn is_ideal(&self) -> bool {
        self.ideal
    }

    /// The activity that a piece of time is spent on, with the name of the part in the machine's documents.
    pub fn what(&self, piece: &Piece) -> String {
        let what = Names::activity(piece);
        match self.label(piece) {
            Some(label) => format!("{what} ({label})"),
            None => what,
        }
    }

    /// The machine's own name for the part that the time is spent in.
    fn label(&self, piece: &Piece) -> Option<&str> {
        let Labels { link, switch, buffer, send, receive } = self.labels;
        let label = match (piece.place, piece.kind) {
            (_, PieceKind::Block(_)) if self.leg(piece) == Leg::Host => return None,
            (_, PieceKind::Block(block)) if block.kind() == BlockKind::Buffer => buffer,
            (Location::Block(endpoint, _), PieceKind::Block(_) | PieceKind::Serialization) => {
                match piece.message {
                    Some(message) if message.source != endpoint => receive,
                    _ => send,
                }
            }
            (_, PieceKind::Switch) => switch,
            (_, PieceKind::Link | PieceKind::Waking | PieceKind::Serialization) => link,
            (_, PieceKind::Waiting | PieceKind::OutputBuffer) => buffer,
            _ => return None,
        };
        label.as_deref()
    }

    /// The activity that a piece of time is spent on.
    fn activity(piece: &Piece) -> String {
        if let (PieceKind::Software(work, _), Some(call)) = (piece.kind, piece.within) {
            // Of a real rank: the program's own call says more than the interface's.
            return format!("{} ({call})", work.name());
        }
        match piece.kind {
            PieceKind::Compute => "computation".to_owned(),
            PieceKind::Software(work, Some(call)) => format!("{} ({})", work.name(), call.name()),
            // Of a real rank: in no call, or in the calls of one wait.
            PieceKind::Software(work @ (Work::Poll | Work::ClockRead | Work::ProcessManager), None) => {
                work.name().to_owned()
            }
            PieceKind::Software(work, None) => format!("{} (background)", work.name()),
            PieceKind::Block(block) => block.name().to_owned(),
            PieceKind::WaitsFor(block) => block.waits_for().unwrap_or("waiting").to_owned(),
            PieceKind::Switch => "switch".to_owned(),
            PieceKind::Link => "link".to_owned(),
            PieceKind::Waking => "link wakes".to_owned(),
            PieceKind::Serialization => "serialization".to_owned(),
            PieceKind::Waiting => "waiting".to_owned(),
            PieceKind::OutputBuffer => "output buffer".to_owned(),
            PieceKind::LatePartner => "late partner".to_owned(),
            PieceKind::NotRecorded => "not recorded".to_owned(),
        }
    }

    /// The leg of its message's way.
    pub fn leg(&self, piece: &Piece) -> Leg {
        piece.leg(|from| ejects(self.layout, from))
    }

    /// The place at which it is spent.
    pub fn place(&self, piece: &Piece) -> String {
        match (piece.place, piece.kind) {
            (Location::Rank(rank), _) => self.rank(rank),
            (Location::Block(endpoint, block), what) => {
                let endpoint = self.layout.endpoint_name(endpoint);
                match what {
                    PieceKind::Block(_) | PieceKind::WaitsFor(_) => endpoint,
                    _ => format!("{} of {endpoint}", block.name()),
                }
            }
            // A packet in a switch is on its way to the link.
            (Location::Link(from, _), PieceKind::Switch) => self.link(from, None),
            (Location::Link(from, class), _) => self.link(from, Some(class)),
        }
    }

    /// A link by its beginning, with its class where that is to be told.
    pub fn link(&self, from: LinkEnd, class: Option<LinkClass>) -> String {
        let to = match from {
            LinkEnd::Endpoint(endpoint) if self.ideal => {
                return format!("endpoint {} → all", self.layout.endpoint_name(endpoint));
            }
            LinkEnd::Endpoint(endpoint) => {
                let (switch, port) = self.layout.attachment(endpoint);
                Attachment::Switch(switch, port)
            }
            LinkEnd::Port(switch, port) => self.layout.peer(switch, port),
        };
        let name = name_of_link(self.layout, from, to);
        let classes = self.layout.link_classes();
        match class.and_then(|class| classes.get(usize::from(class.0))) {
            Some(class) => format!("{name} ({class})"),
            None => name,
        }
    }
}
