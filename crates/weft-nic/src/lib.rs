//! Network interfaces: what stands between a host and the fabric.
//!
//! A [`Host`] is whatever uses an interface: a rank, a traffic source. The interface cuts its messages
//! into packets, and hands over those of others when they have arrived whole.
//!
//! There are several models behind one trait, [`Nic`]: each is a [`NicBoard`] in the [`NicShell`] that all
//! share. [`OverheadsNic`] has overheads, [`PortalsNic`] the transport of BXI machines as well.
//! [`ApenetxNic`] is the card behind PCIe, with its software. [`ExanetNic`] is made of the blocks of the
//! ExaNet interface, [`CommunicationIpNic`] of those of the INFN Communication IP, each in the module of its
//! name: plain data whose methods take the time and answer with times, so that each can be tested, and
//! compared with hardware, alone.

pub mod allreduce;
pub mod apenetx;
mod block;
mod capability;
pub mod communication_ip;
pub mod connection;
pub mod data;
pub mod edge_form;
mod exanet;
mod failure;
pub mod gvas;
mod host;
pub mod host_port;
pub mod iommu;
mod key_table;
pub mod mailbox;
pub mod memory;
pub mod memory_path;
mod message_options;
mod message_table;
mod observer;
mod overheads;
pub mod packetizer;
pub mod pcie;
mod portals;
pub mod ports;
pub mod rdma;
pub mod reliability;
pub mod segmentation;
pub mod server;
mod shell;
pub mod transition;
pub mod transport;

pub use apenetx::{ApenetxNic, ApenetxParameters, ApenetxTimer};
pub use block::{Block, BlockDeclaration, BlockKind};
pub use capability::{
    AllreduceAccelerator, Capabilities, HostMemory, Mailboxes, NoCapabilities, QuietTime, RegisterAccess,
    RegisterError,
};
pub use communication_ip::{CommunicationIpNic, CommunicationIpParameters, CommunicationIpTimer};
pub use exanet::{
    Announcement, CheckParameters, Class, ExanetNic, ExanetParameters, ExanetTimer, Header, MemoryBlocks,
    MessageFields, SimulationWords, TokenWhenAcknowledged, wire,
};
pub use failure::{Failure, FailureReason};
pub use host::{
    BlockWork, Delivered, Host, HostContext, Incoming, Message, Nic, NicParameters, Offer, Primitive,
    Refused, Side,
};
pub use message_options::MessageOptions;
pub use observer::{BlockChange, Observer, Stage, StateChange};
pub use overheads::{OverheadsNic, OverheadsParameters, OverheadsTimer};
pub use portals::{PortalsNic, PortalsParameters, PortalsTimer};
pub use shell::{Hosted, NicBoard, NicNode, NicShell};
pub use weft_fabric::{Operations, Purpose};
