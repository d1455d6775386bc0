//! Compiles the proto files of the view, which borrow messages from the wire's files.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile(
        ["bigfleet/view/v1/view.proto", "bigfleet/view/v1/cluster.proto"],
        ["proto", "../proto/proto"],
    )?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // Maps in key order: the same message has the same bytes in every run.
        .btree_map(".")
        .extern_path(".bigfleet.v1alpha1", "::bigfleet_proto::v1alpha1")
        .compile_fds(descriptors)?;
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=../proto/proto");
    Ok(())
}
