//! Recordings of kernels, which are known at any scale, and small programs that follow no law.

use super::*;
use crate::kernel::Kernel;
use weft_trace::op::{Op, StreamId};
use weft_units::{Bytes, RankId};

fn kernel(name: &str) -> Trace {
    Trace::from(Kernel::new(&name.parse().unwrap()).unwrap())
}

/// The operations of each rank, without the numbers of requests and the places of buffers.
fn operations(trace: &Trace) -> Vec<Vec<String>> {
    let of = |rank| {
        let ops = trace.stream(RankId(rank), StreamId::FIRST).unwrap();
        ops.map(|op| match op.unwrap() {
            Op::Isend { to, tag, bytes, .. } => format!("send {} {tag} {}", to.0, bytes.get()),
            Op::Irecv { from, tag, bytes, .. } => format!("receive {from:?} {tag:?} {}", bytes.get()),
            Op::Wait { .. } => "wait".to_owned(),
            Op::Waitall { requests } => format!("wait for {}", requests.len()),
            other => format!("{other:?}"),
        })
        .collect()
    };
    (0..trace.ranks()).map(of).collect()
}

/// The recordings scaled to as many ranks as the kernel has, beside the kernel.
fn check(recordings: &[&str], mode: ScaleMode, expected: &str) {
    let recordings: Vec<Trace> = recordings.iter().map(|name| kernel(name)).collect();
    let expected_trace = kernel(expected);
    let scaled = Trace::from(scaled(&recordings, expected_trace.ranks(), mode).unwrap());
    weft_formats::validate(&scaled).unwrap();
    let (own, kernel) = (operations(&scaled), operations(&expected_trace));
    for (rank, (own, kernel)) in own.iter().zip(&kernel).enumerate() {
        let at = own.iter().zip(kernel).position(|(own, kernel)| own != kernel);
        if let Some(at) = at {
            panic!("{expected}, rank {rank}, operation {at}: {} in place of {}", own[at], kernel[at]);
        }
        assert_eq!(own.len(), kernel.len(), "{expected}, rank {rank}");
    }
    let counted: Vec<u64> = own.iter().map(|ops| ops.len() as u64).collect();
    assert_eq!(scaled.metadata().rank_operations, counted);
}

/// Catches a neighbour that is not one, bytes that go by another law than the domain's geometry, and an order
/// that is not the program's.
#[test]
fn halos_are_those_of_the_kernel_at_that_scale() {
    let (strong, weak) = (ScaleMode::Strong, ScaleMode::Weak);
    for options in ["", ",stencil=27", ",periodic=yes", ",stencil=27,periodic=yes", ",variables=5"] {
        let name = |ranks, local| format!("halo3d@{ranks},steps=2,local={local}x{local}x{local}{options}");
        check(&[&name(8, 36)], weak, &name(27, 36));
        check(&[&name(8, 54)], strong, &name(27, 36));
        check(&[&name(27, 36)], strong, &name(216, 18));
        check(&[&name(8, 36)], strong, &name(8, 36));
        // The margin that two recordings tell is none.
        check(&[&name(27, 48), &name(8, 72)], strong, &name(64, 36));
    }
    check(&["halo3d@12,steps=1"], weak, "halo3d@96,steps=1");
}

/// Catches a scaled allreduce, and neighbours of a multigrid's coarser grids that follow another grid.
#[test]
fn weak_scaling_of_solvers_is_the_kernel_at_that_scale() {
    check(&["hpcg@8,local=16x16x16,iterations=2"], ScaleMode::Weak, "hpcg@27,local=16x16x16,iterations=2");
    check(&["hpcg@27,local=16x16x16,iterations=2"], ScaleMode::Weak, "hpcg@64,local=16x16x16,iterations=2");
}

/// Catches computation that all goes by the volume, though each rank does a part of it as a whole.
#[test]
fn two_recordings_tell_what_every_rank_does_for_itself() {
    let som = |ranks| format!("som@{ranks},records=614400,batches=3");
    check(&[&som(8), &som(32)], ScaleMode::Strong, &som(128));
}

/// Catches the shifts of a closed grid of two ranks along a dimension that are taken for an open grid's.
#[test]
fn shifts_of_two_ranks_have_directions() {
    let melt = |ranks| kernel(&format!("lammps@{ranks},problem=lj,total=32000,steps=2,rebuild=2"));
    let messages = |trace: &Trace| -> Vec<usize> {
        let sent = |ops: &Vec<String>| ops.iter().filter(|op| op.starts_with("send")).count();
        operations(trace).iter().map(sent).collect()
    };
    let scaled = Trace::from(scaled(&[melt(8)], 64, ScaleMode::Strong).unwrap());
    assert_eq!(messages(&scaled), messages(&melt(64)));
}

/// Catches transposes whose layouts are others at another scale, and steps of two recordings that are taken
/// for one another.
#[test]
fn transposes_are_found_in_their_messages() {
    let lammps = |ranks| kernel(&format!("lammps@{ranks},total=32000,steps=2,rebuild=2"));
    let count = |trace: &Trace| -> Vec<(usize, u64)> {
        let of = |ops: &Vec<String>| {
            let sent =
                ops.iter().filter_map(|op| op.strip_prefix("send ")?.rsplit(' ').next()?.parse::<u64>().ok());
            (sent.clone().count(), sent.sum())
        };
        operations(trace).iter().map(of).collect()
    };
    let expected = count(&lammps(64));
    // On 2 x 2 x 2 ranks, too many layouts give the same messages.
    let alone = Trace::from(scaled(&[lammps(8)], 64, ScaleMode::Strong).unwrap());
    let notes: Vec<&String> = alone.metadata().header.notes.keys().collect();
    assert!(
        notes.iter().any(|note| note.starts_with("redistributions that several layouts explain")),
        "{notes:?}"
    );
    for recordings in [vec![lammps(27), lammps(8)], vec![lammps(27)]] {
        let scaled = Trace::from(scaled(&recordings, 64, ScaleMode::Strong).unwrap());
        let notes: Vec<&String> = scaled.metadata().header.notes.keys().collect();
        assert!(notes.iter().all(|note| note.starts_with("sweeps of ghost points")), "{notes:?}");
        let found = count(&scaled);
        let messages =
            |counts: &[(usize, u64)]| counts.iter().map(|(messages, _)| *messages).collect::<Vec<_>>();
        assert_eq!(messages(&found), messages(&expected));
        let total = |counts: &[(usize, u64)]| counts.iter().map(|(_, bytes)| *bytes).sum::<u64>() as f64;
        let off = total(&found) / total(&expected) - 1.0;
        println!("{} recordings: {:+.2} % of bytes", recordings.len(), 100.0 * off);
        assert!(recordings.len() == 1 || off.abs() < 0.03, "{off}");
    }
}

/// The peers and bytes of what each rank sends, in order.
fn sends(trace: &Trace) -> Vec<Vec<(u64, u64)>> {
    let of = |ops: &Vec<String>| {
        let sent = ops.iter().filter_map(|op| op.strip_prefix("send "));
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap_or(0);
        sent.map(|op| (number(op.split(' ').next()), number(op.rsplit(' ').next()))).collect()
    };
    operations(trace).iter().map(of).collect()
}

/// Catches planes of ghost points that go by the area of a part, and cuts that are taken to lie on points.
/// The kernel's charges and fields are those of the program to the byte.
#[test]
fn ghost_points_are_whole_planes() {
    let lammps = |ranks| kernel(&format!("lammps@{ranks},total=32000,steps=1"));
    let scaled = Trace::from(scaled(&[lammps(8), lammps(27)], 64, ScaleMode::Strong).unwrap());
    // One cut of four lies where two planes more or less fit the recordings.
    let notes: Vec<&String> = scaled.metadata().header.notes.keys().collect();
    assert!(notes.iter().all(|note| note.starts_with("sweeps of ghost points")), "{notes:?}");
    for (rank, (own, expected)) in sends(&scaled).into_iter().zip(sends(&lammps(64))).enumerate() {
        assert_eq!(own.len(), expected.len(), "rank {rank}");
        let others = own.iter().zip(&expected).filter(|(own, expected)| own != expected).count();
        // Ghost atoms: positions, forces and those of SHAKE, in six messages each.
        assert!(others <= 18, "rank {rank}: {others} of {} messages differ", own.len());
    }
}

/// Catches ghosts of atoms without those of the dimensions before, and a thickness that goes with the part.
#[test]
fn ghost_atoms_are_a_shell() {
    let melt = |ranks| kernel(&format!("lammps@{ranks},problem=lj,total=32000,steps=2,rebuild=4"));
    let scaled = Trace::from(scaled(&[melt(8), melt(27)], 64, ScaleMode::Strong).unwrap());
    let total = |sends: &[Vec<(u64, u64)>], message: usize| {
        sends.iter().map(|rank| rank[message].1 + rank[message + 1].1).sum::<u64>() as f64
    };
    let (own, expected) = (sends(&scaled), sends(&melt(64)));
    assert!(own[0].len() >= 24 && own[0].len() == expected[0].len());
    for message in (0..own[0].len()).step_by(2) {
        let off = total(&own, message) / total(&expected, message) - 1.0;
        assert!(off.abs() < 0.01, "messages {message} and the next: {:+.2} %", 100.0 * off);
    }
}

/// Catches bytes that fall without end where a recording has too few messages to tell a law.
#[test]
fn what_shrinks_faster_than_parts_goes_by_the_mean_of_both() {
    let scales =
        law::Scales { mode: ScaleMode::Strong, recorded: [3; 3], second: Some([2; 3]), wanted: [4; 3] };
    // By the area, the first gives 900 x 9/16 and the second 8,000 x 4/16.
    let factor = scales.between_neighbours([1, 0, 0], 900.0, Some(8000.0));
    assert!((900.0 * factor - (506.25f64 * 2000.0).sqrt()).abs() < 1e-6, "{factor}");
    assert!(scales.is_beyond_geometry(900.0, Some(8000.0)));
    // Faces, and all points of a part.
    assert!(!scales.is_beyond_geometry(4.0, Some(9.0)) && !scales.is_beyond_geometry(8.0, Some(27.0)));
}

/// A trace of these operations of each rank.
fn trace(ranks: &[Vec<Op>]) -> Trace {
    let folder = std::env::temp_dir().join(format!("weft-scale-{}-{}", std::process::id(), ranks.len()));
    let header = weft_formats::TraceHeader { ranks: ranks.len() as u32, ..Default::default() };
    let mut writer = weft_formats::TraceWriter::create(&folder, header).unwrap();
    for (rank, ops) in (0..).zip(ranks) {
        writer.begin_rank(RankId(rank)).unwrap();
        ops.iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
    let bytes = std::fs::read(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    Trace::from_bytes("small", bytes).unwrap()
}

/// Catches a scale that is made of what no law says: messages that follow no grid, and ranks that form no
/// grid like the recorded one.
#[test]
fn what_has_no_law_is_refused() {
    use weft_trace::op::{CommId, RequestId, SendMode};
    let message = |peer: u32, is_send: bool| {
        let (comm, bytes, request, buffer) = (CommId::WORLD, Bytes::new(8), RequestId(0), None);
        let op = match is_send {
            true => {
                Op::Isend { to: RankId(peer), tag: 0, comm, bytes, mode: SendMode::Standard, buffer, request }
            }
            false => Op::Irecv {
                from: Some(RankId(peer)),
                tag: Some(0),
                comm,
                bytes,
                matched: None,
                buffer,
                request,
            },
        };
        [op, Op::Wait { request }]
    };
    // Rank 0 sends to 4 and to 6 of 7.
    let mut ranks = vec![Vec::new(); 7];
    ranks[0].extend([message(4, true), message(6, true)].concat());
    ranks[4].extend(message(0, false));
    ranks[6].extend(message(0, false));
    let text = |result: Result<ScaledTrace, ScaleError>| {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let irregular = text(scaled(&[trace(&ranks)], 14, ScaleMode::Strong));
    assert!(irregular.contains("neighbours on no grid of 7 ranks"), "{irregular}");
    let halo = kernel("halo3d@8,steps=1");
    for (ranks, part) in [(13, "the nearest that do are 12 and 16"), (4, "scaled up")] {
        let refused = text(scaled(std::slice::from_ref(&halo), ranks, ScaleMode::Strong));
        assert!(refused.contains(part), "{refused}");
    }
    let other = text(scaled(&[kernel("hpcg@27,iterations=1"), halo.clone()], 64, ScaleMode::Strong));
    assert!(other.contains("not of the same program"), "{other}");
    let same = text(scaled(&[halo.clone(), halo], 64, ScaleMode::Strong));
    assert!(same.contains("same number of ranks"), "{same}");
}
