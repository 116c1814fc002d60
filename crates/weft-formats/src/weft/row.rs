//! An operation as one flat row of the trace's columns, and what such a row is checked for.

use super::schema::{Column, MAX_ENTRIES};
use std::borrow::Cow;
use weft_trace::op::{Op, RankRange, RequestId};
use weft_trace::{AddressSpace, DataType, Kind, ReductionOperation};
use weft_units::Address;

/// Largest size in bytes that is believed: a pebibyte.
pub(crate) const MAX_BYTES: u64 = 1 << 50;

/// Longest computation that is believed: 53 days. Sums of a few stay below 2^64 ps.
pub(crate) const MAX_SPAN_PS: u64 = 1 << 62;

/// A fault in a row: the column, and the reason.
pub(crate) type RowError = (Column, String);

/// A row. Empty lists and null lists are the same.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) kind: Kind,
    pub(crate) span_ps: Option<u64>,
    pub(crate) peer: Option<u32>,
    pub(crate) tag: Option<i32>,
    pub(crate) comm: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) receive_bytes: Option<u64>,
    pub(crate) element_bytes: Option<u32>,
    pub(crate) request: Option<u32>,
    pub(crate) matched_peer: Option<u32>,
    pub(crate) matched_tag: Option<i32>,
    pub(crate) completed: Option<u32>,
    pub(crate) window: Option<u64>,
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) requests: Cow<'a, [u32]>,
    pub(crate) send_counts: Cow<'a, [u64]>,
    pub(crate) receive_counts: Cow<'a, [u64]>,
    pub(crate) members: Cow<'a, [i64]>,
    pub(crate) buffer: Option<u64>,
    pub(crate) receive_buffer: Option<u64>,
    pub(crate) reduction: Option<&'static str>,
    pub(crate) data_type: Option<&'static str>,
    pub(crate) flops: Option<u64>,
}

impl<'a> Row<'a> {
    pub(crate) fn empty(kind: Kind) -> Row<'a> {
        Row {
            kind,
            span_ps: None,
            peer: None,
            tag: None,
            comm: None,
            bytes: None,
            receive_bytes: None,
            element_bytes: None,
            request: None,
            matched_peer: None,
            matched_tag: None,
            completed: None,
            window: None,
            text: None,
            requests: Cow::Borrowed(&[]),
            send_counts: Cow::Borrowed(&[]),
            receive_counts: Cow::Borrowed(&[]),
            members: Cow::Borrowed(&[]),
            buffer: None,
            receive_buffer: None,
            reduction: None,
            data_type: None,
            flops: None,
        }
    }

    /// The row of an operation.
    pub(crate) fn from_op(op: &'a Op) -> Row<'a> {
        let row = Row::empty(op.kind());
        match op {
            Op::Compute { span } => Row { span_ps: Some(span.as_ps()), ..row },
            Op::Work { flops, bytes } => Row { flops: Some(*flops), bytes: Some(bytes.get()), ..row },
            Op::Isend { to, tag, comm, bytes, mode: _, buffer, request } => Row {
                peer: Some(to.0),
                tag: Some(*tag),
                comm: Some(comm.0),
                bytes: Some(bytes.get()),
                request: Some(request.0),
                buffer: number(buffer),
                ..row
            },
            Op::Irecv { from, tag, comm, bytes, matched, buffer, request } => Row {
                peer: from.map(|rank| rank.0),
                tag: *tag,
                comm: Some(comm.0),
                bytes: Some(bytes.get()),
                request: Some(request.0),
                matched_peer: matched.map(|(rank, _)| rank.0),
                matched_tag: matched.map(|(_, tag)| tag),
                buffer: number(buffer),
                ..row
            },
            Op::Probe { from, tag, comm, tested: _ } => {
                Row { peer: Some(from.0), tag: Some(*tag), comm: Some(comm.0), ..row }
            }
            Op::Wait { request } => Row { request: Some(request.0), ..row },
            Op::Waitall { requests } => Row { requests: numbers(requests), ..row },
            Op::Waitany { requests, completed } => {
                Row { requests: numbers(requests), completed: Some(*completed), ..row }
            }
            Op::Collective { kind: _, comm, root, sizes, buffers, request } => Row {
                peer: root.map(|rank| rank.0),
                comm: Some(comm.0),
                bytes: Some(sizes.send.get()),
                receive_bytes: Some(sizes.receive.get()),
                element_bytes: Some(sizes.element),
                request: request.map(|request| request.0),
                send_counts: Cow::Borrowed(&sizes.send_counts),
                receive_counts: Cow::Borrowed(&sizes.receive_counts),
                buffer: number(&buffers.send),
                receive_buffer: number(&buffers.receive),
                reduction: sizes.reduction.operation.map(ReductionOperation::name),
                data_type: sizes.reduction.data_type.map(DataType::name),
                ..row
            },
            Op::Communicator { comm, members } => Row {
                comm: Some(comm.0),
                members: members
                    .iter()
                    .flat_map(|range| [range.first.into(), range.stride.into(), range.count.into()])
                    .collect(),
                ..row
            },
            Op::Window { window, comm, bytes, buffer } => Row {
                window: Some(window.0),
                comm: Some(comm.0),
                bytes: Some(bytes.get()),
                buffer: number(buffer),
                ..row
            },
            Op::OneSided { kind: _, window, target, bytes, buffer, request } => Row {
                window: Some(window.0),
                peer: Some(target.0),
                bytes: Some(bytes.get()),
                request: request.map(|request| request.0),
                buffer: number(buffer),
                ..row
            },
            Op::Sync { kind: _, window, target } => {
                Row { window: Some(window.0), peer: target.map(|rank| rank.0), ..row }
            }
            Op::Signal { event, at: _ } => Row { request: Some(event.0), ..row },
            Op::Await { events } => Row { requests: events.iter().map(|event| event.0).collect(), ..row },
            Op::Marker { text } => Row { text: Some(Cow::Borrowed(text)), ..row },
        }
    }

    /// Checks what a row can be checked for without its neighbours: ranks that exist, sizes that can be.
    pub(crate) fn check(&self, ranks: u32) -> Result<(), RowError> {
        if self.span_ps.is_some_and(|span| span > MAX_SPAN_PS) {
            return Err((Column::SpanPs, format!("a computation of more than {MAX_SPAN_PS} ps")));
        }
        for (rank, column) in [(self.peer, Column::Peer), (self.matched_peer, Column::MatchedPeer)] {
            if let Some(rank) = rank.filter(|&rank| rank >= ranks) {
                return Err((column, format!("rank {rank} of a program of {ranks} ranks")));
            }
        }
        for (size, column) in [(self.bytes, Column::Bytes), (self.receive_bytes, Column::ReceiveBytes)] {
            if let Some(size) = size.filter(|&size| size > MAX_BYTES) {
                return Err((column, format!("a size of {size} bytes; at most {MAX_BYTES}")));
            }
        }
        for (buffer, column) in [(self.buffer, Column::Buffer), (self.receive_buffer, Column::ReceiveBuffer)]
        {
            buffer.map_or(Ok(()), |buffer| address(buffer, column).map(drop))?;
        }
        let lists = [
            (self.requests.len(), Column::Requests),
            (self.send_counts.len(), Column::SendCounts),
            (self.receive_counts.len(), Column::ReceiveCounts),
            (self.members.len(), Column::Members),
            (self.text.as_ref().map_or(0, |text| text.len()), Column::Text),
        ];
        if let Some((len, column)) = lists.into_iter().find(|&(len, _)| len > MAX_ENTRIES) {
            return Err((column, format!("{len} entries; at most {MAX_ENTRIES}")));
        }
        for (counts, column) in
            [(&self.send_counts, Column::SendCounts), (&self.receive_counts, Column::ReceiveCounts)]
        {
            if let Some(size) = counts.iter().find(|&&size| size > MAX_BYTES) {
                return Err((column, format!("a size of {size} bytes; at most {MAX_BYTES}")));
            }
        }
        if self.completed.is_some_and(|index| index as usize >= self.requests.len()) {
            return Err((Column::Completed, format!("index beyond {} requests", self.requests.len())));
        }
        if self.members.is_empty() { Ok(()) } else { check_members(&self.members, ranks) }
    }

    /// Entries of all lists, and bytes of text.
    pub(crate) fn entries(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
            + self.requests.len()
            + self.send_counts.len()
            + self.receive_counts.len()
            + self.members.len()
    }
}

fn numbers(requests: &[RequestId]) -> Cow<'static, [u32]> {
    requests.iter().map(|request| request.0).collect()
}

fn number(address: &Option<Address>) -> Option<u64> {
    address.map(Address::get)
}

/// An address of so few bits as there are.
#[inline]
pub(crate) fn address(address: u64, column: Column) -> Result<Address, RowError> {
    match address >> AddressSpace::BITS {
        0 => Ok(Address::new(address)),
        _ => Err((column, format!("the address {address:#x}; addresses have {} bits", AddressSpace::BITS))),
    }
}

/// A null where there should be none.
pub(crate) fn missing(column: Column) -> RowError {
    (column, "null where this operation needs a value".to_owned())
}

/// Members, of which each range lies as three numbers.
pub(crate) fn ranges(members: &[i64]) -> Result<Vec<RankRange>, RowError> {
    let number = |value: i64| u32::try_from(value).ok();
    members
        .chunks(3)
        .map(|range| match *range {
            [first, stride, count] => Some(RankRange {
                first: number(first)?,
                stride: i32::try_from(stride).ok()?,
                count: number(count)?,
            }),
            _ => None,
        })
        .collect::<Option<_>>()
        .ok_or_else(|| (Column::Members, "not a list of first, stride, count in 32 bits".to_owned()))
}

/// Members exist, and their number does not exceed that of the ranks.
pub(crate) fn check_members(members: &[i64], ranks: u32) -> Result<(), RowError> {
    let mut total = 0u64;
    for range in ranges(members)? {
        let last = i64::from(range.first)
            .saturating_add(i64::from(range.stride).saturating_mul(i64::from(range.count.saturating_sub(1))));
        let exists = |rank: i64| (0..i64::from(ranks)).contains(&rank);
        if range.count == 0 || !exists(range.first.into()) || !exists(last) {
            let reason = format!(
                "members {}, {} apart, {} of them, of a program of {ranks} ranks",
                range.first, range.stride, range.count
            );
            return Err((Column::Members, reason));
        }
        total += u64::from(range.count);
    }
    if total > u64::from(ranks) {
        return Err((Column::Members, format!("{total} members of a program of {ranks} ranks")));
    }
    Ok(())
}
