//! The process manager's side of PMI-1, the text protocol by which MPICH's ranks find each other.
//!
//! ```text
//!   rank                                server
//!   cmd=init pmi_version=1 …       ──►
//!                                  ◄──  cmd=response_to_init … rc=0
//!   cmd=put kvsname=… key=… value=…──►  kept in one map for the job
//!   cmd=barrier_in                 ──►  the rank leaves virtual time
//!                                  ◄──  cmd=barrier_out, when the run releases all
//! ```
//! # Source
//! MPICH, `src/pmi/src/pmi_v1.c`, and P. Balaji et al., "PMI: a scalable parallel process-management
//! interface for extreme-scale systems", EuroMPI 2010.
//!
//! # Not modelled
//! Spawning and publishing names, which are refused; PMI-2 and PMIx.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Longest line of a rank that is read; a longer one ends the connection.
pub const LONGEST_LINE: usize = 64 << 10;
const KEY: usize = 64;
const VALUE: usize = 1024;

/// The request that a rank's line makes of its process manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// To be answered with this line.
    Answer(String),
    /// The rank is in the barrier.
    Barrier,
    /// All ranks are to be ended, with this exit status.
    Abort(i32),
    /// No line of the protocol: why.
    Nonsense(String),
}

/// The state of a job's process manager.
#[derive(Debug)]
pub struct Pmi {
    ranks: u32,
    /// Names the job.
    space: String,
    values: BTreeMap<String, String>,
    /// Ranks that have initialized and not finalized.
    inside: BTreeSet<u32>,
    /// A spawn request takes several lines: of these ranks.
    spawning: BTreeSet<u32>,
}

impl Pmi {
    /// The process manager of so many ranks, each on a node of its own as far as MPI is concerned. The name
    /// of the job must be its own: MPICH names shared memory after it, which another job of the same name
    /// would take for its.
    pub fn new(ranks: u32, job: &str) -> Pmi {
        let mapping = format!("(vector,(0,{ranks},1))");
        let values = BTreeMap::from([("PMI_process_mapping".to_owned(), mapping)]);
        Pmi {
            ranks,
            space: format!("weft-{job}"),
            values,
            inside: BTreeSet::new(),
            spawning: BTreeSet::new(),
        }
    }

    /// Whether a rank has initialized and not finalized.
    pub fn is_inside(&self, rank: u32) -> bool {
        self.inside.contains(&rank)
    }

    /// Takes a line of `rank`, without its end.
    pub fn line(&mut self, rank: u32, line: &str) -> Asked {
        if self.spawning.contains(&rank) {
            if line != "endcmd" {
                return Asked::Answer(String::new());
            }
            self.spawning.remove(&rank);
            // Where standard error takes nothing, the program hears it from its own call.
            let _ = writeln!(
                std::io::stderr(),
                "weft: rank {rank}: MPI_Comm_spawn does not work under weft run: a job has the ranks that it \
                 was started with (-n)"
            );
            return Asked::Answer("cmd=spawn_result rc=-1 msg=weft_does_not_spawn\n".to_owned());
        }
        if line == "mcmd=spawn" {
            self.spawning.insert(rank);
            return Asked::Answer(String::new());
        }
        let words: BTreeMap<&str, &str> =
            line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let word = |key: &str| words.get(key).copied();
        let answer = match word("cmd") {
            Some("init") => {
                self.inside.insert(rank);
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".to_owned()
            }
            Some("get_maxes") => {
                format!("cmd=maxes kvsname_max=256 keylen_max={KEY} vallen_max={VALUE}\n")
            }
            Some("get_appnum") => "cmd=appnum appnum=0\n".to_owned(),
            Some("get_my_kvsname") => format!("cmd=my_kvsname kvsname={}\n", self.space),
            Some("get_universe_size") => format!("cmd=universe_size size={}\n", self.ranks),
            Some("put") => match (word("key"), word("value")) {
                (Some(key), Some(value)) if key.len() <= KEY && value.len() <= VALUE => {
                    self.values.insert(key.to_owned(), value.to_owned());
                    "cmd=put_result rc=0 msg=success\n".to_owned()
                }
                _ => "cmd=put_result rc=-1 msg=bad_key_or_value\n".to_owned(),
            },
            Some("get") => match word("key").and_then(|key| self.values.get(key)) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown\n".to_owned(),
            },
            Some("barrier_in") => return Asked::Barrier,
            Some("finalize") => {
                self.inside.remove(&rank);
                "cmd=finalize_ack\n".to_owned()
            }
            Some("abort") => {
                return Asked::Abort(word("exitcode").and_then(|code| code.parse().ok()).unwrap_or(1));
            }
            Some(command @ ("publish_name" | "unpublish_name" | "lookup_name")) => {
                let verb = command.trim_end_matches("_name");
                format!("cmd={verb}_result rc=-1 msg=weft_has_no_name_service\n")
            }
            Some(other) => return Asked::Nonsense(format!("an unknown command `{other}`")),
            None => return Asked::Nonsense("a line without a command".to_owned()),
        };
        Asked::Answer(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(pmi: &mut Pmi, line: &str) -> String {
        match pmi.line(0, line) {
            Asked::Answer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_one_rank_puts_another_gets() {
        let mut pmi = Pmi::new(3, "1");
        assert!(answer(&mut pmi, "cmd=init pmi_version=1 pmi_subversion=1").contains("rc=0"));
        assert_eq!(answer(&mut pmi, "cmd=get_universe_size"), "cmd=universe_size size=3\n");
        assert!(answer(&mut pmi, "cmd=put kvsname=weft key=a value=x#y").contains("rc=0"));
        assert!(answer(&mut pmi, "cmd=get kvsname=weft key=a").ends_with("value=x#y\n"));
        assert!(answer(&mut pmi, "cmd=get kvsname=weft key=b").contains("rc=-1"));
        assert!(
            answer(&mut pmi, "cmd=get kvsname=weft key=PMI_process_mapping").contains("(vector,(0,3,1))")
        );
        assert_eq!(pmi.line(1, "cmd=barrier_in"), Asked::Barrier);
        assert_eq!(pmi.line(1, "cmd=abort exitcode=7"), Asked::Abort(7));
    }

    #[test]
    fn spawning_is_refused_when_its_lines_are_over() {
        let mut pmi = Pmi::new(1, "1");
        for line in ["mcmd=spawn", "nprocs=2", "execname=x"] {
            assert_eq!(answer(&mut pmi, line), "");
        }
        assert!(answer(&mut pmi, "endcmd").contains("rc=-1"));
    }

    proptest! {
        /// Catches a line that brings the process manager down.
        #[test]
        fn any_line_is_answered_or_refused(lines in prop::collection::vec(".{0,80}", 0..20)) {
            let mut pmi = Pmi::new(4, "1");
            for line in &lines {
                pmi.line(2, line);
            }
            let spawning = lines.iter().any(|line| line == "mcmd=spawn");
            prop_assert!(answer(&mut pmi, "cmd=get_maxes").contains("keylen_max") || spawning);
        }
    }
}
