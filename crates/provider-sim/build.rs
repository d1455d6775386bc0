//! Compiles the proto files of the simulated world with a compiler written in Rust, so that nobody needs `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors =
        protox::compile(["bigfleet/sim/v1/admin.proto", "bigfleet/sim/v1/demand.proto"], ["proto"])?;
    tonic_prost_build::configure().btree_map(".").compile_fds(descriptors)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
