//! The process manager's side of PMI-1, the text protocol by which MPICH's ranks find each other.
//!
//! ```text
//!   rank                                server
//!   cmd=init pmi_version=1 …       ──►
//!                                  ◄──  cmd=response_to_init … rc=0
//!   cmd=put kvsname=… key=… value=…──►  kept in one map for the job
//!   cmd=barrier_in                 ──►  the rank leaves virtual time
//!                                  ◄──  cmd=barrier_out, when the run releases all
//!   cmd=get … key=-allgather-1-0   ──►
//!                                  ◄──  cmd=get_result …    of -allgather-1-0, and at once of -1-1 to -1-63
//! ```
//! Every rank of MPICH gets the addresses of all ranks, in order. A million questions of 1,024 ranks, each
//! with two changes of process, would take longer than all else. So answers go ahead of the questions. A rank
//! that asks for something else meanwhile would read them for it: the run ends there, with that reason.
//!
//! # Source
//! MPICH, `src/pmi/src/pmi_v1.c`, and for the order of questions `MPIR_pmi_allgather` in
//! `src/util/mpir_pmi.c`; P. Balaji et al., "PMI: a scalable parallel process-management
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
/// Answers that are sent at a time, of which a rank has asked for the first: far less than a socket holds.
const ANSWERS_AHEAD: u32 = 64;
/// Beginning of a value that is in pieces under other keys, which are asked for next.
const IN_PIECES: &str = "segments=";

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
    /// A question for another value than the answers that have gone ahead to the rank: it would read these.
    Disorder,
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
    /// Answers that have gone ahead, by rank.
    ahead: BTreeMap<u32, Ahead>,
}

/// Answers of an allgather that a rank has been sent, some of them before it asks.
#[derive(Debug)]
struct Ahead {
    /// The keys without the number of a rank.
    prefix: String,
    /// Ranks whose values it has been sent.
    sent: u32,
    /// Ranks whose values it has asked for, the first ones: no more than were sent.
    asked: u32,
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
            ahead: BTreeMap::new(),
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
            Some("get") => match self.get(rank, word("key").unwrap_or_default()) {
                Some(answer) => answer,
                None => return Asked::Disorder,
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

    /// The answer to a question for a value; with those to the questions that follow it, or nothing if it has
    /// gone ahead. `None`: others have gone ahead.
    fn get(&mut self, rank: u32, key: &str) -> Option<String> {
        let question = of_allgather(key);
        if let Some(ahead) = self.ahead.get_mut(&rank).filter(|ahead| ahead.asked < ahead.sent) {
            let is_next = question == Some((ahead.prefix.as_str(), ahead.asked));
            ahead.asked += 1;
            return is_next.then(String::new);
        }
        let Some((prefix, number)) = question else { return Some(self.value(key)) };
        // Who begins anew is in the next allgather, or is another program in the rank's place.
        let next = match self.ahead.get(&rank) {
            Some(ahead) if ahead.prefix == prefix && number > 0 => ahead.sent,
            _ => 0,
        };
        if number != next {
            return Some(self.value(key));
        }
        let is_whole = |value: &String| !value.starts_with(IN_PIECES);
        let goes_ahead = |key: &String| self.values.get(key).is_some_and(is_whole);
        let keys = (number..self.ranks.min(number.saturating_add(ANSWERS_AHEAD)))
            .map(|number| format!("{prefix}{number}"))
            .take_while(goes_ahead);
        let mut answers: Vec<String> = keys.map(|key| self.value(&key)).collect();
        if answers.is_empty() {
            // A value in pieces goes alone: they are asked for before the next rank's.
            answers.push(self.value(key));
        }
        let sent = number.saturating_add(answers.len() as u32);
        self.ahead.insert(rank, Ahead { prefix: prefix.to_owned(), sent, asked: number.saturating_add(1) });
        Some(answers.concat())
    }

    fn value(&self, key: &str) -> String {
        match self.values.get(key) {
            Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
            None => "cmd=get_result rc=-1 msg=key_not_found value=unknown\n".to_owned(),
        }
    }
}

/// The key of a rank's value in an allgather of MPICH, `-allgather-SEQUENCE-RANK`: without the rank, and the
/// rank.
fn of_allgather(key: &str) -> Option<(&str, u32)> {
    let (sequence, rank) = key.strip_prefix("-allgather-")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = &key[..key.len() - rank.len()];
    (is_number(sequence) && is_number(rank)).then(|| Some((prefix, rank.parse().ok()?)))?
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

    /// Catches a rank that reads the value of another rank than it has asked for, or waits for an answer.
    #[test]
    fn answers_that_go_ahead_are_those_to_the_questions() {
        let mut pmi = Pmi::new(200, "1");
        for rank in 0..200 {
            let value = if rank == 150 { "segments=2".to_owned() } else { format!("of{rank}") };
            answer(&mut pmi, &format!("cmd=put key=-allgather-1-{rank} value={value}"));
            answer(&mut pmi, &format!("cmd=put key=-allgather-2-{rank} value=second{rank}"));
        }
        answer(&mut pmi, "cmd=put key=-allgather-1-150-seg-1 value=piece");
        let mut unread = std::collections::VecDeque::new();
        let mut sendings = 0;
        let mut ask = |pmi: &mut Pmi, key: &str| {
            let sent = answer(pmi, &format!("cmd=get key={key}"));
            sendings += u32::from(!sent.is_empty());
            unread.extend(sent.lines().map(str::to_owned));
            unread.pop_front().unwrap()
        };
        for rank in 0..200 {
            let got = ask(&mut pmi, &format!("-allgather-1-{rank}"));
            if rank == 150 {
                assert!(got.ends_with("value=segments=2"), "{got}");
                assert!(ask(&mut pmi, "-allgather-1-150-seg-1").ends_with("value=piece"));
            } else {
                assert!(got.ends_with(&format!("value=of{rank}")), "{got}");
            }
        }
        for rank in 0..200 {
            let got = ask(&mut pmi, &format!("-allgather-2-{rank}"));
            assert!(got.ends_with(&format!("value=second{rank}")), "{got}");
        }
        assert!(ask(&mut pmi, "other").contains("rc=-1"));
        for rank in 0..100 {
            let got = ask(&mut pmi, &format!("-allgather-2-{rank}"));
            assert!(got.ends_with(&format!("value=second{rank}")), "{got}");
        }
        assert!(sendings < 20, "{sendings}");
        // The block that holds the last of these goes on.
        assert!(unread.front().is_some_and(|next| next.ends_with("value=second100")));
        // It is what the rank would read for any other question.
        assert_eq!(pmi.line(0, "cmd=get key=other"), Asked::Disorder);
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
