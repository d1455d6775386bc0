//! The suite as a program of its own, for those who do not want the whole binary.

use std::io;
use std::process::ExitCode;

use bigfleet_conformance::cli::Conform;
use clap::Parser;

#[derive(Parser)]
struct Tool {
    #[command(flatten)]
    conform: Conform,
}

#[tokio::main]
async fn main() -> io::Result<ExitCode> {
    Ok(ExitCode::from(Tool::parse().conform.execute(&mut io::stdout()).await?))
}
