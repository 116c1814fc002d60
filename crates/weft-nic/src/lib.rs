//! Network interfaces: what stands between a host and the fabric.
//!
//! A [`Host`] is whatever uses an interface: a rank, a traffic source. The interface cuts its messages
//! into packets, and hands over those of others when they have arrived whole.
//!
//! There are two models behind the same trait, [`Nic`]. [`SimpleNic`] has overheads. [`FullNic`] is made of
//! the blocks of the ExaNet interface, each in the module of its name: plain data whose methods take the
//! time and answer with times, so that each can be tested, and compared with hardware, alone.

pub mod allreduce;
pub mod data;
mod full;
pub mod gvas;
mod host;
pub mod host_port;
pub mod iommu;
pub mod mailbox;
pub mod memory;
pub mod memory_path;
mod observer;
pub mod packetizer;
pub mod rdma;
pub mod registration;
pub mod reliability;
pub mod segmentation;
pub mod server;
mod simple;
mod watched;

pub use full::{Announcement, CheckParameters, Class, FullNic, FullParameters, FullTimer, Header, Label};
pub use host::{Delivered, Failure, FailureReason, Host, HostContext, Message, Nic, Offer, Primitive};
pub use observer::{Block, BlockChange, Observer, Stage, StateChange};
pub use simple::{SimpleNic, SimpleParameters, SimpleTimer};
