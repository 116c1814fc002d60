//! From the addresses that a rank's process used to those of the trace, record by record.

use std::collections::BTreeMap;
use weft_trace::AddressSpace;
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op};
use weft_units::{Address, Bytes};

/// The memory of a rank, and how many members its communicators have: a collective's buffer holds a block for
/// each.
pub(super) struct Memory {
    space: AddressSpace,
    members: BTreeMap<CommId, u64>,
}

impl Memory {
    /// Nothing is known yet but the world and its size.
    pub(super) fn new(world: u32) -> Memory {
        Memory { space: AddressSpace::default(), members: [(CommId::WORLD, world.into())].into() }
    }

    /// The operation with virtual addresses in the place of the process's. A buffer of no bytes becomes none:
    /// programs name it by anything.
    pub(super) fn settled(&mut self, mut op: Op) -> Op {
        match &mut op {
            Op::Isend { buffer, bytes, .. }
            | Op::Irecv { buffer, bytes, .. }
            | Op::Window { buffer, bytes, .. }
            | Op::OneSided { buffer, bytes, .. } => self.place(buffer, *bytes),
            Op::Collective { kind, comm, sizes, buffers, .. } => {
                let members = self.members.get(comm).copied().unwrap_or(1);
                let (send, receive) = extents(*kind, sizes, members);
                self.place(&mut buffers.send, send);
                self.place(&mut buffers.receive, receive);
            }
            Op::Communicator { comm, members } => {
                self.members.insert(*comm, members.iter().map(|range| u64::from(range.count)).sum());
            }
            _ => {}
        }
        op
    }

    fn place(&mut self, buffer: &mut Option<Address>, bytes: Bytes) {
        *buffer =
            buffer.filter(|_| bytes > Bytes::ZERO).map(|address| self.space.place(address.get(), bytes));
    }
}

/// Lengths of the two buffers of a collective among so many members. Where the sizes are those of one block,
/// a buffer on one of its sides holds a block for each (the table at [`CollectiveSizes`]).
fn extents(kind: Collective, sizes: &CollectiveSizes, members: u64) -> (Bytes, Bytes) {
    let all = |block: Bytes| Bytes::new(block.get().saturating_mul(members));
    let sum = |counts: &[u64]| Bytes::new(counts.iter().fold(0, |sum, &count| sum.saturating_add(count)));
    match kind {
        Collective::Gather | Collective::Allgather => (sizes.send, all(sizes.receive)),
        Collective::Scatter => (all(sizes.send), sizes.receive),
        Collective::Alltoall => (all(sizes.send), all(sizes.receive)),
        Collective::NeighborAllgather => (sizes.send, sum(&sizes.receive_counts)),
        Collective::NeighborAlltoall => (sum(&sizes.send_counts), sum(&sizes.receive_counts)),
        _ => (sizes.send, sizes.receive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_trace::op::{CollectiveBuffers, RankRange};

    /// Catches a buffer of blocks that counts as one block, so that what lies behind it is foreign.
    #[test]
    fn a_buffer_of_a_collective_holds_the_blocks_of_all_members() {
        const BLOCK: u64 = 100;
        const COMM: CommId = CommId(7);
        // In blocks: of a communicator of 3, and of neighbours that send 2 and 4.
        for (kind, send_blocks, receive_blocks) in [
            (Collective::Allreduce, 1, 1),
            (Collective::Gather, 1, 3),
            (Collective::Allgather, 1, 3),
            (Collective::Scatter, 3, 1),
            (Collective::Alltoall, 3, 3),
            (Collective::NeighborAllgather, 1, 4),
            (Collective::NeighborAlltoall, 2, 4),
        ] {
            let mut memory = Memory::new(64);
            let members = vec![
                RankRange { first: 5, stride: -5, count: 2 },
                RankRange { first: 9, stride: 1, count: 1 },
            ];
            memory.settled(Op::Communicator { comm: COMM, members });
            let (send, receive) = (1 << 40, 1 << 44);
            let op = memory.settled(Op::Collective {
                kind,
                comm: COMM,
                root: None,
                sizes: CollectiveSizes {
                    send: Bytes::new(BLOCK),
                    receive: Bytes::new(BLOCK),
                    send_counts: vec![BLOCK, 0, BLOCK],
                    receive_counts: vec![0, 3 * BLOCK, BLOCK],
                    ..CollectiveSizes::default()
                },
                buffers: CollectiveBuffers {
                    send: Some(Address::new(send)),
                    receive: Some(Address::new(receive)),
                },
                request: None,
            });
            let Op::Collective { buffers, .. } = op else { unreachable!("it is one") };
            for (begin, settled, blocks) in
                [(send, buffers.send, send_blocks), (receive, buffers.receive, receive_blocks)]
            {
                let settled = settled.map(Address::get);
                let byte = Bytes::new(1);
                let behind = memory.space.place(begin + blocks * BLOCK, byte).get();
                assert_eq!(Some(behind - blocks * BLOCK), settled, "{kind:?}");
                // A gap that is longer than those between neighbours.
                let beyond = memory.space.place(begin + blocks * BLOCK + 100, byte).get();
                assert_ne!(beyond, behind + 100, "{kind:?}");
            }
        }
    }

    /// Catches addresses of messages without data, which are often left from elsewhere.
    #[test]
    fn what_has_no_bytes_has_no_buffer() {
        let mut memory = Memory::new(2);
        let mut buffer = Some(Address::new(0xdead_beef));
        memory.place(&mut buffer, Bytes::ZERO);
        assert_eq!((buffer, memory.space), (None, AddressSpace::default()));
    }
}
