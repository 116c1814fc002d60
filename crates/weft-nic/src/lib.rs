//! Network interfaces: what stands between a host and the fabric.
//!
//! A [`Host`] is whatever uses an interface: a rank, a traffic source. The interface cuts its messages
//! into packets, and hands over those of others when they have arrived whole.

pub mod allreduce;
pub mod gvas;
mod host;
pub mod host_port;
pub mod iommu;
pub mod memory;
pub mod memory_path;
mod observer;
pub mod rdma;
pub mod registration;
pub mod reliability;
pub mod segmentation;
pub mod server;
mod simple;

pub use host::{Delivered, Host, HostContext, Message, Nic, Offer, Primitive};
pub use observer::{Block, Observer, Stage};
pub use simple::{Announcement, SimpleNic, SimpleParameters, SimpleTimer};
