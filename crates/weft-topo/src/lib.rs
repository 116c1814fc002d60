//! Topologies, routing functions, the deadlock proof and a machine's figures.
//!
//! Everything here is pure: no time, no queues, no randomness of its own. A topology says what is
//! joined to what; a routing says which port and virtual channel a packet takes next. A [`Layout`] is one
//! of the supported pairs:
//!
//! | topology | routing | virtual channels |
//! |---|---|---|
//! | [`Torus`] (and mesh) | [`DimensionOrder`], with or without datelines | 2 with rings, else 1 |
//! | [`Exanest`] | [`ExanestOrder`]: through F1 and its router, then X, Y, Z | 2 |
//! | [`KaryTree`] | [`UpDown`]: D-mod-k or random up | 1 |
//! | [`Dragonfly`] | [`DragonflyMinimal`] | 2 |
//! | [`Dragonfly`] | [`Ugal`]: UGAL-L | 3 |
//! | [`Star`] | [`StarRouting`] | 1 |
//!
//! ```
//! use weft_topo::{Dragonfly, DragonflyMinimal, GlobalLinks, Layout, figures, prove};
//!
//! let dragonfly = Dragonfly::new(3, 6, 3, 19, GlobalLinks::Palmtree)?;
//! let layout = Layout::DragonflyMinimal(DragonflyMinimal::new(dragonfly));
//! println!("{}", prove(&layout)?); // all turns raise the channel's rank
//! let figures = figures(&layout);
//! assert_eq!((figures.endpoints, figures.diameter), (342, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To add a topology or a routing: one file that implements [`Topology`], or [`Routing`] and [`Ranked`],
//! one file of its closed forms under `figures`, and one line each in `layout.rs`' enum and macro.

mod dimension_order;
mod dragonfly;
mod dragonfly_minimal;
mod exanest;
mod exanest_order;
mod figures;
mod kary_tree;
mod layout;
mod message_class;
mod names;
mod path;
pub mod pattern;
mod proof;
mod size;
mod star;
mod torus;
mod traits;
mod ugal;
mod up_down;

pub use dimension_order::DimensionOrder;
pub use dragonfly::{Dragonfly, GlobalLinks};
pub use dragonfly_minimal::DragonflyMinimal;
pub use exanest::{Exanest, ExanestPath};
pub use exanest_order::ExanestOrder;
pub use figures::{Bisection, ChannelLoad, ClassLinks, Figures, Paths, PatternLoad, channel_load, figures};
pub use kary_tree::KaryTree;
pub use layout::Layout;
pub use message_class::{ClassCycle, ClassProof, ClassUse, MessageClass, MessageClasses, prove_classes};
pub use names::UnknownEndpoint;
pub use path::idle_path;
pub use pattern::{Pattern, Permutation, Shape, Undefined};
pub use proof::{Channel, Cycle, Method, Proof, Ranked, prove};
pub use size::{MAX_ENDPOINTS, MAX_PORTS, MAX_SWITCHES, SizeError};
pub use star::{Star, StarRouting};
pub use torus::{Dimension, MAX_DIMENSIONS, Torus};
pub use traits::{Address, Attachment, LinkClass, Position, RouteState, Routing, Step, Topology, View};
pub use ugal::Ugal;
pub use up_down::{Ascent, UpDown};
