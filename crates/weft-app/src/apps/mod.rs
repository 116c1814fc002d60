//! The applications, one file each. To add one, write its file and give it a line in [`ALL`].

mod halo3d;
mod lammps;

use crate::app::{App, AppError};

/// All applications, in the order of lists.
pub const ALL: &[&App] = &[&halo3d::APP, &lammps::APP];

/// The application of this name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static App, AppError> {
    let names = || ALL.iter().map(|app| app.name);
    ALL.iter().copied().find(|app| app.name == name).ok_or_else(|| {
        let suggestion = match weft_keys::nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "there are {}; weft app list says what they do",
                names().collect::<Vec<_>>().join(", ")
            ),
        };
        AppError::UnknownApp { name: name.to_owned(), suggestion }
    })
}
