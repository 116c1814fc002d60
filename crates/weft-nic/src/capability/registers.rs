//! Registers of an interface, as software reads and writes them.

/// 32-bit registers at addresses of the interface.
pub trait RegisterAccess {
    /// The value of the register at an address.
    ///
    /// # Errors
    /// An address that is none of a register.
    fn read_register(&self, address: u32) -> Result<u32, RegisterError>;

    /// Writes the register at an address.
    ///
    /// # Errors
    /// As [`read_register`](RegisterAccess::read_register), a register that is only read, and a value that
    /// means nothing there.
    fn write_register(&mut self, address: u32, value: u32) -> Result<(), RegisterError>;

    /// Whether the register at an address is set for a whole node, so at each of its endpoints.
    fn is_of_node(&self, address: u32) -> bool;
}

/// An access that the registers refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The interface has no registers.
    #[error("the interface has no registers; use a machine whose interface has some")]
    NoRegisters,
    /// There is no register at the address.
    #[error(
        "there is no register at {address:#x}; addresses are multiples of 4 below {window:#x}, with gaps"
    )]
    Unknown {
        /// The address.
        address: u32,
        /// The address behind the last register.
        window: u32,
    },
    /// The register only shows something.
    #[error("register {name} at {address:#x} is only read; write those of the configuration")]
    ReadOnly {
        /// The address.
        address: u32,
        /// The register's name.
        name: &'static str,
    },
    /// The value means nothing there.
    #[error("register {name} does not take {value}; write {expected}")]
    Value {
        /// The register's name.
        name: &'static str,
        /// The value.
        value: u32,
        /// The values that it takes.
        expected: &'static str,
    },
}
