//! The tables of a result while it is written.

use crate::error::ResultsError;
use crate::live::LiveTable;
use crate::manifest::TableSummary;
use crate::row::Row;
use crate::table::{SavedTable, TableWriter};
use crate::tables::{
    CallRow, FlowRateRow, FlowRow, JobLinkRow, JobRateRow, LinkRow, MessagePieceRow, MessageRow, PacketRow,
    PartRow, QueueRow, RankRow, RateRow, Table,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file of a table.
pub(crate) fn table_file(table: Table) -> String {
    format!("{}.parquet", table.name())
}

/// The tables of a result that are wanted. The others are `None`: their rows are dropped.
pub(crate) struct OpenTables {
    pub(crate) messages: Option<TableWriter<MessageRow>>,
    pub(crate) flows: Option<TableWriter<FlowRow>>,
    pub(crate) links: Option<TableWriter<LinkRow>>,
    pub(crate) ranks: Option<TableWriter<RankRow>>,
    pub(crate) calls: Option<TableWriter<CallRow>>,
    pub(crate) parts: Option<TableWriter<PartRow>>,
    pub(crate) pieces: Option<TableWriter<MessagePieceRow>>,
    pub(crate) packets: Option<TableWriter<PacketRow>>,
    pub(crate) rates: Option<TableWriter<RateRow>>,
    pub(crate) queues: Option<TableWriter<QueueRow>>,
    pub(crate) flow_rates: Option<TableWriter<FlowRateRow>>,
    pub(crate) job_rates: Option<TableWriter<JobRateRow>>,
    pub(crate) job_links: Option<TableWriter<JobLinkRow>>,
}

/// The tables of a result at a virtual time, for a snapshot. Pieces, packets and links by job are
/// not among them: a run that records them is not saved.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedTables {
    messages: Option<SavedTable<MessageRow>>,
    flows: Option<SavedTable<FlowRow>>,
    links: Option<SavedTable<LinkRow>>,
    ranks: Option<SavedTable<RankRow>>,
    calls: Option<SavedTable<CallRow>>,
    parts: Option<SavedTable<PartRow>>,
    rates: Option<SavedTable<RateRow>>,
    queues: Option<SavedTable<QueueRow>>,
    flow_rates: Option<SavedTable<FlowRateRow>>,
    job_rates: Option<SavedTable<JobRateRow>>,
}

/// A table that is whole, under a temporary name.
pub(crate) struct MergedTable {
    pub(crate) table: Table,
    pub(crate) summary: TableSummary,
    pub(crate) path: PathBuf,
}

impl OpenTables {
    /// The `wanted` tables, without rows, with their parts in the folder `working`.
    pub(crate) fn new(working: &Path, wanted: &[Table]) -> OpenTables {
        fn open<R: Row>(working: &Path, wanted: bool) -> Option<TableWriter<R>> {
            wanted.then(|| TableWriter::new(working))
        }
        let wants = |table| wanted.contains(&table);
        OpenTables {
            messages: open(working, wants(Table::Messages)),
            flows: open(working, wants(Table::Flows)),
            links: open(working, wants(Table::Links)),
            ranks: open(working, wants(Table::Ranks)),
            calls: open(working, wants(Table::Calls)),
            parts: open(working, wants(Table::Parts)),
            pieces: open(working, wants(Table::Pieces)),
            packets: open(working, wants(Table::Packets)),
            rates: open(working, wants(Table::Rates)),
            queues: open(working, wants(Table::Queues)),
            flow_rates: open(working, wants(Table::FlowRates)),
            job_rates: open(working, wants(Table::JobRates)),
            job_links: open(working, wants(Table::JobLinks)),
        }
    }

    /// The tables as a snapshot has them; rows after it are dropped.
    pub(crate) fn resume(working: &Path, saved: SavedTables) -> Result<OpenTables, ResultsError> {
        fn open<R: Row>(
            working: &Path,
            saved: Option<SavedTable<R>>,
        ) -> Result<Option<TableWriter<R>>, ResultsError> {
            saved.map(|table| TableWriter::resume(working, table)).transpose()
        }
        Ok(OpenTables {
            messages: open(working, saved.messages)?,
            flows: open(working, saved.flows)?,
            links: open(working, saved.links)?,
            ranks: open(working, saved.ranks)?,
            calls: open(working, saved.calls)?,
            parts: open(working, saved.parts)?,
            pieces: None,
            packets: None,
            rates: open(working, saved.rates)?,
            queues: open(working, saved.queues)?,
            flow_rates: open(working, saved.flow_rates)?,
            job_rates: open(working, saved.job_rates)?,
            job_links: None,
        })
    }

    /// Whether rows of `table` are wanted.
    pub(crate) fn wants(&self, table: Table) -> bool {
        match table {
            Table::Messages => self.messages.is_some(),
            Table::Flows => self.flows.is_some(),
            Table::Links => self.links.is_some(),
            Table::Ranks => self.ranks.is_some(),
            Table::Calls => self.calls.is_some(),
            Table::Parts => self.parts.is_some(),
            Table::Pieces => self.pieces.is_some(),
            Table::Packets => self.packets.is_some(),
            Table::Rates => self.rates.is_some(),
            Table::Queues => self.queues.is_some(),
            Table::FlowRates => self.flow_rates.is_some(),
            Table::JobRates => self.job_rates.is_some(),
            Table::JobLinks => self.job_links.is_some(),
        }
    }

    /// Ends the row groups: all rows before this virtual epoch have been handed over.
    pub(crate) fn epoch(&mut self) -> Result<(), ResultsError> {
        self.messages.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.flows.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.links.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.ranks.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.calls.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.parts.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.pieces.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.packets.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.rates.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.queues.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.flow_rates.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.job_rates.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.job_links.as_mut().map_or(Ok(()), TableWriter::epoch)
    }

    /// The tables as they are now.
    pub(crate) fn save(&mut self) -> Result<SavedTables, ResultsError> {
        let records = self.pieces.is_some() || self.packets.is_some() || self.job_links.is_some();
        debug_assert!(!records, "a run that records pieces or packets is not saved");
        Ok(SavedTables {
            messages: self.messages.as_mut().map(TableWriter::save).transpose()?,
            flows: self.flows.as_mut().map(TableWriter::save).transpose()?,
            links: self.links.as_mut().map(TableWriter::save).transpose()?,
            ranks: self.ranks.as_mut().map(TableWriter::save).transpose()?,
            calls: self.calls.as_mut().map(TableWriter::save).transpose()?,
            parts: self.parts.as_mut().map(TableWriter::save).transpose()?,
            rates: self.rates.as_mut().map(TableWriter::save).transpose()?,
            queues: self.queues.as_mut().map(TableWriter::save).transpose()?,
            flow_rates: self.flow_rates.as_mut().map(TableWriter::save).transpose()?,
            job_rates: self.job_rates.as_mut().map(TableWriter::save).transpose()?,
        })
    }

    /// The files of the tables for a reader, as they are now.
    pub(crate) fn publish(&mut self, generation: u64) -> Result<BTreeMap<Table, LiveTable>, ResultsError> {
        fn publish<R: Row>(
            table: &mut Option<TableWriter<R>>,
            generation: u64,
        ) -> Result<Option<LiveTable>, ResultsError> {
            table.as_mut().map(|table| table.publish(generation)).transpose()
        }
        let tables = [
            (Table::Messages, publish(&mut self.messages, generation)?),
            (Table::Flows, publish(&mut self.flows, generation)?),
            (Table::Links, publish(&mut self.links, generation)?),
            (Table::Ranks, publish(&mut self.ranks, generation)?),
            (Table::Calls, publish(&mut self.calls, generation)?),
            (Table::Parts, publish(&mut self.parts, generation)?),
            (Table::Pieces, publish(&mut self.pieces, generation)?),
            (Table::Packets, publish(&mut self.packets, generation)?),
            (Table::Rates, publish(&mut self.rates, generation)?),
            (Table::Queues, publish(&mut self.queues, generation)?),
            (Table::FlowRates, publish(&mut self.flow_rates, generation)?),
            (Table::JobRates, publish(&mut self.job_rates, generation)?),
            (Table::JobLinks, publish(&mut self.job_links, generation)?),
        ];
        Ok(tables.into_iter().filter_map(|(name, table)| Some((name, table?))).collect())
    }

    /// Makes each table whole under a temporary name in `working`, in the order in which tables are listed.
    pub(crate) fn merge(&mut self, working: &Path) -> Result<Vec<MergedTable>, ResultsError> {
        let merged = [
            merge(self.messages.take(), working, Table::Messages)?,
            merge(self.flows.take(), working, Table::Flows)?,
            merge(self.links.take(), working, Table::Links)?,
            merge(self.ranks.take(), working, Table::Ranks)?,
            merge(self.calls.take(), working, Table::Calls)?,
            merge(self.parts.take(), working, Table::Parts)?,
            merge(self.pieces.take(), working, Table::Pieces)?,
            merge(self.packets.take(), working, Table::Packets)?,
            merge(self.rates.take(), working, Table::Rates)?,
            merge(self.queues.take(), working, Table::Queues)?,
            merge(self.flow_rates.take(), working, Table::FlowRates)?,
            merge(self.job_rates.take(), working, Table::JobRates)?,
            merge(self.job_links.take(), working, Table::JobLinks)?,
        ];
        Ok(merged.into_iter().flatten().collect())
    }
}

fn merge<R: Row>(
    writer: Option<TableWriter<R>>,
    working: &Path,
    table: Table,
) -> Result<Option<MergedTable>, ResultsError> {
    let Some(writer) = writer else { return Ok(None) };
    let summary = TableSummary { version: R::VERSION, rows: writer.rows() };
    let path = working.join(table_file(table));
    writer.merge(&path)?;
    Ok(Some(MergedTable { table, summary, path }))
}
