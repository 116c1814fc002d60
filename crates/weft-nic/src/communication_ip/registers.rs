//! The configuration and status registers: a window of 32-bit registers behind an AXI4-Lite port.
//!
//! ```text
//!  number  address  register            access
//!       0     0x00  reset               write   clears the self-test, and reads as 0
//!       1     0x04  local_coord         write   z << 11 | y << 6 | x, as in a header
//!       2     0x08  threshold           write   free words below which a FIFO of data stops its aggregator
//!       3     0x0c  credit              read    words of the buffer behind a port of the switch
//!      16     0x40  test_packets        write   packets that generator and consumer expect
//!      17     0x44  test_size           write   bytes of payload of each
//!      18     0x48  test_dest_x         write   their destination along X
//!      19     0x4c  test_start          write   1 starts the packet generator
//!      20     0x50  test_status         read    bits below
//!      21     0x54  test_received       read    packets that the consumer has taken
//!      22     0x58  test_wrong          read    packets among them whose payload was wrong
//!      23     0x5c  test_cycles_low     read    the performance counter
//!      24     0x60  test_cycles_high    read
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
//! survive: all numbers but 20, and which bit of 20 says what, are ours. A host writes `credit` there; here
//! the switch's buffer decides, which the machine file gives, and the register shows it.

use super::header::{Coordinates, Field};
use super::self_test::SelfTest;
use crate::capability::RegisterError;

/// Bytes of the window.
pub const WINDOW: u32 = 0x64;

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Register {
    /// Clears the self-test.
    Reset,
    /// The node's coordinates.
    LocalCoord,
    /// Free words below which a FIFO of data stops its aggregator.
    Threshold,
    /// Words of the buffer behind a port of the switch.
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
    pub const ALL: [Register; 13] = [
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
        }
    }

    /// Whether a host may write it.
    pub const fn is_written(self) -> bool {
        use Register::{LocalCoord, Reset, TestDestX, TestPackets, TestSize, TestStart, Threshold};
        matches!(self, Reset | LocalCoord | Threshold | TestPackets | TestSize | TestDestX | TestStart)
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
    /// Words of the buffer behind a port of the switch.
    credit: u32,
}

impl Registers {
    /// As a host sets them at the beginning.
    pub fn new(at: Coordinates, threshold: u32, credit: u32) -> Registers {
        let y = at.y << Field::DestX.bits();
        let z = at.z << (Field::DestX.bits() + Field::DestY.bits());
        Registers { local_coord: z | y | at.x, threshold, credit }
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
            Register::Threshold => self.threshold = value,
            Register::TestPackets => test.set_packets(value),
            Register::TestSize if u64::from(value) >= Field::PacketSize.values() => {
                return refuse("a size of 14 bits");
            }
            Register::TestSize => test.set_size(value),
            Register::TestDestX if u64::from(value) >= Field::DestX.values() => {
                return refuse("a coordinate of 6 bits");
            }
            Register::TestDestX => test.set_destination(value),
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
        for address in [0x10, 0x3, 0x64, u32::MAX] {
            assert_eq!(Register::at(address), Err(RegisterError::Unknown { address, window: WINDOW }));
        }
    }

    /// Catches a write that is lost, one to what is only read, and values beyond their fields.
    #[test]
    fn registers_keep_what_is_written() {
        let (mut registers, mut test) =
            (Registers::new(Coordinates { x: 63, y: 1, z: 2 }, 8, 512), SelfTest::default());
        assert_eq!(registers.read(Register::LocalCoord, &test), 2 << 11 | 1 << 6 | 63);
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
            (Register::TestStart, 2),
        ] {
            let error = registers.write(register, value, &mut test).unwrap_err();
            assert!(matches!(error, RegisterError::Value { .. }), "{error}");
        }
        registers.write(Register::Reset, 1, &mut test).unwrap();
        assert_eq!(registers.read(Register::TestPackets, &test), 0);
        assert!(registers.write(Register::TestStart, 1, &mut test).is_err(), "no packets to send");
    }
}
