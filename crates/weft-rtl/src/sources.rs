//! The hash of the sources of RTL, as `rtl/library.py` computes it.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// SHA-256, in hexadecimal, of the names and bytes of all sources in the folder `rtl` of a tree: those of the
/// blocks, and the library's other half.
pub(crate) fn digest(tree: &Path) -> io::Result<String> {
    let rtl = tree.join("rtl");
    let mut sources = BTreeMap::from([("rtl/library.cpp".to_owned(), rtl.join("library.cpp"))]);
    for folder in fs::read_dir(&rtl)? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        for source in fs::read_dir(&folder)? {
            let source = source?.path();
            let name = source.strip_prefix(tree).unwrap_or(&source).to_string_lossy().into_owned();
            if name.ends_with(".sv") {
                sources.insert(name, source);
            }
        }
    }
    let mut hasher = Sha256::new();
    for (name, source) in sources {
        hasher.update(name.as_bytes());
        hasher.update([0]);
        hasher.update(fs::read(source)?);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a source that does not count: any change, in any block, is another hash.
    #[test]
    fn every_source_counts() {
        let tree = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = tree.path().join("rtl").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            digest(tree.path()).unwrap()
        };
        write("library.cpp", "one");
        let first = write("a/a.sv", "two");
        assert_eq!(first, write("a/test_a.py", "no source"));
        let second = write("b/b.sv", "");
        let third = write("a/a.sv", "two!");
        let fourth = write("library.cpp", "one!");
        let all = [first, second, third, fourth];
        assert!((1..4).all(|place| !all[..place].contains(&all[place])), "{all:?}");
    }
}
