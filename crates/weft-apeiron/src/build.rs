//! The build of a design: a shared object for each kernel, a program for each host source, and the
//! description that programs take by `-b`.
//!
//! ```text
//!  FILE              the description
//!  FILE.d/include/   the headers
//!  FILE.d/NAME.cpp   a kernel's source with its pragmas as code, and how it is called
//!  FILE.d/NAME.so    the same, compiled: replicas have static data of their own, as they have in hardware
//!  PROGRAM           beside FILE: a host program for each `host/PROGRAM.cpp`
//! ```

use crate::config::{Design, DesignKernel};
use crate::connections::{self, KernelFound};
use crate::error::DesignError;
use crate::linker::SWITCH;
use crate::prototype::KernelParameter;
use crate::streams::{DesignStream, StreamEnd};
use crate::{headers, source};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The words with which a description and the environment of a program begin: those of
/// `apeiron/include/weft_apeiron/version.h`. A change of either, or of what kernels and programs have in
/// common, raises the number.
pub const VERSION: &str = "weft-apeiron 4";
/// The first word of a description of any version.
const MARK: &str = "weft-apeiron";
/// The first bytes of a program.
const ELF: &[u8] = b"\x7fELF";

/// Folders of a kernel's source, beside `config.yaml`: that of appendix C, and the design's own.
const KERNEL_FOLDERS: [&str; 2] = ["hw_hls", "."];

/// The compiler, and the library that programs of a design are linked with.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The C++ compiler: a word, as CXX has it.
    pub compiler: OsString,
    /// Options that come behind those of the build: words, as CXXFLAGS has them.
    pub options: Vec<OsString>,
    /// libweft_client.so, or libweft.so.
    pub library: PathBuf,
}

/// A command that makes a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The file.
    pub makes: PathBuf,
}

/// The build of a design, step by step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildPlan {
    /// Files to be written first, with their texts.
    pub files: Vec<(PathBuf, String)>,
    /// Commands, in any order.
    pub steps: Vec<Step>,
    /// The description, to be written last, with its text.
    pub description: (PathBuf, String),
}

impl BuildPlan {
    /// Refuses files that are in the way and that no build has made.
    ///
    /// # Errors
    /// The first of them.
    pub fn check_places(&self) -> Result<(), DesignError> {
        let (output, _) = &self.description;
        let in_the_way = |path: &Path, is| Err(DesignError::InTheWay { path: path.to_owned(), is });
        if begins_otherwise(output, MARK.as_bytes()) {
            return in_the_way(output, "no design of weft apeiron build");
        }
        let parts = with_suffix(output, ".d");
        if parts.exists() && !parts.is_dir() {
            return in_the_way(&parts, "no folder");
        }
        let programs = self.steps.iter().map(|step| &step.makes).filter(|made| !made.starts_with(&parts));
        match programs.into_iter().find(|program| begins_otherwise(program, ELF)) {
            Some(program) => in_the_way(program, "no program"),
            None => Ok(()),
        }
    }
}

/// Whether something is there that is no file which begins so. Devices are not opened: a read may wait.
fn begins_otherwise(path: &Path, begin: &[u8]) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    let mut read = vec![0; begin.len()];
    !metadata.is_file()
        || std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut read)).is_err()
        || read != begin
}

/// The steps that make a design into `output`.
///
/// # Errors
/// A kernel without a source, or one that cannot be read; streams that do not fit the kernels' parameters.
pub fn plan(design: &Design, toolchain: &Toolchain, output: &Path) -> Result<BuildPlan, DesignError> {
    let folder = design.file.parent().unwrap_or(Path::new(""));
    let parts = with_suffix(output, ".d");
    let include = parts.join("include");
    let mut files: Vec<(PathBuf, String)> =
        headers::ALL.iter().map(|(name, text)| (include.join(name), (*text).to_owned())).collect();
    let mut steps = Vec::new();
    let (of, megahertz) = (contents(design), design.megahertz);
    let mut description = format!("{VERSION}\nof {of}\nfrequency {megahertz}\nswitch {SWITCH}\n");
    let kernels: Result<Vec<_>, _> =
        design.kernels.iter().map(|kernel| KernelFound::of(design, kernel)).collect();
    let kernels = kernels?;
    connections::check_found(design, &kernels)?;
    for found in &kernels {
        let kernel = found.kernel;
        let [generated, object] = ["cpp", "so"].map(|suffix| parts.join(format!("{}.{suffix}", kernel.name)));
        files.push((generated.clone(), entry(design, found)));
        let folders = source_folders(design, &found.source.path);
        let channels = [("INPUT", kernel.inputs), ("OUTPUT", kernel.outputs)]
            .map(|(of, count)| format!("-DN_{of}_CHANNELS={count}"));
        let mut words = compile(toolchain, &include, &folders);
        // Data of replicas is not shared by its name.
        words.extend(["-fPIC", "-shared", "-fvisibility=hidden"].map(OsString::from));
        words.extend(channels.map(OsString::from));
        words.extend([generated.into(), "-o".into(), object.clone().into()]);
        steps.push(Step { words, makes: object });
        let name = parts.file_name().unwrap_or_default().to_string_lossy().into_owned();
        description.push_str(&described(kernel, &name));
    }
    design.streams.iter().for_each(|stream| description.push_str(&described_stream(stream)));
    description.push_str("end\n");
    for host in sources(&folder.join("host")) {
        let program = output.with_file_name(host.file_stem().unwrap_or_default());
        let mut words = compile(toolchain, &include, &[folder.to_owned(), folder.join("include")]);
        let library = toolchain.library.parent().unwrap_or(Path::new("."));
        let rpath = option("-Wl,-rpath,", library);
        words.extend([host.into(), "-o".into(), program.clone().into(), toolchain.library.clone().into()]);
        words.extend([rpath, "-ldl".into()]);
        steps.push(Step { words, makes: program });
    }
    Ok(BuildPlan { files, steps, description: (output.to_owned(), description) })
}

/// An option that ends with a path.
fn option(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(path);
    word
}

/// The compiler with what all sources are compiled with. C++14: D2.8's tools.
fn compile(toolchain: &Toolchain, include: &Path, folders: &[PathBuf]) -> Vec<OsString> {
    // Loops of HLS have labels.
    let options = ["-std=c++14", "-O2", "-g", "-Wall", "-Wno-unknown-pragmas", "-Wno-unused-label"];
    let mut words = vec![toolchain.compiler.clone()];
    words.extend(options.map(OsString::from));
    words.extend_from_slice(&toolchain.options);
    for folder in std::iter::once(include).chain(folders.iter().map(PathBuf::as_path)) {
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        words.push(option("-I", shown));
    }
    words
}

/// The kernels and streams of a design in a word: a program compares those of its description with those of
/// the `config.yaml` that it is run with.
pub fn contents(design: &Design) -> String {
    let or = |number: Option<u32>, other: &str| number.map_or(other.to_owned(), |number| number.to_string());
    let kernels = design.kernels.iter().map(|kernel| {
        let DesignKernel { name, inputs, outputs, port, cycles, depth, .. } = kernel;
        format!("{name},{},{inputs},{outputs},{},{cycles}", or(*port, "none"), or(*depth, "auto"))
    });
    let streams = design.streams.iter().map(|stream| {
        let DesignStream { name, from, to, depth, count, .. } = stream;
        let [from, to] = [from, to].map(|end| format!("{}.{}", end.kernel, end.parameter));
        format!("{name},{from},{to},{depth},{}", count.unwrap_or(0))
    });
    kernels.chain(streams).collect::<Vec<_>>().join(";")
}

/// The line of a kernel in the description.
fn described(kernel: &DesignKernel, parts: &str) -> String {
    let DesignKernel { name, inputs, outputs, cycles, depth, .. } = kernel;
    // Those of the largest packet, which the machine says.
    let depth = depth.unwrap_or(0);
    let port = kernel.port.map_or("none".to_owned(), |port| port.to_string());
    format!(
        "kernel {name} port {port} inputs {inputs} outputs {outputs} depth {depth} cycles {cycles} \
         code {parts}/{name}.so\n"
    )
}

/// The line of a stream between kernels.
fn described_stream(stream: &DesignStream) -> String {
    let DesignStream { name, from, to, depth, count, .. } = stream;
    let count = count.unwrap_or(0);
    let (writer, reader) =
        (format!("{} {}", from.kernel, from.parameter), format!("{} {}", to.kernel, to.parameter));
    format!("stream {name} from {writer} to {reader} depth {depth} count {count}\n")
}

/// The source of a kernel.
pub(crate) struct KernelSource {
    pub path: PathBuf,
    pub text: String,
    pub function: String,
}

/// The source of a kernel, beside the design's file.
pub(crate) fn find_source(design: &Design, kernel: &DesignKernel) -> Result<KernelSource, DesignError> {
    let folder = design.file.parent().unwrap_or(Path::new(""));
    let mut looked = Vec::new();
    for function in kernel.functions() {
        for inner in KERNEL_FOLDERS {
            let path = if inner == "." { folder.to_owned() } else { folder.join(inner) };
            let path = path.join(format!("{function}.cpp"));
            match std::fs::read_to_string(&path) {
                Ok(text) => return Ok(KernelSource { path, text, function: function.to_owned() }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    looked.push(path.display().to_string());
                }
                Err(error) => return Err(DesignError::Unreadable { path, error }),
            }
        }
    }
    Err(DesignError::NoSource {
        config: design.name(),
        line: kernel.line,
        kernel: kernel.name.clone(),
        looked: looked.join(", "),
    })
}

/// The folders in which a kernel's source has its headers.
pub(crate) fn source_folders(design: &Design, source: &Path) -> [PathBuf; 3] {
    let folder = design.file.parent().unwrap_or(Path::new(""));
    [source.parent().unwrap_or(folder), folder, &folder.join("include")].map(Path::to_owned)
}

/// Checks by the compiler, on its line, that an array of streams has as many as the design.
fn check_of_length(design: &Design, found: &KernelFound<'_>, parameter: &KernelParameter) -> Option<String> {
    let is_end = |end: &StreamEnd| end.kernel == found.kernel.name && end.parameter == parameter.name;
    let stream = design.streams.iter().find(|own| is_end(&own.from) || is_end(&own.to))?;
    let (name, count, length) = (&parameter.name, stream.count?, parameter.length.as_deref()?);
    let line = source::line(parameter.line, &found.source.path.display().to_string());
    Some(format!(
        "{line}static_assert(({length}) == {count}, \"{name} has other than the {count} streams that \
         `count` of {} in config.yaml says: make them equal\");\n",
        stream.name
    ))
}

/// A kernel's source, by which name the host finds it, and what its parameters are called.
fn entry(design: &Design, found: &KernelFound<'_>) -> String {
    let KernelSource { path, text, function } = &found.source;
    let translated = source::translate(text, &path.display().to_string());
    let names: String = found.names().iter().map(|name| format!(", \"{name}\"")).collect();
    let parameters = found.parameters.iter().flatten();
    let lengths: String = parameters.filter_map(|own| check_of_length(design, found, own)).collect();
    format!(
        "{translated}\n{lengths}#include \"weft_apeiron/kernel_entry.h\"\n\
         WEFT_APEIRON_KERNEL({function}{names})\n"
    )
}

/// The C++ sources of a folder, by name; none if it is not there.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    found.sort();
    found
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::LATENCY;

    fn toolchain() -> Toolchain {
        let options = vec!["-O0".into()];
        Toolchain { compiler: "c++".into(), options, library: "/lib/weft/libweft.so".into() }
    }

    /// Catches replicas that share an object, hosts that are not built, and paths that only hold here.
    #[test]
    fn every_kernel_and_host_has_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for inner in ["hw_hls", "host"] {
            std::fs::create_dir(at(inner)).unwrap();
        }
        let kernel = "#pragma HLS pipeline II=2\nvoid krnl_sr(int n, hls::stream<int> &there) {}\n";
        std::fs::write(at("hw_hls/krnl_sr.cpp"), kernel).unwrap();
        std::fs::write(at("host/latency_test.cpp"), "").unwrap();
        let stream = "streams: [{name: s, from: krnl_sr_1.there, to: krnl_sr_2.there, depth: 5}]";
        let design = Design::of_text(&at("config.yaml"), &format!("{LATENCY}{stream}\n")).unwrap();
        let plan = plan(&design, &toolchain(), &at("out/latency.xclbin")).unwrap();
        let made: Vec<_> =
            plan.steps.iter().map(|step| step.makes.strip_prefix(at("out")).unwrap()).collect();
        assert_eq!(
            made,
            ["latency.xclbin.d/krnl_sr_1.so", "latency.xclbin.d/krnl_sr_2.so", "latency_test"].map(Path::new)
        );
        for word in ["-DN_OUTPUT_CHANNELS=3", "-fvisibility=hidden", "-O0"] {
            assert!(plan.steps[1].words.contains(&word.into()), "{word}");
        }
        assert_eq!(
            plan.description.1,
            "weft-apeiron 4\n\
             of krnl_sr_1,0,4,4,auto,1;krnl_sr_2,1,4,3,auto,1;s,krnl_sr_1.there,krnl_sr_2.there,5,0\n\
             frequency 100\nswitch TextaRossa_switch_1\n\
             kernel krnl_sr_1 port 0 inputs 4 outputs 4 depth 0 cycles 1 \
             code latency.xclbin.d/krnl_sr_1.so\n\
             kernel krnl_sr_2 port 1 inputs 4 outputs 3 depth 0 cycles 1 \
             code latency.xclbin.d/krnl_sr_2.so\n\
             stream s from krnl_sr_1 there to krnl_sr_2 there depth 5 count 0\nend\n"
        );
        let generated = plan.files.iter().find(|(path, _)| path.ends_with("krnl_sr_2.cpp")).unwrap();
        assert!(
            generated.1.contains("begin_iteration(2,")
                && generated.1.contains("WEFT_APEIRON_KERNEL(krnl_sr, \"n\", \"there\")")
        );
    }

    /// Catches a build that writes over what no build has made: the design's own files, devices, folders.
    #[test]
    fn what_no_build_has_made_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let plan = |output: &str, program: &str| BuildPlan {
            files: Vec::new(),
            steps: vec![Step { words: Vec::new(), makes: at(program) }],
            description: (at(output), String::new()),
        };
        std::fs::write(at("config.yaml"), LATENCY).unwrap();
        std::fs::write(at("program"), b"\x7fELF and more").unwrap();
        std::fs::write(at("old.xclbin"), "weft-apeiron 2\n").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("b.d"), "").unwrap();
        assert!(plan("new.xclbin", "program").check_places().is_ok());
        assert!(plan("old.xclbin", "new").check_places().is_ok());
        for (output, program, named) in [
            ("config.yaml", "program", "config.yaml is there, and is no design"),
            ("folder", "program", "folder is there, and is no design"),
            ("b", "program", "b.d is there, and is no folder"),
            ("new.xclbin", "config.yaml", "config.yaml is there, and is no program"),
            ("/dev/full", "program", "/dev/full is there, and is no design"),
        ] {
            let error = plan(output, program).check_places().unwrap_err().to_string();
            assert!(error.contains(named) && error.ends_with("name another FILE in -o"), "{error}");
        }
    }

    /// Catches a kernel without a source whose mend is not told.
    #[test]
    fn a_kernel_without_a_source_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let design = Design::of_text(&folder.path().join("config.yaml"), LATENCY).unwrap();
        let error = plan(&design, &toolchain(), Path::new("out")).unwrap_err().to_string();
        assert!(error.contains("config.yaml:2: kernel krnl_sr_1 has no source"), "{error}");
        assert!(error.contains("hw_hls/krnl_sr.cpp"), "{error}");
    }
}
