//! Wall time of a message for the first of 10,000 exactly matched entries, and for the last.
//!
//! ```text
//! cargo bench -p weft-nic --bench match_list -- [entries] [messages]
//! ```
//! Prints one JSON object; times are processor times of the thread.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up ends")]

use weft_portals_objects::entry::{EntryOptions, ListEntry};
use weft_portals_objects::limits::Limits;
use weft_portals_objects::match_list::ListKind;
use weft_portals_objects::memory::Region;
use weft_portals_objects::portal_table::TableEntryOptions;
use weft_portals_objects::request::{Action, Header, Initiator, ProcessId, Request};
use weft_portals_objects::{Memory, NetworkInterface};

/// Memory that is not looked at.
struct NoBytes;

impl Memory for NoBytes {
    fn read(&self, _: u64, length: u64) -> Option<Vec<u8>> {
        Some(vec![0; length as usize])
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Option<()> {
        Some(())
    }
}

/// Processor time of this thread in seconds: the first number of schedstat, in ns (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (entries, messages) = (number(0, 10_000), number(1, 200_000));
    let process = ProcessId { nid: 0, pid: 0 };
    let initiator = Initiator { process, user: 0 };
    let mut interface = NetworkInterface::new(initiator, &Limits::MOST);
    interface.allocate_table_entry(Some(0), TableEntryOptions::default(), None).unwrap();
    for match_bits in 0..entries {
        let entry = ListEntry {
            region: Region::one(0, 64),
            counting: None,
            user: ListEntry::ANY_USER,
            options: EntryOptions { puts: true, ..EntryOptions::default() },
            source: process,
            match_bits,
            ignore_bits: 0,
            least_free: 0,
            word: 0,
        };
        interface.append((0, ListKind::Priority), entry, &mut NoBytes).unwrap();
    }
    let mut per_message = |match_bits| {
        let (action, portal, remote_offset, length, header_data) = (Action::Put, 0, 0, 8, 0);
        let header = Header { initiator, action, portal, match_bits, remote_offset, length, header_data };
        let request = Request { header, operation: None, data: vec![0; 8], operand: Vec::new() };
        let before = processor_seconds();
        let searched: u64 = (0..messages).map(|_| u64::from(interface.request(&request, &mut NoBytes))).sum();
        assert_eq!(searched, messages * (match_bits + 1));
        (processor_seconds() - before) * 1e9 / messages as f64
    };
    let (first, last) = (per_message(0), per_message(entries - 1));
    let ratio = last / first;
    let times = format!("\"first_ns\": {first:.1}, \"last_ns\": {last:.1}");
    println!("{{\"entries\": {entries}, {times}, \"last_over_first\": {ratio:.3}}}");
}
