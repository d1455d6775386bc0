//! The metal provider as a process, against real sshd and a real Redfish emulator on loopback.

mod conformance;
mod hostile;
mod kill;
mod lab;
mod life;
mod power;
mod provider;
mod scale;
mod truth;
