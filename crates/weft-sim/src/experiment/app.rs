//! Application kernels, as commands list them.

pub use weft_app::options::AppOption;
pub use weft_app::{App, AppError, KernelName, Verification};

/// All applications, in the order of lists.
pub fn all() -> impl Iterator<Item = &'static App> {
    weft_app::apps::ALL.iter().copied()
}

/// The application of this name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static App, AppError> {
    weft_app::apps::find(name)
}
