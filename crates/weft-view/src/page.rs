//! The files of the page.

/// Names and contents of the files that `make view` built before this library; none where it did not.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page in place of the page.
const NO_PAGE: &str = "<!doctype html><meta charset=utf-8><title>weft view</title>\
    <h1>This weft has no page</h1><p>It was built without it. With Node 20.19 or later, \
    <code>make view</code> builds the page, and the command with it. The figures are there all the same: \
    <a href=api/results>api/results</a>.";

/// A file as the browser gets it.
pub struct File {
    /// The media type.
    pub kind: &'static str,
    /// The content.
    pub content: &'static [u8],
}

/// Whether there is a page.
pub fn is_there() -> bool {
    !FILES.is_empty()
}

/// The file of a name, such as `assets/index.js`; the empty name is that of the page itself.
pub fn file(name: &str) -> Option<File> {
    let name = if name.is_empty() { "index.html" } else { name };
    if !is_there() && name == "index.html" {
        return Some(File { kind: "text/html; charset=utf-8", content: NO_PAGE.as_bytes() });
    }
    let (_, content) = FILES.iter().find(|(file, _)| *file == name)?;
    let kind = match name.rsplit('.').next().unwrap_or("") {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        _ => "application/octet-stream",
    };
    Some(File { kind, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a name that leads out of the page; and a page that is neither there nor explained.
    #[test]
    fn files_are_those_of_the_page() {
        let page = String::from_utf8_lossy(file("").unwrap().content).into_owned();
        assert!(page.contains(if is_there() { "<script" } else { "make view" }), "{page}");
        assert!(file("../Cargo.toml").is_none() && file("/etc/passwd").is_none() && file(".").is_none());
    }
}
