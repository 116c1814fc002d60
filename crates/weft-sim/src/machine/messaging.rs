//! `[messaging]`: what the library between program and interface costs, and its algorithms.

use super::diagnostic::Problem;
use super::document::Item;
use super::read::{Attribution, Entry, FromItem, Readable, Reader, attribution_schema, names, section};
use super::value::{Bounds, RateLimit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use weft_msg::{
    ActiveMessages, Algorithm, ClearToSend, OneSidedPath, Rendezvous, SynchronousSends, WaitCosts,
};
use weft_trace::op::Collective;
use weft_units::{BitRate, Bytes, Span};

section! {
    /// The messaging library.
    struct RawMessaging {
        /// The table of collective algorithms to go by.
        profile: Entry<Profile>,
        /// Who moves messages on while the program computes.
        progress: Entry<Progress>,
        /// Largest payload that is sent without asking.
        eager_limit: Entry<Bytes>,
        /// Standard sends of at most so much are complete as soon as they are posted.
        buffered_limit: Option<Entry<Bytes>>,
        /// Whether an eager send is complete as soon as it is posted.
        eager_buffered: Entry<bool>,
        /// Whether the receiver acknowledges announced data, which completes the send.
        rendezvous_ack: Entry<bool>,
        /// How a synchronous send learns that it has been matched: announced, or by a receipt.
        synchronous_sends: Option<Entry<SynchronousSends>>,
        /// Who moves announced data: the sender writes it, or the receiver reads it.
        rendezvous: Option<Entry<Rendezvous>>,
        /// Who acts on a clear to send: the sender's processor, or its interface.
        clear_to_send: Option<Entry<ClearToSend>>,
        /// Who carries out put and get at the target.
        one_sided: Option<Entry<OneSidedPath>>,
        /// Who carries out accumulate, fetch-and-op and compare-and-swap at the target.
        atomics: Option<Entry<OneSidedPath>>,
        /// What one-sided communication says by messages of the library's own.
        active_messages: Option<Entry<ActiveMessages>>,
        /// Envelope of an eager message, beside packet headers.
        eager_header: Entry<Bytes>,
        /// A control message of the rendezvous, beside packet headers.
        control_bytes: Entry<Bytes>,
        /// Envelope of announced data, beside packet headers.
        data_header: Entry<Bytes>,
        /// Starting a send.
        send_call: Entry<Span>,
        /// Posting a receive.
        receive_call: Entry<Span>,
        /// A call that waits.
        wait_call: Entry<Span>,
        /// When it costs that: always (`call`), or, for each poll that finds nothing, `host.poll` if there is one (`polls`).
        wait_costs: Option<Entry<WaitCosts>>,
        /// Starting a collective, beside its sends and receives.
        collective_call: Entry<Span>,
        /// Taking an arrived message from the interface.
        receive_message: Entry<Span>,
        /// Posting a control message.
        control_send: Entry<Span>,
        /// Taking an arrived control message.
        control_receive: Entry<Span>,
        /// Handing announced data to the interface.
        data_send: Entry<Span>,
        /// Looking at one entry of the posted or the unexpected queue.
        matching_entry: Entry<Span>,
        /// Copy of an eager message into the interface.
        send_copy_rate: Entry<RateLimit>,
        /// Copy of an eager message out of the interface.
        receive_copy_rate: Entry<RateLimit>,
        /// Copy within memory.
        memory_copy_rate: Entry<RateLimit>,
        /// Bytes of operand that a reduction takes in.
        reduction_rate: Entry<RateLimit>,
        /// Rules that go before the profile's; the first that holds counts.
        algorithms: Option<Vec<Rule>>,
    }
}

/// The tables of algorithms that ship.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Profile {
    /// ExaNet-MPI (TR-488 §5.2.1, §6.1.3).
    Exanest,
    /// MPICH 3.2.1.
    Mpich321,
    /// MPICH 5.0.
    Mpich5,
    /// Open MPI 4.1.
    Openmpi41,
}

names!(Profile, "Profile", "a table of algorithms", {
    Profile::Exanest => Profile::Exanest, "exanest";
    Profile::Mpich321 => Profile::Mpich321, "mpich-3.2.1";
    Profile::Mpich5 => Profile::Mpich5, "mpich-5";
    Profile::Openmpi41 => Profile::Openmpi41, "openmpi-4.1";
});

names!(SynchronousSends, "SynchronousSends", "synchronous sends", {
    SynchronousSends::Announced => SynchronousSends::Announced, "announced";
    SynchronousSends::Receipt => SynchronousSends::Receipt, "receipt";
});

names!(ActiveMessages, "ActiveMessages", "active messages", {
    ActiveMessages::None => ActiveMessages::None, "none";
    ActiveMessages::Mpich5 => ActiveMessages::Mpich5, "mpich-5";
});

names!(Rendezvous, "Rendezvous", "a rendezvous", {
    Rendezvous::Write => Rendezvous::Write, "write";
    Rendezvous::Read => Rendezvous::Read, "read";
});

names!(ClearToSend, "ClearToSend", "who acts on a clear to send", {
    ClearToSend::Sender => ClearToSend::Sender, "sender";
    ClearToSend::Interface => ClearToSend::Interface, "interface";
});

names!(WaitCosts, "WaitCosts", "costs of a wait", {
    WaitCosts::Call => WaitCosts::Call, "call";
    WaitCosts::Polls => WaitCosts::Polls, "polls";
});

names!(OneSidedPath, "OneSidedPath", "who carries out one-sided operations", {
    OneSidedPath::Native => OneSidedPath::Native, "native";
    OneSidedPath::Emulated => OneSidedPath::Emulated, "emulated";
});

/// Who moves messages on while the program computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Progress {
    /// Nobody: it happens inside the program's calls.
    Call,
    /// A thread of the library.
    Thread,
    /// The interface.
    Nic,
}

names!(Progress, "Progress", "a progress rule", {
    Progress::Call => Progress::Call, "call";
    Progress::Thread => Progress::Thread, "thread";
    Progress::Nic => Progress::Nic, "nic";
});

names!(Collective, "Collective", "a collective", {
    Collective::Barrier => Collective::Barrier, "barrier";
    Collective::Broadcast => Collective::Broadcast, "broadcast";
    Collective::Reduce => Collective::Reduce, "reduce";
    Collective::Allreduce => Collective::Allreduce, "allreduce";
    Collective::Gather => Collective::Gather, "gather";
    Collective::Gatherv => Collective::Gatherv, "gatherv";
    Collective::Scatter => Collective::Scatter, "scatter";
    Collective::Scatterv => Collective::Scatterv, "scatterv";
    Collective::Allgather => Collective::Allgather, "allgather";
    Collective::Allgatherv => Collective::Allgatherv, "allgatherv";
    Collective::Alltoall => Collective::Alltoall, "alltoall";
    Collective::Alltoallv => Collective::Alltoallv, "alltoallv";
    Collective::ReduceScatter => Collective::ReduceScatter, "reduce-scatter";
    Collective::ReduceScatterBlock => Collective::ReduceScatterBlock, "reduce-scatter-block";
    Collective::Scan => Collective::Scan, "scan";
    Collective::Exscan => Collective::Exscan, "exscan";
    Collective::NeighborAllgather => Collective::NeighborAllgather, "neighbor-allgather";
    Collective::NeighborAllgatherv => Collective::NeighborAllgatherv, "neighbor-allgatherv";
    Collective::NeighborAlltoall => Collective::NeighborAlltoall, "neighbor-alltoall";
    Collective::NeighborAlltoallv => Collective::NeighborAlltoallv, "neighbor-alltoallv";
});

names!(Algorithm, "Algorithm", "an algorithm", {
    Algorithm::Binomial => Algorithm::Binomial, "binomial";
    Algorithm::BinomialAtOnce => Algorithm::BinomialAtOnce, "binomial-at-once";
    Algorithm::RecursiveDoubling => Algorithm::RecursiveDoubling, "recursive-doubling";
    Algorithm::RecursiveHalving => Algorithm::RecursiveHalving, "recursive-halving";
    Algorithm::Ring => Algorithm::Ring, "ring";
    Algorithm::PipelinedRing => Algorithm::PipelinedRing, "pipelined-ring";
    Algorithm::Rabenseifner => Algorithm::Rabenseifner, "rabenseifner";
    Algorithm::Bruck => Algorithm::Bruck, "bruck";
    Algorithm::Pairwise => Algorithm::Pairwise, "pairwise";
    Algorithm::Linear => Algorithm::Linear, "linear";
    Algorithm::Dissemination => Algorithm::Dissemination, "dissemination";
    Algorithm::ScatterRing => Algorithm::ScatterRing, "scatter-ring";
    Algorithm::ScatterDoubling => Algorithm::ScatterDoubling, "scatter-doubling";
    Algorithm::Scattered => Algorithm::Scattered, "scattered";
    Algorithm::Chain => Algorithm::Chain, "chain";
    Algorithm::BinaryTree => Algorithm::BinaryTree, "binary-tree";
    Algorithm::InOrderBinaryTree => Algorithm::InOrderBinaryTree, "in-order-binary-tree";
    Algorithm::SplitBinaryTree => Algorithm::SplitBinaryTree, "split-binary-tree";
    Algorithm::Knomial => Algorithm::Knomial, "knomial";
    Algorithm::NeighborExchange => Algorithm::NeighborExchange, "neighbor-exchange";
    Algorithm::Butterfly => Algorithm::Butterfly, "butterfly";
    Algorithm::NonOverlapping => Algorithm::NonOverlapping, "non-overlapping";
    Algorithm::Accelerator => Algorithm::Accelerator, "accelerator";
});

/// One rule: `algorithm` carries out `operation` where ranks and bytes lie in the bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The collective.
    pub operation: Collective,
    /// Members of the communicator.
    pub ranks: Bounds,
    /// Bytes.
    pub bytes: Bounds,
    /// How it is carried out.
    pub algorithm: Algorithm,
}

/// A rule is one value, attributed as a whole.
impl FromItem for Rule {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Rule> {
        let known = [&["operation", "ranks", "bytes", "algorithm"][..], &Attribution::KEYS].concat();
        let entries = reader.table(item, path, &known)?;
        let part = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item);
        let operation = needed(part("operation"), item, path, "operation", reader);
        let algorithm: Option<Algorithm> = needed(part("algorithm"), item, path, "algorithm", reader);
        let ranks = bounds(part("ranks"), reader);
        let bytes = bounds(part("bytes"), reader);
        // A rule that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        if let (Some(operation), Some(algorithm)) = (operation, algorithm)
            && !algorithm.performs(operation)
        {
            let able: Vec<&str> = Algorithm::performing(operation).map(Algorithm::name).collect();
            let problem = Problem::new(
                format!("{algorithm} cannot carry out {}", operation.show()),
                "does not fit",
                if able.is_empty() {
                    "leave this rule out: no algorithm carries it out yet".to_owned()
                } else {
                    format!("write algorithm = \"{}\"", able.join("\" or \""))
                },
            );
            reader.report(part("algorithm").map_or(item.location, |part| part.location), problem);
            return None;
        }
        let rule = Rule { operation: operation?, ranks: ranks?, bytes: bytes?, algorithm: algorithm? };
        let constant = attribution.constant(rule.to_string(), path, location, reader)?;
        reader.constants.push(constant);
        Some(rule)
    }
}

fn needed<T: Readable>(
    part: Option<&Item>,
    row: &Item,
    path: &str,
    key: &str,
    reader: &mut Reader<'_>,
) -> Option<T> {
    let Some(part) = part else {
        reader.missing(row.location, path, key);
        return None;
    };
    T::read(&part.value).map_err(|problem| reader.report(part.location, problem)).ok()
}

fn bounds(part: Option<&Item>, reader: &mut Reader<'_>) -> Option<Bounds> {
    let Some(part) = part else { return Some(Bounds { first: 0, last: None }) };
    Bounds::read(&part.value).map_err(|problem| reader.report(part.location, problem)).ok()
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { operation, ranks, bytes, algorithm } = self;
        write!(f, "{} on {ranks} ranks of {bytes} bytes: {}", operation.show(), algorithm.show())
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = attribution_schema();
        properties.insert("operation".to_owned(), Collective::schema());
        properties.insert("ranks".to_owned(), Bounds::schema());
        properties.insert("bytes".to_owned(), Bounds::schema());
        properties.insert("algorithm".to_owned(), Algorithm::schema());
        json_schema!({
            "type": "object",
            "description": "`algorithm` carries out `operation` where ranks and bytes lie in the bounds.",
            "properties": properties,
            "required": ["operation", "algorithm"],
            "additionalProperties": false,
        })
    }
}

/// What the messaging library costs, and its algorithms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Messaging {
    /// The table of collective algorithms to go by, after `rules`.
    pub profile: Profile,
    /// Rules that go before the profile's; the first that holds counts.
    pub rules: Vec<Rule>,
    /// Who moves messages on while the program computes.
    pub progress: Progress,
    /// Largest payload that is sent without asking.
    pub eager_limit: Bytes,
    /// Standard sends of at most so much are complete as soon as they are posted; `None`: only those that are sent without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffered_limit: Option<Bytes>,
    /// Whether an eager send is complete as soon as it is posted.
    pub eager_buffered: bool,
    /// Whether the receiver acknowledges announced data, which completes the send.
    pub rendezvous_ack: bool,
    /// How a synchronous send learns that it has been matched; `announced` where the file does not say.
    #[serde(default)]
    pub synchronous_sends: SynchronousSends,
    /// Who moves announced data; `write` where the file does not say.
    pub rendezvous: Rendezvous,
    /// Who acts on a clear to send; `sender` where the file does not say.
    pub clear_to_send: ClearToSend,
    /// Who carries out put and get; `emulated` where the file does not say.
    pub one_sided: OneSidedPath,
    /// Who carries out accumulate, fetch-and-op and compare-and-swap; `emulated` where the file does not say.
    pub atomics: OneSidedPath,
    /// What one-sided communication says by messages of the library's own; nothing where the file does not say.
    #[serde(default)]
    pub active_messages: ActiveMessages,
    /// Envelope of an eager message, beside packet headers.
    pub eager_header: Bytes,
    /// A control message of the rendezvous, beside packet headers.
    pub control_bytes: Bytes,
    /// Envelope of announced data, beside packet headers.
    pub data_header: Bytes,
    /// Starting a send.
    pub send_call: Span,
    /// Posting a receive.
    pub receive_call: Span,
    /// A call that waits.
    pub wait_call: Span,
    /// When it costs that; `call` where the file does not say.
    #[serde(default)]
    pub wait_costs: WaitCosts,
    /// Starting a collective, beside its sends and receives.
    pub collective_call: Span,
    /// Taking an arrived message from the interface.
    pub receive_message: Span,
    /// Posting a control message.
    pub control_send: Span,
    /// Taking an arrived control message.
    pub control_receive: Span,
    /// Handing announced data to the interface.
    pub data_send: Span,
    /// Looking at one entry of the posted or the unexpected queue.
    pub matching_entry: Span,
    /// Copy of an eager message into the interface; `None`: it costs nothing.
    pub send_copy_rate: Option<BitRate>,
    /// Copy of an eager message out of the interface; `None`: it costs nothing.
    pub receive_copy_rate: Option<BitRate>,
    /// Copy within memory; `None`: it costs nothing.
    pub memory_copy_rate: Option<BitRate>,
    /// Bytes of operand that a reduction takes in; `None`: it costs nothing.
    pub reduction_rate: Option<BitRate>,
}

impl From<RawMessaging> for Messaging {
    /// Every value stands on its own: there is nothing left to check.
    fn from(raw: RawMessaging) -> Messaging {
        Messaging {
            profile: raw.profile.value,
            rules: raw.algorithms.unwrap_or_default(),
            progress: raw.progress.value,
            eager_limit: raw.eager_limit.value,
            buffered_limit: raw.buffered_limit.map(|entry| entry.value),
            eager_buffered: raw.eager_buffered.value,
            rendezvous_ack: raw.rendezvous_ack.value,
            synchronous_sends: raw.synchronous_sends.map(|entry| entry.value).unwrap_or_default(),
            rendezvous: raw.rendezvous.map(|entry| entry.value).unwrap_or_default(),
            clear_to_send: raw.clear_to_send.map(|entry| entry.value).unwrap_or_default(),
            one_sided: raw.one_sided.map(|entry| entry.value).unwrap_or_default(),
            atomics: raw.atomics.map(|entry| entry.value).unwrap_or_default(),
            active_messages: raw.active_messages.map(|entry| entry.value).unwrap_or_default(),
            eager_header: raw.eager_header.value,
            control_bytes: raw.control_bytes.value,
            data_header: raw.data_header.value,
            send_call: raw.send_call.value,
            receive_call: raw.receive_call.value,
            wait_call: raw.wait_call.value,
            wait_costs: raw.wait_costs.map(|entry| entry.value).unwrap_or_default(),
            collective_call: raw.collective_call.value,
            receive_message: raw.receive_message.value,
            control_send: raw.control_send.value,
            control_receive: raw.control_receive.value,
            data_send: raw.data_send.value,
            matching_entry: raw.matching_entry.value,
            send_copy_rate: raw.send_copy_rate.value.0,
            receive_copy_rate: raw.receive_copy_rate.value.0,
            memory_copy_rate: raw.memory_copy_rate.value.0,
            reduction_rate: raw.reduction_rate.value.0,
        }
    }
}
