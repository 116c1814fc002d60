//! Keys that a network of fluids has no use for. What a machine carries of them is dropped from its values; a
//! `--set` that asks for one is refused.

use super::constant::Constant;
use super::document::{Item, Value};
use super::read::Reader;
use weft_keys::Problem;

const FULL: &str = "fluids fill no buffers";
const LOST: &str = "fluids lose nothing that would be sent again";

/// Keys and sections, and the reason why fluids have no use for them. All others act on messages that are
/// alone, on paths, or on hosts; congestion control, faults and links that sleep are checked where they are
/// read.
const IDLE: [(&str, &str); 15] = [
    ("fabric.flow_control", FULL),
    ("switch.pause_headroom", FULL),
    ("switch.pause_hysteresis", FULL),
    ("switch.pause_response", FULL),
    ("switch.arbiter", "fluids share a link at the same time, and take no turns"),
    ("nic.reliability", LOST),
    ("nic.undetected", "fluids carry no bytes that could be wrong"),
    ("nic.packetizer.backoff", LOST),
    ("nic.packetizer.repetitions", LOST),
    ("nic.rdma.backoff", LOST),
    ("nic.rdma.repetitions", LOST),
    ("nic.transport.backoff", LOST),
    ("nic.transport.repetitions", LOST),
    ("nic.allreduce", "fluids carry no reductions of an accelerator"),
    ("multicast", "switches copy no fluids"),
];

/// Keys of a class of links that are idle, whatever the class.
const IDLE_OF_LINKS: [(&str, &str); 2] =
    [("bit_errors", "fluids have no bits that could be wrong"), ("symbol_errors", "fluids have no symbols")];

/// Drops them.
pub(super) fn drop_what_is_idle(reader: &mut Reader<'_>) {
    let of_links = |constant: &Constant| {
        let (class, key) = constant.path.strip_prefix("links.")?.rsplit_once('.')?;
        let (key, reason) = IDLE_OF_LINKS.into_iter().find(|(idle, _)| *idle == key)?;
        Some((format!("links.{class}.{key}"), reason))
    };
    let of_links: Vec<_> = reader.constants.iter().filter_map(of_links).collect();
    let idle = IDLE.map(|(path, reason)| (path.to_owned(), reason));
    for (path, reason) in idle.into_iter().chain(of_links) {
        let Some(set) = reader.forget(&path) else { continue };
        let Some(item) = item(reader.root, &set) else { continue };
        let problem = Problem::new(
            format!("`{set}` has no effect: {reason}"),
            "not with flows",
            "leave it out, or write fabric.kind = \"packet\"",
        );
        reader.report(item.location, problem);
    }
}

/// The item at a path; `None`: there is none.
fn item<'i>(root: &'i Item, path: &str) -> Option<&'i Item> {
    path.split('.').try_fold(root, |item, key| match &item.value {
        Value::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item),
        _ => None,
    })
}
