//! Topologies, routing functions, the deadlock proof and a machine's figures.
//!
//! Everything here is pure: no time, no queues, no randomness of its own. A topology says what is
//! joined to what; a routing says which port and virtual channel a packet takes next. A [`Layout`] is a
//! topology with one of its routings:
//!
//! | folder | topology | routings | virtual channels |
//! |---|---|---|---|
//! | `torus` | [`Torus`] (and mesh) | [`DimensionOrder`], with or without datelines | 2 with rings, else 1 |
//! | `exanest` | [`Exanest`] | [`ExanestOrder`]: through F1 and its router, then X, Y, Z | 2 |
//! | `kary_tree` | [`KaryTree`] | [`UpDown`]: D-mod-k or random up | 1 |
//! | `tree` | [`Tree`] (and spine-leaf) | [`TreeUpDown`]: D-mod-k, random, ECMP, adaptive | 1 |
//! | `dragonfly` | [`Dragonfly`] | [`DragonflyRouting`]: minimal; Valiant, UGAL-L; PAR | 2; 3; 4 |
//! | `hyperx` | [`HyperX`] (hypercube, fully connected) | [`HyperXLayout`]: dimension order; UGAL-L | 1; 2 |
//! | `megafly` | [`Megafly`] (Dragonfly+) | [`MegaflyRouting`]: minimal; Valiant, UGAL-L, PAR | 1; 2 |
//! | `graph` | [`Graph`], from a file | [`GraphLayout`]: shortest; Valiant, UGAL-L | 1 and turns; twice |
//! | `slim_fly` | a [`Graph`] of diameter 2 | those of graphs | 2; 4 |
//! | `star` | [`Star`] | [`StarRouting`] | 1 |
//!
//! ```
//! use weft_topo::{Dragonfly, DragonflyMinimal, DragonflySize, GlobalLinks, figures, prove};
//!
//! let dragonfly = Dragonfly::new(DragonflySize { p: 3, a: 6, h: 3, g: 19 }, GlobalLinks::Palmtree)?;
//! let layout = DragonflyMinimal::new(dragonfly);
//! println!("{}", prove(&layout)?); // all turns raise the channel's rank
//! let figures = figures(&layout);
//! assert_eq!((figures.endpoints, figures.diameter), (342, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A topology is a folder: its graph, its routings, its keys in machine files ([`Family`]) and, where it has
//! them, its figures in closed form. To add one: the folder, and a line in `families.rs`. The parser and the
//! schema of machine files, the page of the book on them, and the tests of every topology are made of that
//! list. `examples/own_topology` is such a folder.

mod channel_plan;
mod choice;
mod dragonfly;
mod drawing;
mod exanest;
mod families;
mod family;
mod figures;
mod graph;
mod hyperx;
mod kary_tree;
mod layout;
mod megafly;
mod message_class;
mod multicast;
mod names;
mod path;
pub mod pattern;
mod proof;
mod reroute;
mod size;
mod slim_fly;
mod star;
mod torus;
mod traits;
mod tree;

pub use channel_plan::{ChannelPlan, LaneChoice, UnevenChannels, WithChannels};
pub use dragonfly::{
    Dragonfly, DragonflyLayout, DragonflyMinimal, DragonflyPar, DragonflyParameters, DragonflyRouting,
    DragonflySize, DragonflyValiant, GlobalLinks, Ugal,
};
pub use drawing::{Outline, Places, Point};
pub use exanest::{Exanest, ExanestOrder, ExanestParameters, ExanestPath, ExanestRouting};
pub use families::{Layout, TopologyParameters};
pub use family::{Counts, Family, FamilyKeys, RoutingWord};
pub use figures::{
    Bisection, ChannelLoad, ClassLinks, ClosedForms, Figures, Paths, PatternLoad, SourceClass,
    SourcesCounted, channel_load, count_links, figures, figures_with_progress,
};
pub use graph::{
    Built, Graph, GraphClass, GraphDescription, GraphEndpoint, GraphHop, GraphLayout, GraphLink,
    GraphParameters, GraphRouting, GraphSwitch, MAX_GRAPH_SWITCHES,
};
pub use hyperx::{
    FullyConnectedParameters, HyperX, HyperXLayout, HyperXParameters, HyperXRouting, HypercubeParameters,
    MAX_HYPERX_DIMENSIONS,
};
pub use kary_tree::{Ascent, KaryTree, KaryTreeParameters, UpDown};
pub use megafly::{Megafly, MegaflyLayout, MegaflyParameters, MegaflyRouting, MegaflySize};
pub use message_class::{ClassCycle, ClassProof, ClassUse, MessageClass, MessageClasses, prove_classes};
pub use multicast::{Branch, BranchEnd, MulticastTree, NotJoined, TreeError, TreeNode, TreeProof};
pub use names::UnknownEndpoint;
pub use path::idle_path;
pub use pattern::{Pattern, Permutation, Shape, Undefined};
pub use proof::{Channel, Cycle, Method, Proof, Ranked, prove};
pub use reroute::{Dead, LegalPorts, PacketAt, Rerouted, UpDownTables, Wiring};
pub use size::{MAX_ENDPOINTS, MAX_PORTS, MAX_SWITCHES, SizeError, counted};
pub use slim_fly::SlimFlyParameters;
pub use star::{Star, StarParameters, StarRouting, StarRoutingWord};
pub use torus::{
    Dimension, DimensionOrder, MAX_DIMENSIONS, MeshParameters, Torus, TorusParameters, TorusRouting,
};
pub use traits::{
    Address, AtSwitch, Attachment, LinkClass, LocalView, NextHop, RouteState, RoutedTopology, Routing,
    Topology,
};
pub use tree::{MAX_LEVELS, SpineLeafParameters, Tier, Tree, TreeParameters, TreeRouting, TreeUpDown};
#[doc(hidden)] // For `parameters!` and `routings!` in other crates.
pub use weft_keys;
#[doc(hidden)]
pub use weft_units::{EndpointId, PortId, SwitchId};
