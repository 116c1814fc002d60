//! Which operations messaging carries out.

use crate::algorithms::{Algorithm, collective_name};
use crate::windows::sync_name;
use weft_trace::Kind;
use weft_trace::op::Op;

/// Whether messaging carries out operations of this kind: a replay asks before it starts.
pub fn supports(kind: Kind) -> bool {
    match kind {
        Kind::Collective(collective) => Algorithm::performing(collective).next().is_some(),
        _ => true,
    }
}

/// The name of an operation that messaging does not carry out; `None`: it does.
pub fn unsupported(op: &Op) -> Option<&'static str> {
    let kind = op.kind();
    (!supports(kind)).then(|| match kind {
        Kind::Collective(collective) => collective_name(collective),
        Kind::Sync(sync) => sync_name(sync),
        other => other.name(),
    })
}
