//! Network interfaces: what stands between a host and the fabric.
//!
//! A [`Host`] is whatever uses an interface: a rank, a traffic source. The interface cuts its messages
//! into packets, and hands over those of others when they have arrived whole.

mod host;
mod observer;
mod simple;
mod watched;

pub use host::{Delivered, Host, HostContext, Message, Nic, Offer, Primitive};
pub use observer::{Block, Observer, Stage};
pub use simple::{Announcement, SimpleNic, SimpleParameters, SimpleTimer};
