//! The configuration and status registers: a window of 32-bit registers behind an AXI4-Lite port.
//!
//! ```text
//!  number  address  register            access
//!       0     0x00  reset               write   clears the self-test, and reads as 0
//!       1     0x04  local_coord         write   z << 11 | y << 6 | x, as in a header
//!       2     0x08  threshold           write   free words below which a FIFO of data stops its aggregator
//!       3     0x0c  credit              write   words of each port's receiving FIFOs that the switch fills
//!      16     0x40  test_packets        write   packets that generator and consumer expect
//!      17     0x44  test_size           write   bytes of payload of each
//!      18     0x48  test_dest_x         write   their destination along X
//!      19     0x4c  test_start          write   1 starts the packet generator
//!      20     0x50  test_status         read    bits below
//!      21     0x54  test_received       read    packets that the consumer has taken
//!      22     0x58  test_wrong          read    packets among them whose payload was wrong
//!      23     0x5c  test_cycles_low     read    the performance counter
//!      24     0x60  test_cycles_high    read
//!      25     0x64  test_pattern        write   0: counter, 1: alternating, 2: prbs
//!      26     0x68  test_outside        read    packets of the generator for no node of the lattice
//!   28-31  0x70-7c  test_header_0 … _3  read    header of the last packet that came, or was for no node
//!
//!  test_status   5                     4                      0
//!               ┌────────────────────┬──────────────────────┬──────────────────────────────────┐
//!               │ consumer is idle   │ generator is idle    │ all packets came, payload right  │
//!               └────────────────────┴──────────────────────┴──────────────────────────────────┘
//! ```
//! # Source
//! D2.8 §2: a window of 32-bit registers to set features and read status; §5.1: register 20 is the status of
//! the self-test, and 00110001 says that generator and consumer are idle and all packets were right; appendix
//! A: a host writes reset, local coordinates, threshold and credit. Table 2.1 with the addresses did not
//! survive: all numbers but 20, and which bit of 20 says what, are ours. So is the meaning of `credit`: what
//! the switch may have sent to a port that has not been read. A smaller value counts as packets are read.

use super::header::{Coordinates, Field};
use super::parameters::{CommunicationIpParameters, IntraNodeParameters};
use super::self_test::{SelfTest, TestPattern};
use crate::capability::RegisterError;

/// Bytes of the window.
pub const WINDOW: u32 = 0x80;

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Register {
    /// Clears the self-test.
    Reset,
    /// The node's coordinates.
    LocalCoord,
    /// Free words below which a FIFO of data stops its aggregator.
    Threshold,
    /// Words of each port's receiving FIFOs that the switch may fill.
    Credit,
    /// Packets of the self-test.
    TestPackets,
    /// Bytes of payload of each.
    TestSize,
    /// Their destination along X.
    TestDestX,
    /// Starts the packet generator.
    TestStart,
    /// The state of the self-test.
    TestStatus,
    /// Packets that have come.
    TestReceived,
    /// Packets with a wrong payload.
    TestWrong,
    /// The performance counter's low half.
    TestCyclesLow,
    /// The performance counter's high half.
    TestCyclesHigh,
    /// The payload of the packets.
    TestPattern,
    /// Packets of the generator for no node of the lattice, which the switch drops.
    TestOutside,
    /// The header of the last packet that came, or was for no node: its lowest word.
    TestHeader0,
    /// The next.
    TestHeader1,
    /// The next.
    TestHeader2,
    /// The highest.
    TestHeader3,
}

/// Set in [`Register::TestStatus`]: all packets came, with the right payload.
pub const STATUS_RIGHT: u32 = 1;
/// Set in [`Register::TestStatus`]: the packet generator is idle.
pub const STATUS_GENERATOR_IDLE: u32 = 1 << 4;
/// Set in [`Register::TestStatus`]: the consumer is idle.
pub const STATUS_CONSUMER_IDLE: u32 = 1 << 5;
/// The status of a self-test that went well.
pub const STATUS_OK: u32 = STATUS_RIGHT | STATUS_GENERATOR_IDLE | STATUS_CONSUMER_IDLE;

impl Register {
    /// All of them, by number.
    pub const ALL: [Register; 19] = [
        Register::Reset,
        Register::LocalCoord,
        Register::Threshold,
        Register::Credit,
        Register::TestPackets,
        Register::TestSize,
        Register::TestDestX,
        Register::TestStart,
        Register::TestStatus,
        Register::TestReceived,
        Register::TestWrong,
        Register::TestCyclesLow,
        Register::TestCyclesHigh,
        Register::TestPattern,
        Register::TestOutside,
        Register::TestHeader0,
        Register::TestHeader1,
        Register::TestHeader2,
        Register::TestHeader3,
    ];

    /// The number: its address divided by four.
    pub const fn number(self) -> u32 {
        match self {
            Register::Reset => 0,
            Register::LocalCoord => 1,
            Register::Threshold => 2,
            Register::Credit => 3,
            Register::TestPackets => 16,
            Register::TestSize => 17,
            Register::TestDestX => 18,
            Register::TestStart => 19,
            Register::TestStatus => 20,
            Register::TestReceived => 21,
            Register::TestWrong => 22,
            Register::TestCyclesLow => 23,
            Register::TestCyclesHigh => 24,
            Register::TestPattern => 25,
            Register::TestOutside => 26,
            Register::TestHeader0 => 28,
            Register::TestHeader1 => 29,
            Register::TestHeader2 => 30,
            Register::TestHeader3 => 31,
        }
    }

    /// The address in bytes.
    pub const fn address(self) -> u32 {
        4 * self.number()
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Register::Reset => "reset",
            Register::LocalCoord => "local_coord",
            Register::Threshold => "threshold",
            Register::Credit => "credit",
            Register::TestPackets => "test_packets",
            Register::TestSize => "test_size",
            Register::TestDestX => "test_dest_x",
            Register::TestStart => "test_start",
            Register::TestStatus => "test_status",
            Register::TestReceived => "test_received",
            Register::TestWrong => "test_wrong",
            Register::TestCyclesLow => "test_cycles_low",
            Register::TestCyclesHigh => "test_cycles_high",
            Register::TestPattern => "test_pattern",
            Register::TestOutside => "test_outside",
            Register::TestHeader0 => "test_header_0",
            Register::TestHeader1 => "test_header_1",
            Register::TestHeader2 => "test_header_2",
            Register::TestHeader3 => "test_header_3",
        }
    }

    /// Whether a host may write it.
    pub const fn is_written(self) -> bool {
        use Register::{Credit, LocalCoord, Reset, TestDestX, TestPackets, TestSize, TestStart, Threshold};
        matches!(self, Reset | LocalCoord | Threshold | Credit | TestPackets | TestSize | TestDestX)
            || matches!(self, TestStart | Register::TestPattern)
    }

    /// The register at an address.
    ///
    /// # Errors
    /// An address that is none of a register.
    pub fn at(address: u32) -> Result<Register, RegisterError> {
        let found = Register::ALL.into_iter().find(|register| register.address() == address);
        found.ok_or(RegisterError::Unknown { address, window: WINDOW })
    }
}

/// The values of registers that are no self-test's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Registers {
    /// The node's coordinates, packed.
    local_coord: u32,
    /// Free words below which a FIFO of data stops its aggregator.
    threshold: u32,
    /// Words of each port's receiving FIFOs that the switch may fill.
    credit: u32,
    /// Words of the largest packet, and of the FIFOs: its bounds.
    credit_bounds: (u32, u32),
    /// Words of a FIFO of data, which `threshold` is below.
    fifo: u32,
}

impl Registers {
    /// As a host sets them at the beginning.
    pub fn new(at: Coordinates, parameters: &CommunicationIpParameters) -> Registers {
        let y = at.y << Field::DestX.bits();
        let z = at.z << (Field::DestX.bits() + Field::DestY.bits());
        let IntraNodeParameters { threshold, receive_fifo, fifo, .. } = parameters.intra_node;
        let [threshold, credit, fifo] = [threshold, receive_fifo, fifo].map(|bytes| parameters.words(bytes));
        let credit_bounds = (parameters.largest_words(), credit);
        Registers { local_coord: z | y | at.x, threshold, credit, credit_bounds, fifo }
    }

    /// Words of each port's receiving FIFOs that register `credit` keeps from the switch.
    pub fn withheld(&self) -> u32 {
        self.credit_bounds.1 - self.credit
    }

    /// Free words below which a FIFO of data stops its aggregator.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// The value of a register.
    pub fn read(&self, register: Register, test: &SelfTest) -> u32 {
        match register {
            Register::Reset | Register::TestStart => 0,
            Register::LocalCoord => self.local_coord,
            Register::Threshold => self.threshold,
            Register::Credit => self.credit,
            Register::TestPackets => test.packets(),
            Register::TestSize => test.size(),
            Register::TestDestX => test.destination(),
            Register::TestStatus => test.status(),
            Register::TestReceived => test.consumer.received(),
            Register::TestWrong => test.consumer.wrong(),
            Register::TestCyclesLow => test.counter.cycles() as u32,
            Register::TestCyclesHigh => (test.counter.cycles() >> 32) as u32,
            Register::TestPattern => test.pattern() as u32,
            Register::TestOutside => test.outside(),
            Register::TestHeader0 => test.header() as u32,
            Register::TestHeader1 => (test.header() >> 32) as u32,
            Register::TestHeader2 => (test.header() >> 64) as u32,
            Register::TestHeader3 => (test.header() >> 96) as u32,
        }
    }

    /// Writes a register. Returns whether that starts the packet generator.
    ///
    /// # Errors
    /// A register that is only read, and a value that means nothing there.
    pub fn write(
        &mut self,
        register: Register,
        value: u32,
        test: &mut SelfTest,
    ) -> Result<bool, RegisterError> {
        let refuse = |expected| Err(RegisterError::Value { name: register.name(), value, expected });
        match register {
            Register::Reset => *test = SelfTest::default(),
            Register::LocalCoord if value >> 16 != 0 => return refuse("coordinates of 16 bits"),
            Register::LocalCoord => self.local_coord = value,
            Register::Threshold if value >= self.fifo => {
                return refuse("fewer words than a FIFO of data has");
            }
            Register::Threshold => self.threshold = value,
            Register::Credit if !(self.credit_bounds.0..=self.credit_bounds.1).contains(&value) => {
                return refuse("words from those of the largest packet to those of the receiving FIFOs");
            }
            Register::Credit => self.credit = value,
            Register::TestPackets => test.set_packets(value),
            Register::TestSize if u64::from(value) >= Field::PacketSize.values() => {
                return refuse("a size of 14 bits");
            }
            Register::TestSize => test.set_size(value),
            Register::TestDestX if u64::from(value) >= Field::DestX.values() => {
                return refuse("a coordinate of 6 bits");
            }
            Register::TestDestX => test.set_destination(value),
            Register::TestPattern => match TestPattern::of(value) {
                Some(pattern) => test.set_pattern(pattern),
                None => return refuse("0, 1 or 2"),
            },
            Register::TestStart if value != 1 => return refuse("1"),
            Register::TestStart if !test.can_start() => {
                return refuse("it when the generator is idle, after test_packets of 1 or more");
            }
            Register::TestStart => return Ok(true),
            _ => {
                let (address, name) = (register.address(), register.name());
                return Err(RegisterError::ReadOnly { address, name });
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a status register that has moved, and two registers at one address.
    #[test]
    fn addresses_are_those_of_the_table() {
        assert_eq!(Register::TestStatus.number(), 20, "D2.8 §5.1");
        assert_eq!(STATUS_OK, 0b0011_0001, "D2.8 §5.1");
        for register in Register::ALL {
            assert_eq!(Register::at(register.address()), Ok(register));
            assert!(register.address() < WINDOW);
        }
        for address in [0x10, 0x3, 0x6c, 0x80, u32::MAX] {
            assert_eq!(Register::at(address), Err(RegisterError::Unknown { address, window: WINDOW }));
        }
    }

    /// Catches a write that is lost, one to what is only read, and values beyond their fields.
    #[test]
    fn registers_keep_what_is_written() {
        let (local_coord, threshold) = (2 << 11 | 1 << 6 | 63, 8);
        let credit_bounds = (1, 512);
        let mut registers = Registers { local_coord, threshold, credit: 512, credit_bounds, fifo: 256 };
        let mut test = SelfTest::default();
        assert_eq!(registers.read(Register::Credit, &test), 512);
        for register in Register::ALL {
            let written = registers.write(register, 1, &mut test);
            assert_eq!(written.is_ok(), register.is_written(), "{}", register.name());
            let shown = !matches!(register, Register::Reset | Register::TestStart);
            if register.is_written() && shown {
                assert_eq!(registers.read(register, &test), 1, "{}", register.name());
            }
        }
        for (register, value) in [
            (Register::LocalCoord, 1 << 16),
            (Register::TestSize, 1 << 14),
            (Register::TestDestX, 64),
            (Register::TestPattern, 3),
            (Register::Credit, 0),
            (Register::Credit, 513),
            (Register::Threshold, 256),
            (Register::TestStart, 2),
        ] {
            let error = registers.write(register, value, &mut test).unwrap_err();
            assert!(matches!(error, RegisterError::Value { .. }), "{error}");
        }
        assert_eq!(registers.withheld(), 511);
        registers.write(Register::Reset, 1, &mut test).unwrap();
        assert_eq!(registers.read(Register::TestPackets, &test), 0);
        assert!(registers.write(Register::TestStart, 1, &mut test).is_err(), "no packets to send");
    }
}
