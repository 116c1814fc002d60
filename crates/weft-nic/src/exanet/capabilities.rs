//! The capabilities of the interface: memory, mailboxes, the reduction module, and what is known ahead.

use super::node::ExanetNode;
use crate::allreduce::{AcceleratorError, AcceleratorLimits, AllreduceRequest};
use crate::capability::{AllreduceAccelerator, Capabilities, HostMemory, Mailboxes, QuietTime};
use crate::gvas::Pdid;
use crate::host::Host;
use crate::memory::CoreWork;
use crate::ports::Crossing;
use weft_units::{Bytes, Span, Time};

impl<H: Host> Capabilities for ExanetNode<'_, '_, '_, H> {
    fn memory(&mut self) -> Option<&mut dyn HostMemory> {
        Some(self)
    }

    fn mailboxes(&mut self) -> Option<&mut dyn Mailboxes> {
        Some(self)
    }

    fn quiet_time(&mut self) -> Option<&mut dyn QuietTime> {
        Some(self)
    }

    fn accelerator(&mut self) -> Option<&mut dyn AllreduceAccelerator> {
        Some(self)
    }
}

impl<H: Host> HostMemory for ExanetNode<'_, '_, '_, H> {
    fn in_memory(&mut self, moved: Bytes, alone: Span, from: Time) -> Time {
        let (now, work) = (self.fabric.now(), CoreWork { moved, alone, from });
        self.hardware.memory.channel.stream(work, now, &self.parameters.memory)
    }
}

impl<H: Host> Mailboxes for ExanetNode<'_, '_, '_, H> {
    fn open(&mut self, interface: u16, domain: Pdid) {
        let now = self.fabric.now();
        self.port(|| Crossing::Opened { interface, domain });
        if u32::from(interface) < self.parameters.packetizer.interfaces {
            self.hardware.packetizer.open(interface, domain);
            if let Some(packetizer) = self.hardware.packetizer_in_place() {
                packetizer.open(interface, domain, now);
            }
        }
        if u32::from(interface) < self.parameters.mailbox.interfaces {
            self.hardware.mailbox.open(interface, domain);
            if let Some(mailbox) = self.hardware.mailbox_in_place() {
                mailbox.open(interface, domain, now);
            }
        }
    }

    fn taken(&mut self, interface: u16, at: Time) {
        if u32::from(interface) < self.parameters.mailbox.interfaces {
            self.hardware.take_entry(interface, at);
        }
    }
}

impl<H: Host> QuietTime for ExanetNode<'_, '_, '_, H> {
    fn quiet_until(&self) -> Time {
        let now = self.fabric.now();
        let arrives = now.saturating_add(self.parameters.least_notice());
        let noticed = self.hardware.deliveries.front().map_or(Time::NEVER, |message| message.noticed);
        let failed = self.hardware.failures.first().map_or(Time::NEVER, |(at, _)| *at);
        let next = arrives.min(noticed).min(failed);
        Time::from_ps(next.as_ps().saturating_sub(1)).max(now)
    }
}

impl<H: Host> AllreduceAccelerator for ExanetNode<'_, '_, '_, H> {
    fn limits(&self) -> Option<AcceleratorLimits> {
        self.parameters.allreduce.map(|allreduce| allreduce.limits)
    }

    fn allreduce(&mut self, request: AllreduceRequest, at: Time) -> Result<u32, AcceleratorError> {
        self.reduce(request, at)
    }
}
