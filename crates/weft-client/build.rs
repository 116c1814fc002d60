//! Gives the library its name: a program that is linked to it then finds it in what `weft run` preloads,
//! wherever that lies.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libweft_client.so");
}
