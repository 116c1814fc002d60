//! The attributes of a node, and what it does.

use super::ChakraNotes;
use super::et_def::attribute_proto::Value;
use super::et_def::{ChakraNode, CollectiveCommType, NodeType};
use crate::flop_rate::FlopRate;
use weft_units::{Bytes, RankId, Span};

/// Longest computation in microseconds: 53 days.
const MAX_MICROSECONDS: u64 = (1 << 62) / 1_000_000;

/// Largest message: a pebibyte.
const MAX_BYTES: u64 = crate::weft::MAX_BYTES;

/// Cores of a rank.
pub(super) mod core {
    /// Computations of the device.
    pub(in super::super) const DEVICE: u32 = 0;
    /// Communication of the device, and memory.
    pub(in super::super) const COMMUNICATION: u32 = 1;
    /// The host.
    pub(in super::super) const HOST: u32 = 2;
}

/// A rank of a run, for what its nodes say.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankOfRun {
    pub(super) rank: RankId,
    pub(super) ranks: u32,
    pub(super) speed: Option<FlopRate>,
}

/// The deed of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NodeAction {
    Compute { span: Span, core: u32 },
    Send { to: RankId, bytes: Bytes, tag: i32 },
    Receive { from: RankId, bytes: Bytes, tag: i32 },
    Collective(NodeCollective),
}

/// A collective as ASTRA-sim has it: one size, among a named group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NodeCollective {
    pub(super) kind: CollectiveCommType,
    pub(super) bytes: u64,
    pub(super) group: String,
}

impl ChakraNode {
    /// The node in an error.
    pub(super) fn described(&self) -> String {
        let name: String = self.name.chars().filter(|letter| !letter.is_control()).take(40).collect();
        format!("node {} (`{name}`)", self.id)
    }

    /// The deed of the node. Errors with the reason and the mend.
    pub(super) fn action(&self, of: RankOfRun, notes: &mut ChakraNotes) -> Result<NodeAction, String> {
        let kind = NodeType::try_from(self.r#type).map_err(|_| {
            format!("type {} is none of 0 to 7; the file is damaged, copy it again", self.r#type)
        })?;
        let of_host = self.flag("is_cpu_op")?;
        let core = match (of_host, kind) {
            (true, _) => core::HOST,
            (false, NodeType::CompNode) => core::DEVICE,
            (false, _) => core::COMMUNICATION,
        };
        match kind {
            NodeType::InvalidNode | NodeType::MetadataNode => {
                Ok(NodeAction::Compute { span: Span::ZERO, core })
            }
            NodeType::MemLoadNode | NodeType::MemStoreNode => {
                notes.memory += 1;
                Ok(NodeAction::Compute { span: self.duration()?, core })
            }
            NodeType::CompNode => Ok(NodeAction::Compute { span: self.computation(of.speed, notes)?, core }),
            NodeType::CommSendNode | NodeType::CommRecvNode | NodeType::CommCollNode if of_host => {
                notes.of_host += 1;
                Ok(NodeAction::Compute { span: self.duration()?, core })
            }
            NodeType::CommSendNode => {
                self.is_own("comm_src", of)?;
                let (to, bytes) = (self.peer("comm_dst", of)?, Bytes::new(self.size()?));
                Ok(NodeAction::Send { to, bytes, tag: self.tag()? })
            }
            NodeType::CommRecvNode => {
                self.is_own("comm_dst", of)?;
                let (from, bytes) = (self.peer("comm_src", of)?, Bytes::new(self.size()?));
                Ok(NodeAction::Receive { from, bytes, tag: self.tag()? })
            }
            NodeType::CommCollNode => self.collective().map(NodeAction::Collective),
        }
    }

    fn collective(&self) -> Result<NodeCollective, String> {
        let kind = self.needed("comm_type")?;
        let kind = i32::try_from(kind).ok().and_then(|kind| CollectiveCommType::try_from(kind).ok());
        let Some(kind) = kind else {
            return Err("comm_type is none of 0 (ALL_REDUCE) to 9 (BARRIER); correct it".to_owned());
        };
        if let Some(Value::BoolList(dimensions)) = self.attribute("involved_dim")
            && dimensions.values.contains(&false)
        {
            let reason = "involved_dim leaves out dimensions of a network that is not known here: name the \
                          group by pg_name and its members in comm_group.json";
            return Err(reason.to_owned());
        }
        let bytes = if kind == CollectiveCommType::Barrier { 0 } else { self.size()? };
        let group = match self.attribute("pg_name") {
            None => String::new(),
            Some(Value::StringVal(name)) => name.clone(),
            Some(other) => {
                let number = integer(other).ok_or("pg_name is no text; write it as a string_val")?;
                number.to_string()
            }
        };
        Ok(NodeCollective { kind, bytes, group })
    }

    /// The time of a computation: as it was measured, or else that of its operations at a speed.
    fn computation(&self, speed: Option<FlopRate>, notes: &mut ChakraNotes) -> Result<Span, String> {
        let operations = self.integer("num_ops")?.unwrap_or(0);
        if self.duration_micros > 0 || operations == 0 {
            notes.timeless += u64::from(self.duration_micros == 0);
            return self.duration();
        }
        let speed = speed.ok_or(
            "has num_ops and no duration_micros: give the speed of a device with --speed, such as --speed 1T",
        )?;
        let span = speed.time(operations as f64);
        span.ok_or_else(|| {
            format!("{operations} operations take longer than 106 days; give the true --speed")
        })
    }

    fn duration(&self) -> Result<Span, String> {
        match self.duration_micros {
            micros if micros <= MAX_MICROSECONDS => Ok(Span::from_ns(micros * 1000)),
            micros => Err(format!("duration_micros {micros} is more than 53 days; correct it")),
        }
    }

    fn attribute(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// A whole number, in whichever type it is written; `None`: it is not there.
    fn integer(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.attribute(name) else { return Ok(None) };
        let number = integer(value).and_then(|number| u64::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("{name} is no whole number from 0 on; correct it"))
    }

    fn needed(&self, name: &str) -> Result<u64, String> {
        self.integer(name)?.ok_or_else(|| format!("has no {name}; add the attribute"))
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.attribute(name) {
            Some(Value::BoolVal(flag)) => Ok(*flag),
            _ => Ok(self.integer(name)?.is_some_and(|number| number > 0)),
        }
    }

    fn size(&self) -> Result<u64, String> {
        let size = self.needed("comm_size")?;
        match size <= MAX_BYTES {
            true => Ok(size),
            false => Err(format!("comm_size is {size}; at most {MAX_BYTES} bytes")),
        }
    }

    fn peer(&self, name: &str, of: RankOfRun) -> Result<RankId, String> {
        let rank = self.needed(name)?;
        let known = u32::try_from(rank).ok().filter(|rank| *rank < of.ranks);
        known.map(RankId).ok_or_else(|| {
            format!(
                "{name} {rank} is no rank: there are files of ranks 0 to {}; copy all of them",
                of.ranks - 1
            )
        })
    }

    /// Checks that the rank on whose side a message is named is the rank of the file.
    fn is_own(&self, name: &str, of: RankOfRun) -> Result<(), String> {
        match self.integer(name)? {
            Some(rank) if rank != u64::from(of.rank.0) => Err(format!(
                "{name} is {rank}, in the file of rank {}; name the files by their ranks",
                of.rank
            )),
            _ => Ok(()),
        }
    }

    fn tag(&self) -> Result<i32, String> {
        let tag = self.integer("comm_tag")?.unwrap_or(0);
        let known = u32::try_from(tag).ok();
        known.map(u32::cast_signed).ok_or_else(|| format!("comm_tag is {tag}; at most {}", u32::MAX))
    }
}

fn integer(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Int32Val(number) | Value::Sint32Val(number) | Value::Sfixed32Val(number) => (*number).into(),
        Value::Int64Val(number) | Value::Sint64Val(number) | Value::Sfixed64Val(number) => (*number).into(),
        Value::Uint32Val(number) | Value::Fixed32Val(number) => (*number).into(),
        Value::Uint64Val(number) | Value::Fixed64Val(number) => (*number).into(),
        Value::DoubleVal(_)
        | Value::FloatVal(_)
        | Value::BoolVal(_)
        | Value::BoolList(_)
        | Value::StringVal(_) => return None,
    })
}
