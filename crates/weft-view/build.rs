//! Puts the files of the page into the library: those that `make view` has written to `view/dist`. Where
//! there are none, the library has no page, and says how to get it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The file that is always in the folder, and no part of the page.
const KEPT: &str = ".gitignore";

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let page = root.join("view/dist");
    // The folder is always there, for its .gitignore: of a missing one cargo would build this each time.
    println!("cargo:rerun-if-changed={}", page.display());
    println!("cargo:rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if page.is_dir() {
        find(&page, &page, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (name, path) in files {
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),").map_err(io::Error::other)?;
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("page.rs"), table)
}

/// All files below a folder: their names from the root of the page on, and their paths.
fn find(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(root, &path, files)?;
        } else if path.file_name().is_some_and(|name| name != KEPT) {
            let name = path.strip_prefix(root).map_err(io::Error::other)?;
            files.push((name.to_string_lossy().into_owned(), path.canonicalize()?));
        }
    }
    Ok(())
}
