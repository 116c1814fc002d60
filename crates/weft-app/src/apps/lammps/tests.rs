use super::*;
use crate::{Kernel, KernelName};
use std::collections::BTreeMap;
use weft_trace::TraceSource;
use weft_trace::op::{Op, StreamId};
use weft_units::RankId;

fn kernel(name: &str) -> Kernel {
    Kernel::new(&name.parse::<KernelName>().unwrap()).unwrap()
}

fn operations(kernel: &Kernel, rank: u32) -> Vec<Op> {
    kernel.stream_at(RankId(rank), StreamId::FIRST, 0).unwrap().map(Result::unwrap).collect()
}

/// Bytes that a rank sends, the receiver in front, and collectives, in short.
fn short(kernel: &Kernel, rank: u32) -> Vec<String> {
    let send = |op: Op| match op {
        Op::Isend { to, bytes, .. } => Some(format!("{}:{}", to.0, bytes.get())),
        Op::Collective { sizes, .. } => Some(format!("a{}", sizes.send.get())),
        _ => None,
    };
    operations(kernel, rank).into_iter().filter_map(send).collect()
}

/// Catches messages whose ends differ in size or order, where a rank has few neighbours or many layers of
/// them.
#[test]
fn what_is_sent_is_received() {
    let strong =
        ["1", "2", "12", "30", "216"].map(|ranks| format!("lammps@{ranks},total=32000,steps=3,rebuild=2"));
    let melt = strong.clone().map(|name| format!("{name},problem=lj"));
    let others = ["lammps@6,steps=11", "lammps@27,grid=40x45x54,steps=1"];
    for name in strong.into_iter().chain(melt).chain(others.map(str::to_owned)) {
        let kernel = kernel(&name);
        let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
        for rank in 0..kernel.ranks() {
            for op in operations(&kernel, rank) {
                let (messages, ends, bytes) = match op {
                    Op::Isend { to, bytes, .. } => (&mut sent, (rank, to.0), bytes),
                    Op::Irecv { from: Some(from), bytes, .. } => (&mut received, (from.0, rank), bytes),
                    _ => continue,
                };
                messages.entry(ends).or_insert_with(Vec::new).push(bytes);
            }
        }
        assert!(sent == received, "{name}");
        let metadata = weft_formats::FormatReader::metadata(&kernel);
        assert_eq!(metadata.operations.values().sum::<u64>(), kernel.operations(), "{name}");
    }
}

/// Catches a wrong law: LAMMPS 22Jul2025 prints these grids for `replicate` of rhodopsin.
#[test]
fn grids_are_those_that_lammps_prints() {
    let known: [([f64; 3], [u64; 3]); 5] = [
        ([1.0, 1.0, 1.0], [25, 32, 32]),
        ([1.0, 1.0, 2.0], [27, 36, 60]),
        ([1.0, 1.0, 3.0], [27, 36, 80]),
        ([1.0, 2.0, 2.0], [27, 60, 60]),
        ([2.0, 2.0, 2.0], [48, 64, 60]),
    ];
    for (copies, grid) in known {
        let all: f64 = copies.iter().product();
        let charges = Charges {
            atoms: 32_000.0 * all,
            squares: RHODOPSIN_CHARGES * UNIT_CHARGES * all,
            accuracy: 1e-4 * UNIT_CHARGES,
            cutoff: 10.0,
        };
        let extents = [0, 1, 2].map(|dimension| RHODOPSIN_BOX[dimension] as f64 * 1e-4 * copies[dimension]);
        assert_eq!(charges.grid(extents), grid, "{copies:?}");
    }
}

/// Catches a remap in another order, and grid points that a rank does not have: a recording of rank 0 of 8.
/// The positions of atoms are those of the law; they were recorded as 42816, 42120, 55416, 55584, 93936 and
/// 93600.
#[test]
fn a_step_of_rhodopsin_is_as_recorded() {
    let expected = "a48 a48 4:41893 4:41893 2:56148 2:56148 1:94389 1:94389 \
         1:6048 1:9072 2:4608 2:6912 4:4096 4:8192 2:12288 \
         1:26624 2:12288 4:12288 6:12288 2:12288 4:12288 6:12288 \
         1:26624 2:12288 4:12288 6:12288 1:24576 1:26624 2:12288 4:12288 6:12288 1:24576 \
         1:26624 2:12288 4:12288 6:12288 1:24576 4:18432 4:12288 2:20736 2:13824 1:27216 1:18144 a48";
    let step = short(&kernel("lammps@8,total=32000,steps=1"), 0);
    let words: Vec<&str> = expected.split_whitespace().collect();
    assert_eq!(
        step[..words.len()].iter().skip(8).collect::<Vec<_>>(),
        words.iter().skip(8).collect::<Vec<_>>()
    );
    let atoms = |bytes: &String| bytes.split(':').nth(1).and_then(|bytes| bytes.parse::<f64>().ok());
    for (swap, recorded) in
        step[2..8].iter().zip([42_816.0, 42_120.0, 55_416.0, 55_584.0, 93_936.0, 93_600.0])
    {
        assert!((atoms(swap).unwrap() / recorded - 1.0).abs() < 0.03, "{swap} {recorded}");
    }
    assert_eq!(step.len(), words.len() + 12 + 3);
}

/// Catches a lattice that is off by a plane: recordings of rank 0 of 8, and the mean of 8 ranks after a
/// rebuild.
#[test]
fn the_melt_begins_on_its_lattice() {
    let all = short(&kernel("lammps@8,problem=lj,total=32000,steps=20"), 0);
    assert_eq!(all[..7].join(" "), "4:19200 4:14400 2:25920 2:19440 1:34992 1:26232 1:26232");
    let rebuild = all[12 * 19..].join(" ");
    let expected = "4:4 4:8800 2:4 2:8800 1:4 1:8800 \
         4:4 4:33600 4:4 4:33600 2:4 2:45360 2:4 2:45360 1:4 1:61200 1:4 1:61200";
    assert!(rebuild.starts_with(expected), "{rebuild}");
}

/// Catches ranks without grid points that are not refused, and a mend that does not work.
#[test]
fn what_does_not_divide_is_refused_with_what_does() {
    let refused = |name: &str| Kernel::new(&name.parse().unwrap()).err().unwrap().to_string();
    assert!(refused("lammps@6,atoms=1000").contains("a multiple of 16000, such as 16000"));
    assert!(refused("lammps@6,total=33000").contains("32000 or 64000"));
    let few = refused("lammps@4096,grid=10");
    let works = few.split("nearest that work: ").nth(1).unwrap().split(' ').next().unwrap();
    let ranks: u32 = works.parse().unwrap();
    kernel(&format!("lammps@{ranks},grid=10"));
    assert!(few.contains("10 points along a line") && few.ends_with("or give a larger grid"), "{few}");
    assert!(refused("lammps@127,total=32000").ends_with("work: 126 or 128 ranks; or take more atoms"));
    kernel("lammps@128,total=32000");
    let one = refused("lammps@2,grid=1x1x1");
    assert!(one.contains("has 1 point along") && one.contains("nearest that work: 1 rank;"), "{one}");
    assert!(refused("lammps@8,total=32000,atoms=32000").contains("atoms and total exclude each other"));
    assert!(refused("lammps@8,problem=lj,grid=8x8x8").contains("grid=8x8x8: expected 0 where problem is lj"));
    kernel("lammps@8,problem=lj,grid=0");
}
