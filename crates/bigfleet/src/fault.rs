//! `bigfleet fault`: makes a running simulated cloud go wrong, and right again.

use std::process::ExitCode;

use crate::context::{Places, Up};
use crate::exit::Failure;

pub(crate) use bigfleet_provider_sim::cli::fault::Args;

/// Does it, at the cloud that was named or at that of a running `bigfleet up`.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let admin = args.admin.clone().or_else(|| Up::read(&Places::of_this_user()).map(|up| up.admin));
    Ok(bigfleet_provider_sim::cli::fault::run(&Args { admin, ..args.clone() })?)
}
