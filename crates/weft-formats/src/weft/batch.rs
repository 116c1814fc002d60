//! Some rows of a rank as they are decoded: column by column, until an operation is made of each.

use super::column::{Columns, Lists, Place, Texts};
use super::row::{MAX_BYTES, MAX_SPAN_PS, RowError, address, check_members, missing, ranges};
use super::schema::{Column, MAX_ENTRIES};
use crate::error::TraceError;
use weft_trace::op::{
    CollectiveBuffers, CollectiveSizes, CommId, EventId, Op, RankRange, RequestId, WindowId,
};
use weft_trace::{DataType, Kind, Reduction, ReductionOperation};
use weft_units::{Address, Bytes, RankId, Span};

/// Rows, the first of which is the next of its rank. Takes up to 90 bytes for each, mostly below
/// 60, and what its lists and texts take.
#[derive(Default)]
pub(crate) struct Batch {
    kinds: Vec<Kind>,
    /// For each row a bit per column: whether it has a value there.
    present: Vec<u32>,
    span_ps: Vec<u64>,
    peer: Vec<u32>,
    tag: Vec<u32>,
    comm: Vec<u64>,
    bytes: Vec<u64>,
    receive_bytes: Vec<u64>,
    element_bytes: Vec<u32>,
    request: Vec<u32>,
    matched_peer: Vec<u32>,
    matched_tag: Vec<u32>,
    completed: Vec<u32>,
    window: Vec<u64>,
    text: Lists<u8>,
    requests: Lists<u32>,
    send_counts: Lists<u64>,
    receive_counts: Lists<u64>,
    members: Lists<u64>,
    buffer: Vec<u64>,
    receive_buffer: Vec<u64>,
    reduction: Vec<Option<ReductionOperation>>,
    data_type: Vec<Option<DataType>>,
    flops: Vec<u64>,
}

impl Batch {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Reads rows anew: as many of `columns` as are not too long. `fault` makes an error of what is wrong
    /// with a row.
    pub(crate) fn read(
        &mut self,
        columns: &Columns<'_>,
        rank: RankId,
        fault: impl Fn(usize, RowError) -> TraceError,
    ) -> Result<(), TraceError> {
        let len = columns.row_count();
        self.kinds.clear();
        self.present.clear();
        self.present.resize(len, 0);
        let present = &mut self.present;
        // Ranks are read where peers will be.
        columns.scalars(Column::Rank, &mut self.peer, present)?;
        if let Some(row) = self.peer.iter().position(|found| *found != rank.0) {
            return Err(fault(row, (Column::Rank, format!("another rank among the rows of rank {rank}"))));
        }
        columns.scalars(Column::SpanPs, &mut self.span_ps, present)?;
        columns.scalars(Column::Peer, &mut self.peer, present)?;
        columns.scalars(Column::Tag, &mut self.tag, present)?;
        columns.scalars(Column::Comm, &mut self.comm, present)?;
        columns.scalars(Column::Bytes, &mut self.bytes, present)?;
        columns.scalars(Column::ReceiveBytes, &mut self.receive_bytes, present)?;
        columns.scalars(Column::ElementBytes, &mut self.element_bytes, present)?;
        columns.scalars(Column::Request, &mut self.request, present)?;
        columns.scalars(Column::MatchedPeer, &mut self.matched_peer, present)?;
        columns.scalars(Column::MatchedTag, &mut self.matched_tag, present)?;
        columns.scalars(Column::Completed, &mut self.completed, present)?;
        columns.scalars(Column::Window, &mut self.window, present)?;
        columns.scalars(Column::Buffer, &mut self.buffer, present)?;
        columns.scalars(Column::ReceiveBuffer, &mut self.receive_buffer, present)?;
        columns.scalars(Column::Flops, &mut self.flops, present)?;
        let mut places = Vec::new();
        let texts = columns.texts(Column::Text, &mut places, present)?;
        let complete = [
            self.keep_texts(texts.as_ref(), &places, columns),
            columns.lists(Column::Requests, &mut self.requests)?,
            columns.lists(Column::SendCounts, &mut self.send_counts)?,
            columns.lists(Column::ReceiveCounts, &mut self.receive_counts)?,
            columns.lists(Column::Members, &mut self.members)?,
        ];
        let complete = complete.into_iter().fold(len, usize::min);
        let mut names = NameColumns { columns, present: &mut self.present, fault };
        self.reduction = names.read(Column::Reduction, ReductionOperation::from_name)?;
        self.data_type = names.read(Column::DataType, DataType::from_name)?;
        let kinds = names.read(Column::Operation, Kind::from_name)?;
        self.kinds.extend(kinds.into_iter().take(complete).map_while(|kind| kind));
        Ok(())
    }

    /// Keeps the texts themselves. Returns for how many rows.
    fn keep_texts(&mut self, texts: Option<&Texts>, places: &[Place], columns: &Columns<'_>) -> usize {
        self.text.clear();
        let Some(texts) = texts else { return columns.row_count() };
        for (place, present) in places.iter().zip(&self.present) {
            if present & 1 << Column::Text as u32 != 0 {
                self.text.entries.extend(texts.text(*place));
            }
            self.text.ends.push(self.text.entries.len());
            if self.text.entries.len() > columns.entries {
                break;
            }
        }
        self.text.ends.len()
    }

    /// The operation of a row of a program of so many ranks. Columns that its kind does not have are not
    /// looked at.
    #[inline]
    pub(crate) fn op(&self, row: usize, ranks: u32) -> Result<Op, RowError> {
        RowOf { batch: self, row, present: self.present[row], ranks }.op(self.kinds[row])
    }
}

/// Reads columns whose texts are names of values.
struct NameColumns<'a, F> {
    columns: &'a Columns<'a>,
    present: &'a mut [u32],
    fault: F,
}

impl<F: Fn(usize, RowError) -> TraceError> NameColumns<'_, F> {
    /// For each row the value of this name, `None` where the column is null; no rows where all are.
    fn read<T: Copy>(
        &mut self,
        column: Column,
        from_name: fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<Option<T>>, TraceError> {
        let mut places = Vec::new();
        let Some(names) = self.columns.texts(column, &mut places, self.present)? else {
            return Ok(Vec::new());
        };
        let known: Vec<Option<T>> = names.iter().map(from_name).collect();
        let mut values = Vec::with_capacity(places.len());
        for (row, place) in places.into_iter().enumerate() {
            let is_null = self.present[row] & 1 << column as u32 == 0;
            let value = if is_null { None } else { known[place.0 as usize] };
            if value.is_none() && !is_null {
                let name = names.text(place);
                let name = String::from_utf8_lossy(name.get(..40).unwrap_or(name)).into_owned();
                let column_name = column.name().replace('_', " ");
                let reason = format!("no {column_name} is called `{name}`; use the weft that wrote the file");
                return Err((self.fault)(row, (column, reason)));
            }
            values.push(value);
        }
        Ok(values)
    }
}

/// One of the rows.
#[derive(Clone, Copy)]
struct RowOf<'a> {
    batch: &'a Batch,
    row: usize,
    present: u32,
    ranks: u32,
}

impl<'a> RowOf<'a> {
    #[inline(always)]
    fn op(self, kind: Kind) -> Result<Op, RowError> {
        let batch = self.batch;
        Ok(match kind {
            Kind::Compute => Op::Compute { span: self.span()? },
            Kind::Work => Op::Work {
                flops: need(self.value(&batch.flops, Column::Flops), Column::Flops)?,
                bytes: self.bytes()?,
            },
            Kind::Isend(mode) => Op::Isend {
                to: need(self.peer()?, Column::Peer)?,
                tag: need(self.tag(), Column::Tag)?,
                comm: self.comm()?,
                bytes: self.bytes()?,
                mode,
                buffer: self.buffer()?,
                request: need(self.request(), Column::Request)?,
            },
            Kind::Irecv => Op::Irecv {
                from: self.peer()?,
                tag: self.tag(),
                comm: self.comm()?,
                bytes: self.bytes()?,
                matched: self.matched()?,
                buffer: self.buffer()?,
                request: need(self.request(), Column::Request)?,
            },
            Kind::Probe | Kind::Iprobe => Op::Probe {
                from: need(self.peer()?, Column::Peer)?,
                tag: need(self.tag(), Column::Tag)?,
                comm: self.comm()?,
                tested: kind == Kind::Iprobe,
            },
            Kind::Wait => Op::Wait { request: need(self.request(), Column::Request)? },
            Kind::Waitall => Op::Waitall { requests: self.requests()? },
            Kind::Waitany => {
                let completed = need(self.value(&batch.completed, Column::Completed), Column::Completed)?;
                let requests = self.requests()?;
                if completed as usize >= requests.len() {
                    return Err((Column::Completed, format!("index beyond {} requests", requests.len())));
                }
                Op::Waitany { requests, completed }
            }
            Kind::Collective(kind) => Op::Collective {
                kind,
                comm: self.comm()?,
                root: self.peer()?,
                request: self.request(),
                sizes: CollectiveSizes {
                    send: self.bytes()?,
                    receive: self.size(&batch.receive_bytes, Column::ReceiveBytes)?,
                    element: need(
                        self.value(&batch.element_bytes, Column::ElementBytes),
                        Column::ElementBytes,
                    )?,
                    send_counts: self.counts(&batch.send_counts, Column::SendCounts)?,
                    receive_counts: self.counts(&batch.receive_counts, Column::ReceiveCounts)?,
                    reduction: Reduction {
                        operation: batch.reduction.get(self.row).copied().flatten(),
                        data_type: batch.data_type.get(self.row).copied().flatten(),
                    },
                },
                buffers: CollectiveBuffers {
                    send: self.buffer()?,
                    receive: self.address(&batch.receive_buffer, Column::ReceiveBuffer)?,
                },
            },
            Kind::Communicator => Op::Communicator { comm: self.comm()?, members: self.members()? },
            Kind::Window => Op::Window {
                window: self.window()?,
                comm: self.comm()?,
                bytes: self.bytes()?,
                buffer: self.buffer()?,
            },
            Kind::OneSided(kind) => Op::OneSided {
                kind,
                window: self.window()?,
                target: need(self.peer()?, Column::Peer)?,
                bytes: self.bytes()?,
                buffer: self.buffer()?,
                request: self.request(),
            },
            Kind::Sync(kind) => Op::Sync { kind, window: self.window()?, target: self.peer()? },
            Kind::Signal(at) => Op::Signal { event: EventId(need(self.request(), Column::Request)?.0), at },
            Kind::Await => {
                let events = self.list(&self.batch.requests, Column::Requests)?;
                Op::Await { events: events.iter().copied().map(EventId).collect() }
            }
            Kind::Marker => Op::Marker { text: self.text()? },
        })
    }

    /// The value of a column; `None` where it is null.
    #[inline(always)]
    fn value<T: Copy>(self, values: &[T], column: Column) -> Option<T> {
        match self.present & 1 << column as u32 {
            0 => None,
            _ => values.get(self.row).copied(),
        }
    }

    #[inline(always)]
    fn rank(self, ranks: &[u32], column: Column) -> Result<Option<RankId>, RowError> {
        match self.value(ranks, column) {
            Some(rank) if rank >= self.ranks => {
                Err((column, format!("rank {rank} of a program of {} ranks", self.ranks)))
            }
            rank => Ok(rank.map(RankId)),
        }
    }

    #[inline(always)]
    fn size(self, sizes: &[u64], column: Column) -> Result<Bytes, RowError> {
        match need(self.value(sizes, column), column)? {
            size if size > MAX_BYTES => Err((column, format!("a size of {size} bytes; at most {MAX_BYTES}"))),
            size => Ok(Bytes::new(size)),
        }
    }

    #[inline(always)]
    fn span(self) -> Result<Span, RowError> {
        match need(self.value(&self.batch.span_ps, Column::SpanPs), Column::SpanPs)? {
            span if span > MAX_SPAN_PS => {
                Err((Column::SpanPs, format!("a computation of more than {MAX_SPAN_PS} ps")))
            }
            span => Ok(Span::from_ps(span)),
        }
    }

    #[inline(always)]
    fn peer(self) -> Result<Option<RankId>, RowError> {
        self.rank(&self.batch.peer, Column::Peer)
    }

    #[inline(always)]
    fn tag(self) -> Option<i32> {
        self.value(&self.batch.tag, Column::Tag).map(u32::cast_signed)
    }

    #[inline(always)]
    fn comm(self) -> Result<CommId, RowError> {
        need(self.value(&self.batch.comm, Column::Comm), Column::Comm).map(CommId)
    }

    #[inline(always)]
    fn bytes(self) -> Result<Bytes, RowError> {
        self.size(&self.batch.bytes, Column::Bytes)
    }

    #[inline(always)]
    fn address(self, addresses: &[u64], column: Column) -> Result<Option<Address>, RowError> {
        self.value(addresses, column).map(|value| address(value, column)).transpose()
    }

    #[inline(always)]
    fn buffer(self) -> Result<Option<Address>, RowError> {
        self.address(&self.batch.buffer, Column::Buffer)
    }

    #[inline(always)]
    fn request(self) -> Option<RequestId> {
        self.value(&self.batch.request, Column::Request).map(RequestId)
    }

    fn window(self) -> Result<WindowId, RowError> {
        need(self.value(&self.batch.window, Column::Window), Column::Window).map(WindowId)
    }

    /// Source and tag of the message that a wildcard matched when the trace was recorded.
    #[inline(always)]
    fn matched(self) -> Result<Option<(RankId, i32)>, RowError> {
        let peer = self.rank(&self.batch.matched_peer, Column::MatchedPeer)?;
        let tag = self.value(&self.batch.matched_tag, Column::MatchedTag);
        match (peer, tag) {
            (Some(peer), Some(tag)) => Ok(Some((peer, tag.cast_signed()))),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(missing(Column::MatchedPeer)),
            (Some(_), None) => Err(missing(Column::MatchedTag)),
        }
    }

    fn list<T>(self, lists: &'a Lists<T>, column: Column) -> Result<&'a [T], RowError> {
        match lists.of(self.row) {
            list if list.len() > MAX_ENTRIES => {
                Err((column, format!("{} entries; at most {MAX_ENTRIES}", list.len())))
            }
            list => Ok(list),
        }
    }

    fn requests(self) -> Result<Vec<RequestId>, RowError> {
        let requests = self.list(&self.batch.requests, Column::Requests)?;
        Ok(requests.iter().copied().map(RequestId).collect())
    }

    fn counts(self, counts: &'a Lists<u64>, column: Column) -> Result<Vec<u64>, RowError> {
        let counts = self.list(counts, column)?;
        match counts.iter().find(|&&size| size > MAX_BYTES) {
            Some(size) => Err((column, format!("a size of {size} bytes; at most {MAX_BYTES}"))),
            None => Ok(counts.to_vec()),
        }
    }

    fn members(self) -> Result<Vec<RankRange>, RowError> {
        let members = self.list(&self.batch.members, Column::Members)?;
        let members: Vec<i64> = members.iter().map(|number| number.cast_signed()).collect();
        check_members(&members, self.ranks)?;
        ranges(&members)
    }

    fn text(self) -> Result<String, RowError> {
        if self.present & 1 << Column::Text as u32 == 0 {
            return Err(missing(Column::Text));
        }
        let text = self.list(&self.batch.text, Column::Text)?;
        String::from_utf8(text.to_vec()).map_err(|error| (Column::Text, error.utf8_error().to_string()))
    }
}

#[inline(always)]
fn need<T>(value: Option<T>, column: Column) -> Result<T, RowError> {
    value.ok_or_else(|| missing(column))
}
