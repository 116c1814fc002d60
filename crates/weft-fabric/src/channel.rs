//! Virtual channels of a switch's ports, and how they are numbered.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// A virtual channel of a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Channel {
    pub(crate) port: u16,
    pub(crate) vc: u8,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}, virtual channel {}", self.port, self.vc)
    }
}

/// Numbers the channels of a switch, so that a table of them is flat: `port << shift | vc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelNumbers {
    shift: u32,
}

impl ChannelNumbers {
    /// The numbers for `vcs` virtual channels per port.
    pub(crate) fn new(vcs: u32) -> ChannelNumbers {
        ChannelNumbers { shift: vcs.next_power_of_two().ilog2() }
    }

    /// Numbers that `ports` ports take, those of channels that do not exist included.
    pub(crate) fn of_ports(self, ports: usize) -> usize {
        ports << self.shift
    }

    /// The number of a channel.
    #[inline(always)]
    pub(crate) fn number(self, channel: Channel) -> usize {
        self.at(channel.port.into(), channel.vc)
    }

    /// The number of a virtual channel of a port.
    #[inline(always)]
    pub(crate) fn at(self, port: usize, vc: u8) -> usize {
        port << self.shift | usize::from(vc)
    }

    /// The numbers of a port's channels.
    #[inline(always)]
    pub(crate) fn of_port(self, port: usize) -> Range<usize> {
        port << self.shift..(port + 1) << self.shift
    }

    /// The port of a channel's number.
    #[inline(always)]
    pub(crate) fn port(self, number: usize) -> usize {
        number >> self.shift
    }

    /// The channel of a number.
    #[inline(always)]
    pub(crate) fn channel(self, number: usize) -> Channel {
        let vc = number & ((1 << self.shift) - 1);
        Channel { port: (number >> self.shift) as u16, vc: vc as u8 }
    }
}
