//! Gives the library its name, by which a program that is linked to it finds it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libportals.so");
}
