//! The `weft` command: all of it is in the library, which other languages call.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    ExitCode::from(weft_cli::main(&words))
}
