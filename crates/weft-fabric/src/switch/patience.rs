//! Nobody waits for ever: requests whose output is free only while their input is busy.
//!
//! ```text
//!   input 4  vc 0  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇   one packet after the other to output 1, which nobody else wants
//!            vc 1  ·······················  wants output 3:
//!   output 3       ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇     from input 0; whenever it is free, input 4 is busy
//! ```
//! An input reads one packet at a time, and an output that is free takes whoever can go. So a request could be passed over by
//! its output, whose turn it is, for as long as others have packets: arbiters that take turns are fair to requests that can go
//! only. An output that has granted others before a request so often, for no other reason than that its input was busy, keeps that input:
//! it begins no packet to another output, and the request is next. It has its credit, and output and input become free within the
//! time of a packet each: what is kept waits for nobody who may wait for it.
//!
//! # Source
//! None: the documents name no rule, and a switch that lets a packet wait for ever would have been noticed.

use super::port::Ports;
use serde::{Deserialize, Serialize};
use weft_units::Time;

/// So many packets may go before a request whose input is busy.
const PATIENCE: u8 = 16;

/// What an output owes to a request that it has passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Debt {
    /// The request: it is at the head of its queue, and wants this output.
    pub(super) request: u16,
    /// How often others have gone before it.
    times: u8,
    /// Whether its input is kept for it.
    keeps: bool,
}

/// The debts of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Patience {
    /// By output.
    debts: Box<[Option<Debt>]>,
    /// By input: the output that keeps it.
    kept_by: Box<[Option<u16>]>,
    /// Inputs that are kept.
    kept: u16,
}

impl Patience {
    /// Of a switch of so many ports.
    pub(super) fn new(ports: usize) -> Patience {
        Patience { debts: vec![None; ports].into(), kept_by: vec![None; ports].into(), kept: 0 }
    }

    /// What each output owes.
    pub(super) fn debts(&self) -> &[Option<Debt>] {
        &self.debts
    }

    /// With these debts, of which those of one input must not both keep it; `None`: they do.
    pub(super) fn of(debts: Vec<Option<Debt>>, vc_shift: u32) -> Option<Patience> {
        let mut patience = Patience::new(debts.len());
        for (output, debt) in debts.iter().enumerate() {
            if let Some(Debt { request, keeps: true, .. }) = debt {
                let kept_by = patience.kept_by.get_mut(usize::from(*request) >> vc_shift)?;
                if kept_by.replace(output as u16).is_some() {
                    return None;
                }
                patience.kept += 1;
            }
        }
        patience.debts = debts.into();
        Some(patience)
    }

    /// The request that an output owes something to.
    #[inline]
    pub(super) fn owed(&self, output: usize) -> Option<usize> {
        self.debts[output].map(|debt| usize::from(debt.request))
    }

    /// When it is worth asking again whether an input, which is kept for another output, can send to this one; `None`: it can now.
    #[inline(always)]
    pub(super) fn not_before(&self, input: usize, output: usize, ports: &Ports) -> Option<Time> {
        if self.kept == 0 {
            return None;
        }
        let keeper = self.kept_by[input].map(usize::from).filter(|keeper| *keeper != output)?;
        Some(ports.look_at[keeper]).filter(|look_at| *look_at != Time::MAX)
    }

    /// An output has granted a request while its input was busy with another's packet (`passed_over`), or none was passed over.
    /// Says which request it owes so much that it is next, if it could go but for its input.
    pub(super) fn granted(
        &mut self,
        output: usize,
        request: usize,
        passed_over: Option<usize>,
        vc_shift: u32,
        has_credit: impl FnOnce(usize) -> bool,
    ) -> Option<u16> {
        let debt = &mut self.debts[output];
        match debt {
            Some(paid) if usize::from(paid.request) == request => {
                let keeps = paid.keeps;
                *debt = None;
                if keeps {
                    self.let_go(request >> vc_shift);
                }
                return None;
            }
            Some(debt) => debt.times = debt.times.saturating_add(u8::from(passed_over.is_some())),
            None => {
                *debt = passed_over.map(|request| Debt { request: request as u16, times: 1, keeps: false });
            }
        }
        let debt = debt.as_mut().filter(|debt| debt.times >= PATIENCE)?;
        let input = usize::from(debt.request) >> vc_shift;
        let kept_by = &mut self.kept_by[input];
        if !has_credit(debt.request.into()) {
            if std::mem::take(&mut debt.keeps) {
                self.let_go(input);
            }
            return None;
        }
        if kept_by.is_none() {
            (*kept_by, debt.keeps) = (Some(output as u16), true);
            self.kept += 1;
        }
        debt.keeps.then_some(debt.request)
    }

    fn let_go(&mut self, input: usize) {
        self.kept_by[input] = None;
        self.kept -= 1;
    }
}
