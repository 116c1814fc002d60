//! libweft_rtl.so: the blocks under Verilator. `rtl/library.cpp` is the other side.
#![expect(unsafe_code, reason = "functions and tables of a library that is loaded at run time")]

use crate::sources;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_units::Bytes;

/// The version of the interface that this side knows.
const VERSION: u32 = 2;

/// Bits of the buses of blocks that have no variant for wider ones.
const NARROW: u64 = 128;

/// The library in a tree, as `make rtl` builds it.
const BUILT: &str = "build/rtl/libweft_rtl.so";

/// The variable that names the library, if it is not where `make rtl` puts it.
const VARIABLE: &str = "WEFT_RTL_LIBRARY";

/// RTL that cannot be had, or does not fit the machine.
#[derive(Debug, thiserror::Error)]
pub enum RtlError {
    /// It is not built.
    #[error(
        "--rtl needs libweft_rtl.so, and there is none at {}: build it with `make rtl-tools && make rtl`, or \
         name it in {VARIABLE}",
        .0.display()
    )]
    NotBuilt(PathBuf),
    /// It cannot be loaded.
    #[error(
        "{} cannot be loaded: {why}; build it anew with `make rtl`, or name another in {VARIABLE}",
        path.display()
    )]
    NotLoaded {
        /// The library.
        path: PathBuf,
        /// The reason, as the system gives it.
        why: String,
    },
    /// A static command, which has no loader.
    #[error("--rtl: this weft is static and loads no library: use one of `make install` or of `cargo build`")]
    Static,
    /// It is of another version.
    #[error(
        "{} has version {found} of the interface, and this weft knows version {VERSION}: build it anew with \
         `make rtl` beside this weft",
        path.display()
    )]
    Version {
        /// The library.
        path: PathBuf,
        /// The version that it has.
        found: u32,
    },
    /// It was built of other sources than are beside it.
    #[error(
        "{} was built of other sources than rtl/ has now: build it anew with `make rtl`, or name it in \
         {VARIABLE} to have it as it is",
        .0.display()
    )]
    Stale(PathBuf),
    /// It has no such block, or the block no such port.
    #[error("{} has no {what}: build it anew with `make rtl`", path.display())]
    Lacks {
        /// The library.
        path: PathBuf,
        /// The block, or the port of a block.
        what: String,
    },
    /// A name that is no block's, and the names of blocks.
    #[error("--rtl: there is no RTL of `{0}`; there is RTL of {1}")]
    UnknownBlock(String, String),
    /// A block whose model decides at other places than its ports.
    #[error(
        "--rtl-drive: the RTL of the {0} runs in step with the model, and not in its place; leave \
         --rtl-drive out, or {0} out of --rtl"
    )]
    NotInPlace(&'static str),
    /// A machine whose interface has no accelerator.
    #[error("--rtl allreduce: this machine has no accelerator: its file has no [nic.allreduce]; use exanest")]
    NoAccelerator,
    /// A machine whose interface has no such blocks.
    #[error("--rtl: this machine has no {0}; use one with nic.model=exanet, such as exanest")]
    NoBlock(&'static str),
    /// A machine whose packets have another header or footer.
    #[error("--rtl: {key} is {bytes}, and {word} in the RTL; add --set {key}={word}")]
    PacketWord {
        /// The key of machine files.
        key: &'static str,
        /// The bytes of the machine.
        bytes: Bytes,
        /// The bytes in the RTL.
        word: Bytes,
    },
    /// A machine whose block is another.
    #[error(
        "--rtl {block}: {key} is {machine}, and the RTL is built with {rtl}: add --set '{key}={rtl}', or \
         build it for this machine (rtl/{block}/{block}.sv, parameter {parameter})"
    )]
    Parameter {
        /// The block.
        block: &'static str,
        /// The key of machine files.
        key: &'static str,
        /// The value of that key.
        machine: String,
        /// The value of the RTL, as machine files write it.
        rtl: String,
        /// The name of the parameter in the RTL.
        parameter: &'static str,
    },
    /// A machine whose times are no whole cycles, or that has what the RTL has not.
    #[error("--rtl {block}: {why}; {mend}")]
    Unfit {
        /// The block.
        block: &'static str,
        /// The reason.
        why: String,
        /// The mend.
        mend: String,
    },
}

#[repr(C)]
struct RawPort {
    name: *const c_char,
    bits: u32,
    is_output: u32,
    word: u32,
    _reserved: u32,
}

#[repr(C)]
struct RawParameter {
    name: *const c_char,
    value: i64,
}

/// The functions of the library.
#[derive(Clone, Copy)]
struct Functions {
    version: extern "C" fn() -> u32,
    sources: extern "C" fn() -> *const c_char,
    block: extern "C" fn(u32) -> *const c_char,
    ports: extern "C" fn(u32, *mut u32) -> *const RawPort,
    parameters: extern "C" fn(u32, *mut u32) -> *const RawParameter,
    create: extern "C" fn(u32) -> *mut c_void,
    destroy: extern "C" fn(*mut c_void),
    words: extern "C" fn(*mut c_void) -> *mut u64,
    cycle: extern "C" fn(*mut c_void),
    save: extern "C" fn(*mut c_void),
    restore: extern "C" fn(*mut c_void),
}

/// A port of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RtlPort {
    /// The first of its words of 64 bits in the array of the block's ports.
    pub word: u32,
    /// The width.
    pub bits: u32,
}

impl RtlPort {
    /// The parts of up to 128 bits of a port, the lowest first.
    pub fn lanes(self) -> impl Iterator<Item = RtlPort> {
        let RtlPort { word, bits } = self;
        (0..bits.div_ceil(128))
            .map(move |lane| RtlPort { word: word + 2 * lane, bits: (bits - 128 * lane).min(128) })
    }
}

/// A block of the library.
#[derive(Clone)]
struct RtlBlock {
    name: String,
    /// By name, with whether it is an output.
    ports: BTreeMap<String, (RtlPort, bool)>,
    parameters: BTreeMap<String, i64>,
}

/// The library.
#[derive(Clone)]
pub struct RtlLibrary {
    path: PathBuf,
    functions: Functions,
    kinds: Vec<RtlBlock>,
    /// The seed of the inputs that a block has before its reset; `None`: it is new.
    past: Option<u64>,
    /// Bits of the buses of the interface.
    bus: u64,
}

impl std::fmt::Debug for RtlLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RtlLibrary").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Whether an ELF file of 64 bits ends before its table of sections, which linkers put last. Of what is no
/// such file, the loader tells.
fn is_cut_short(path: &Path) -> io::Result<bool> {
    let mut header = [0; 64];
    let mut file = fs::File::open(path)?;
    let bytes = file.metadata()?.len();
    if !file.metadata()?.is_file() || file.read_exact(&mut header).is_err() || header[..4] != *b"\x7fELF" {
        return Ok(false);
    }
    let number = |at: usize, width: usize| {
        header[at..at + width].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (table, size, count) = (number(0x28, 8), number(0x3A, 2), number(0x3C, 2));
    Ok(table.saturating_add(size * count) > bytes)
}

impl RtlLibrary {
    /// The library of this run: the one that the variable names, as it is; the one beside an installed weft;
    /// or that of the tree in which weft was built, which has to be of the sources that are there now.
    ///
    /// # Errors
    /// It is missing, stale, of another version, or no such library.
    pub fn find() -> Result<Arc<RtlLibrary>, RtlError> {
        if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
            return RtlLibrary::load(Path::new(&named));
        }
        let command = std::env::current_exe().unwrap_or_default();
        let above = |levels| command.ancestors().nth(levels).unwrap_or(Path::new(""));
        let installed = above(2).join("lib/weft/libweft_rtl.so");
        if installed.exists() {
            return RtlLibrary::load(&installed);
        }
        // A test lies a folder deeper than the command.
        let trees = [above(3), above(4)];
        let has_library = |tree: &&&Path| tree.join(BUILT).exists();
        let tree = trees.iter().find(has_library).unwrap_or(&trees[0]);
        RtlLibrary::load_of_tree(tree)
    }

    /// The library of a tree.
    fn load_of_tree(tree: &Path) -> Result<Arc<RtlLibrary>, RtlError> {
        let path = tree.join(BUILT);
        let library = RtlLibrary::load(&path)?;
        // A tree that is without sources by now has none that could be others.
        match sources::digest(tree) {
            Ok(sources) if sources != library.sources() => Err(RtlError::Stale(path)),
            _ => Ok(library),
        }
    }

    /// Loads the library at a path.
    ///
    /// # Errors
    /// It is missing, of another version, or no such library.
    pub fn load(path: &Path) -> Result<Arc<RtlLibrary>, RtlError> {
        // What a static command loads has a second C library, and crashes.
        if cfg!(target_feature = "crt-static") {
            return Err(RtlError::Static);
        }
        if !path.exists() {
            return Err(RtlError::NotBuilt(path.to_path_buf()));
        }
        let not_loaded = |why: String| RtlError::NotLoaded { path: path.to_path_buf(), why };
        // The loader looks elsewhere for a name without folders, and takes the process down where a library
        // ends early.
        let whole = path.canonicalize().map_err(|error| not_loaded(error.to_string()))?;
        if is_cut_short(&whole).map_err(|error| not_loaded(error.to_string()))? {
            return Err(not_loaded("it is cut short".to_owned()));
        }
        let name =
            CString::new(whole.as_os_str().as_bytes()).map_err(|error| not_loaded(error.to_string()))?;
        // SAFETY: a name that ends with zero. What the library does as it is loaded is Verilator's.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: a string of the C library, or null.
            let why = unsafe { text(libc::dlerror()) };
            return Err(not_loaded(why));
        }
        let symbol = |name: &CStr| {
            // SAFETY: the library is loaded and never unloaded.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            let lacks = || not_loaded(format!("it has no function {}", name.to_string_lossy()));
            if found.is_null() { Err(lacks()) } else { Ok(found) }
        };
        macro_rules! function {
            ($name:literal, $function:ty) => {
                // SAFETY: of this name library.cpp has a function of this type.
                unsafe { std::mem::transmute::<*mut c_void, $function>(symbol($name)?) }
            };
        }
        let version = function!(c"weft_rtl_version", extern "C" fn() -> u32);
        // Nothing else of another version is what this side takes it for.
        if version() != VERSION {
            return Err(RtlError::Version { path: path.to_path_buf(), found: version() });
        }
        let functions = Functions {
            version,
            sources: function!(c"weft_rtl_sources", extern "C" fn() -> *const c_char),
            block: function!(c"weft_rtl_block", extern "C" fn(u32) -> *const c_char),
            ports: function!(c"weft_rtl_ports", extern "C" fn(u32, *mut u32) -> *const RawPort),
            parameters: function!(
                c"weft_rtl_parameters",
                extern "C" fn(u32, *mut u32) -> *const RawParameter
            ),
            create: function!(c"weft_rtl_create", extern "C" fn(u32) -> *mut c_void),
            destroy: function!(c"weft_rtl_destroy", extern "C" fn(*mut c_void)),
            words: function!(c"weft_rtl_words", extern "C" fn(*mut c_void) -> *mut u64),
            cycle: function!(c"weft_rtl_cycle", extern "C" fn(*mut c_void)),
            save: function!(c"weft_rtl_save", extern "C" fn(*mut c_void)),
            restore: function!(c"weft_rtl_restore", extern "C" fn(*mut c_void)),
        };
        let kinds = (0..).map_while(|block| functions.kind(block)).collect();
        Ok(Arc::new(RtlLibrary { path: path.to_path_buf(), functions, kinds, past: None, bus: NARROW }))
    }

    /// The library with those variants of blocks whose buses are as wide as the machine's.
    pub(crate) fn of_machine(&self, parameters: &ExanetParameters) -> Arc<RtlLibrary> {
        let bus = 8 * parameters.host_port.word.get();
        Arc::new(RtlLibrary { bus, ..self.clone() })
    }

    /// The same library, whose blocks have had random inputs before their reset, from a seed on: a reset
    /// makes them as new, whatever they were doing.
    pub fn behind_random_inputs(&self, seed: u64) -> Arc<RtlLibrary> {
        Arc::new(RtlLibrary { past: Some(seed), ..self.clone() })
    }

    /// The hash of the sources that it was built from.
    fn sources(&self) -> String {
        debug_assert_eq!((self.functions.version)(), VERSION);
        // SAFETY: a constant string of the library.
        unsafe { text((self.functions.sources)()) }
    }

    fn lacks(&self, what: String) -> RtlError {
        RtlError::Lacks { path: self.path.clone(), what }
    }

    fn block(&self, name: &str) -> Result<u32, RtlError> {
        let wide = format!("{name}_{}", self.bus);
        let variant = if self.bus == NARROW { name } else { &wide };
        let found = self.kinds.iter().position(|kind| kind.name == variant);
        found.map(|block| block as u32).ok_or_else(|| self.lacks(format!("block `{variant}`")))
    }

    /// Whether the buses of the machine are wider than those of TR-488.
    pub(crate) fn is_wide(&self) -> bool {
        self.bus > NARROW
    }

    /// Checks that a block is there with buses as wide as the machine's.
    ///
    /// # Errors
    /// Its buses are of other widths.
    pub(crate) fn check_bus(
        &self,
        block: &'static str,
        parameters: &ExanetParameters,
    ) -> Result<(), RtlError> {
        let has_block = self.kinds.iter().any(|kind| kind.name == block);
        if !has_block || self.block(block).is_ok() {
            return Ok(());
        }
        let why = format!("its buses have {NARROW} bits in the RTL, and nic.host_port.word has {}", self.bus);
        let mend = match parameters.host_port.stores {
            None => format!("add --set nic.host_port.word={}", NARROW / 8),
            Some(_) => "use a machine of that width, such as exanest".to_owned(),
        };
        Err(RtlError::Unfit { block, why, mend })
    }

    /// The parameter of a block, as it was built.
    ///
    /// # Errors
    /// There is no such block or parameter.
    pub(crate) fn parameter(&self, block: &str, name: &str) -> Result<u64, RtlError> {
        let kind = &self.kinds[self.block(block)? as usize];
        let value = kind.parameters.get(name).and_then(|value| u64::try_from(*value).ok());
        value.ok_or_else(|| self.lacks(format!("parameter `{name}` of the block `{block}`")))
    }

    /// A block, as it is before its reset.
    ///
    /// # Errors
    /// There is no such block.
    pub(crate) fn create(self: &Arc<RtlLibrary>, block: &str) -> Result<Instance, RtlError> {
        let block = self.block(block)?;
        let raw = (self.functions.create)(block);
        let words = (self.functions.words)(raw);
        let mut instance = Instance { library: Arc::clone(self), block, raw, words };
        if let Some(seed) = self.past {
            instance.run_at_random(seed);
        }
        Ok(instance)
    }
}

impl Functions {
    fn kind(&self, block: u32) -> Option<RtlBlock> {
        let name = (self.block)(block);
        if name.is_null() {
            return None;
        }
        let (mut ports, mut parameters) = (0, 0);
        let raw_ports = (self.ports)(block, &mut ports);
        let raw_parameters = (self.parameters)(block, &mut parameters);
        // SAFETY: constant tables of the library, of the lengths that it gives.
        unsafe {
            let raw_ports = std::slice::from_raw_parts(raw_ports, ports as usize);
            let raw_parameters = std::slice::from_raw_parts(raw_parameters, parameters as usize);
            let port = |raw: &RawPort| {
                (text(raw.name), (RtlPort { word: raw.word, bits: raw.bits }, raw.is_output != 0))
            };
            let parameter = |raw: &RawParameter| (text(raw.name), raw.value);
            Some(RtlBlock {
                name: text(name),
                ports: raw_ports.iter().map(port).collect(),
                parameters: raw_parameters.iter().map(parameter).collect(),
            })
        }
    }
}

/// A string of C, or nothing.
///
/// # Safety
/// It is null, or ends with zero.
unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// A block under Verilator.
pub(crate) struct Instance {
    library: Arc<RtlLibrary>,
    block: u32,
    raw: *mut c_void,
    words: *mut u64,
}

// SAFETY: an instance has a Verilator context of its own, and the library no state beside them.
unsafe impl Send for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        (self.library.functions.destroy)(self.raw);
    }
}

impl Instance {
    /// The port of a name and a width.
    ///
    /// # Errors
    /// There is no such port.
    pub fn port(&self, name: &str, bits: u32) -> Result<RtlPort, RtlError> {
        let kind = &self.library.kinds[self.block as usize];
        let port = kind.ports.get(name).filter(|(port, _)| port.bits == bits);
        port.map(|(port, _)| *port).ok_or_else(|| {
            self.library.lacks(format!("port `{name}` of {bits} bits of the block `{}`", kind.name))
        })
    }

    /// All ports, by name.
    pub fn ports(&self) -> impl Iterator<Item = (&str, RtlPort)> {
        let kind = &self.library.kinds[self.block as usize];
        kind.ports.iter().map(|(name, (port, _))| (name.as_str(), *port))
    }

    /// Runs out of a reset with random inputs, and leaves the inputs at zero.
    fn run_at_random(&mut self, seed: u64) {
        /// Cycles in which a block empties its tables, at most, and cycles with random inputs.
        const CYCLES: [usize; 2] = [1100, 400];
        let ports = &self.library.kinds[self.block as usize].ports;
        let inputs: Vec<_> = ports.iter().filter(|(_, (_, is_output))| !is_output).collect();
        let lanes = |(name, (port, _)): (&String, &(RtlPort, bool))| {
            let is_reset = name == "reset";
            port.lanes().map(move |lane| (is_reset, lane))
        };
        let inputs: Vec<_> = inputs.into_iter().flat_map(lanes).collect();
        let mut run = |cycles, value: &mut dyn FnMut(bool) -> u128| {
            for _ in 0..cycles {
                for (is_reset, port) in &inputs {
                    let mask = u128::MAX >> (128 - port.bits.min(128));
                    self.set(*port, value(*is_reset) & mask);
                }
                self.cycle();
            }
        };
        run(2, &mut |is_reset| is_reset.into());
        run(CYCLES[0], &mut |_| 0);
        let mut state = u128::from(seed);
        run(CYCLES[1], &mut |is_reset| {
            // The upper bits of a congruential generator.
            state = state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(1);
            if is_reset { 0 } else { state.rotate_left(64) }
        });
        run(1, &mut |_| 0);
    }

    /// Puts a value onto an input.
    #[inline]
    pub fn set(&mut self, port: RtlPort, value: u128) {
        // SAFETY: the library has the words of each port.
        unsafe {
            *self.words.add(port.word as usize) = value as u64;
            if port.bits > 64 {
                *self.words.add(port.word as usize + 1) = (value >> 64) as u64;
            }
        }
    }

    /// The value of a port.
    #[inline]
    pub fn get(&self, port: RtlPort) -> u128 {
        // SAFETY: as above.
        unsafe {
            let low = u128::from(*self.words.add(port.word as usize));
            if port.bits > 64 { low | u128::from(*self.words.add(port.word as usize + 1)) << 64 } else { low }
        }
    }

    /// Keeps the state: what was kept before is forgotten.
    pub fn save(&mut self) {
        (self.library.functions.save)(self.raw);
    }

    /// Goes back to the state that was kept, which stays kept.
    pub fn restore(&mut self) {
        (self.library.functions.restore)(self.raw);
    }

    /// A cycle with the inputs that were put: its outputs can be read then, and its last edge has passed.
    #[inline]
    pub fn cycle(&mut self) {
        (self.library.functions.cycle)(self.raw);
    }
}
