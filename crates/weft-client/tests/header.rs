//! `include/weft.h` is what the library's sources make: `WEFT_BLESS=1 cargo test --test header` writes it
//! anew.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The files of which the header is made, in its order; modules below them are found.
const SOURCES: [&str; 3] = ["src/operation.rs", "src/interface.rs", "src/abi/mod.rs"];

fn generated() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let sources =
        SOURCES.iter().fold(cbindgen::Builder::new(), |builder, file| builder.with_src(here.join(file)));
    let mut header = Vec::new();
    sources.with_config(config).generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

/// Catches a header that declares what the library does not have, and one that leaves out or misdescribes
/// what it has.
#[test]
fn the_header_is_that_of_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/weft.h");
    let generated = generated();
    if std::env::var_os("WEFT_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    let differs = committed.lines().zip(generated.lines()).find(|(there, made)| there != made);
    assert!(
        committed == generated,
        "include/weft.h is not what the sources make; run WEFT_BLESS=1 cargo test --test header. First \
         difference: {differs:?}"
    );
    for file in ["abi/mod.rs", "abi/interface.rs", "abi/service.rs"] {
        let source =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap();
        let exported =
            source.lines().filter_map(|line| line.split_once("extern \"C\" fn ")).map(|(_, rest)| rest);
        for name in exported.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name) {
            assert!(committed.contains(&format!("{name}(")), "{name} is not declared");
        }
    }
}

/// Catches a header that is not C, or that C++ does not take.
#[test]
fn the_header_is_c_and_c_plus_plus() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    for (language, standard) in [("c", "-std=c11"), ("c++", "-std=c++17")] {
        let mut compiler = Command::new("cc");
        compiler.args([
            "-x",
            language,
            standard,
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
        ]);
        let output = compiler.arg("-include").arg(include.join("weft.h")).arg("/dev/null").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // A machine may have no C++.
        assert!(output.status.success() || said.contains("cc1plus"), "{said}");
    }
}

/// Catches a structure that changes its size and not `WEFT_VERSION`: the library writes beyond its end in
/// programs that were compiled before.
#[test]
fn structures_of_a_version_keep_their_sizes() {
    let (version, sizes) = (
        6,
        [
            ("weft_completion", 64),
            ("weft_address", 16),
            ("weft_interface_completion", 24),
            ("weft_port_arrival", 32),
        ],
    );
    let checks = sizes.map(|(name, bytes)| {
        format!("_Static_assert(sizeof({name}) == {bytes}, \"{name} has changed: raise WEFT_VERSION\");\n")
    });
    let version =
        format!("_Static_assert(WEFT_VERSION == {version}, \"write the sizes of this version here\");\n");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sizes.c");
    fs::write(&source, format!("{version}{}", checks.concat())).unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/weft.h");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-fsyntax-only", "-include"]).arg(header).arg(&source);
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
