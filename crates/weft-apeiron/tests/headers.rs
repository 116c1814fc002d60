//! The C++ tests of `apeiron/test`, which need no weft: streams, kernels in virtual time, integers of any
//! width.

use std::path::Path;
use std::process::Command;

/// Catches headers that a strict compiler warns of, and what each test says that it catches.
#[test]
fn the_headers_pass_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["test_integers", "test_kernels"] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++14", "-Wall", "-Wextra", "-Werror", "-I"]);
        compiler.arg(root.join("apeiron/include")).arg(root.join(format!("apeiron/test/{name}.cpp")));
        assert!(compiler.arg("-o").arg(&program).status().unwrap().success(), "{name} does not compile");
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
