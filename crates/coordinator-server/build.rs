//! Compiles the part of etcd's API that is used, without `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let etcd = protox::compile(["etcd.proto"], ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(etcd)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
