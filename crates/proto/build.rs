//! Compiles the five proto files with a compiler written in Rust, so that nobody needs `protoc`.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 5] = ["capacity", "provider", "shard", "shardread", "coordinator"];

fn main() -> Result<(), Box<dyn Error>> {
    let files = FILES.map(|name| format!("bigfleet/v1alpha1/{name}.proto"));
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Served by reflection, and read by the test that holds the files against the table of the wire.
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // Maps in key order: the same message has the same bytes in every run.
        .btree_map(".")
        .compile_fds(descriptors)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
