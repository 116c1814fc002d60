//! The machines that ship, carried in the binary.

use super::{Diagnostics, Machine, check_text};

/// One shipped machine file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shipped {
    /// The name, as `-m` takes it.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../machines/", $name, ".toml")),
        }),*]
    };
}

/// All of them, by name.
pub const SHIPPED: &[Shipped] = shipped![
    "apenetx-u200",
    "apenetx-u280",
    "bxi2-fattree",
    "bxi2-megafly",
    "bxi3-dragonfly",
    "bxi3-fattree",
    "bxi3-megafly",
    "carvnet-riscv",
    "carvnet-spineleaf",
    "communication-ip",
    "deep-msa",
    "dqn-node",
    "ethernet-100g-spineleaf",
    "exanest",
    "ib-ndr-fattree",
    "ib-qdr-fattree",
    "slingshot-dragonfly",
];

/// The files that shipped machines name, by their names there.
const FILES: &[(&str, &str)] = &[("deep-msa.edges", include_str!("../../../machines/deep-msa.edges"))];

/// The text of a file that a shipped machine names.
pub(crate) fn shipped_file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|file| file.0 == name).map(|file| file.1)
}

/// A line of `weft machine list`.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Listed {
    /// The name, as `-m` takes it.
    pub name: String,
    /// The machine in a few words.
    pub title: String,
    /// Endpoints as shipped.
    pub endpoints: u64,
    /// Cores as shipped.
    pub cores: u64,
}

impl Shipped {
    /// The file, checked, after `--set` arguments.
    ///
    /// # Errors
    /// What the arguments make wrong.
    pub fn check(&self, sets: &[impl AsRef<str>]) -> Result<Machine, Diagnostics> {
        check_text(&format!("{}.toml", self.name), self.text, sets)
    }
}

/// The machines that ship, with their sizes.
pub fn list() -> Vec<Listed> {
    SHIPPED
        .iter()
        .map(|shipped| {
            let machine = shipped.check(&[] as &[&str]).expect("a test checks every shipped machine");
            Listed {
                name: shipped.name.to_owned(),
                title: machine.title.clone(),
                endpoints: machine.topology.endpoints(),
                cores: machine.cores(),
            }
        })
        .collect()
}
