//! The server over real sockets, against the simulated cloud and scripted operators.

mod calls;
mod hostile;
mod house;
mod listing;
mod metrics;
mod operator;
mod outputs;
mod reading;
mod reporting;
mod restart;
mod sessions;
mod tls;
mod traces;
