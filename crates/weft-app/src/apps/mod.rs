//! The applications, one file each. To add one, write its file and give it a line in [`ALL`].

mod broadcast_storm;
mod gromacs;
mod halo3d;
mod hpcg;
mod lammps;
mod minife;
mod nest;
mod patmos;
mod som;

use crate::app::{App, AppError};

pub use lammps::ATOMS as LAMMPS_ATOMS;

/// All applications, in the order of lists.
pub const ALL: &[&App] = &[
    &halo3d::APP,
    &lammps::APP,
    &hpcg::APP,
    &minife::APP,
    &nest::APP,
    &som::APP,
    &gromacs::APP,
    &patmos::APP,
    &broadcast_storm::APP,
];

/// The application of this name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static App, AppError> {
    let names = || ALL.iter().map(|app| app.name);
    ALL.iter().copied().find(|app| app.name == name).ok_or_else(|| {
        let suggestion = match weft_keys::nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "there are {}; weft app list says what they do",
                names().collect::<Vec<_>>().join(", ")
            ),
        };
        AppError::UnknownApp { name: name.to_owned(), suggestion }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Verification;
    use crate::kernel::Kernel;
    use crate::name::KernelName;
    use std::collections::BTreeMap;
    use weft_formats::{Trace, validate};
    use weft_trace::{TraceSource as _, streams};
    use weft_units::RankId;

    fn kernel(app: &App, ranks: u32) -> Kernel {
        let name = KernelName { app: app.name.to_owned(), ranks, options: BTreeMap::new() };
        Kernel::new(&name).unwrap()
    }

    /// Catches a rank that sends what nobody receives, a request that is never waited for, and counts that
    /// are not those of the operations.
    #[test]
    fn the_operations_of_every_application_are_in_order() {
        for app in ALL {
            for ranks in [1, 2, 3, 8, 12] {
                let kernel = kernel(app, ranks);
                let mut counted = 0;
                for rank in (0..ranks).map(RankId) {
                    for stream in streams(&kernel, rank) {
                        counted += kernel.stream(rank, stream).unwrap().count() as u64;
                    }
                }
                assert_eq!(counted, kernel.operations(), "{} on {ranks}", app.name);
                let trace = Trace::from(kernel);
                validate(&trace).unwrap_or_else(|error| panic!("{} on {ranks}: {error}", app.name));
                check_messages(&trace, app, ranks);
            }
        }
    }

    /// All that is sent from one rank to another with a tag is received there, in order and size.
    fn check_messages(trace: &Trace, app: &App, ranks: u32) {
        use weft_trace::op::{Op, StreamId};
        let mut sent: BTreeMap<(u32, u32, i32), Vec<u64>> = BTreeMap::new();
        let mut received = sent.clone();
        for rank in 0..ranks {
            for op in trace.source().stream(RankId(rank), StreamId::FIRST).unwrap() {
                match op.unwrap() {
                    Op::Isend { to, tag, bytes, .. } => {
                        sent.entry((rank, to.0, tag)).or_default().push(bytes.get());
                    }
                    Op::Irecv { from: Some(from), tag: Some(tag), bytes, .. } => {
                        received.entry((from.0, rank, tag)).or_default().push(bytes.get());
                    }
                    _ => {}
                }
            }
        }
        assert!(sent == received, "{} on {ranks}: what is sent is not what is received", app.name);
    }

    /// Catches two applications of one name, and one that does not say what it was compared with.
    #[test]
    fn every_application_says_what_it_is() {
        for app in ALL {
            assert_eq!(ALL.iter().filter(|other| other.name == app.name).count(), 1);
            let (Verification::Against(text) | Verification::Unchecked(text)) = app.checked;
            assert!(!text.is_empty() && app.laws.len() > 100, "{}", app.name);
        }
    }
}
