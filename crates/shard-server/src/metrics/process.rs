//! What the operating system says of this process, under the names every Prometheus library uses. Nothing where there is
//! no `/proc`.

use std::fs;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Amount = Gauge<f64, AtomicU64>;

/// Clock ticks a second that Linux counts processor time in, on every architecture it runs on.
const TICKS: f64 = 100.0;

/// The number behind a name in `/proc/self/status`, in kilobytes.
fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().ok()
}

/// User and system time of a line of `/proc/self/stat`, in seconds. The name of the program may hold anything but its last
/// parenthesis.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let after = stat.rsplit_once(')')?.1;
    let ticks: Vec<f64> = after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// What is known now.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::default();
    let mut gauge = |name: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            let metric = Amount::default();
            metric.set(value);
            registry.register(name, help, metric);
        }
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| kilobytes(&status, name).map(|kilobytes| kilobytes * 1024.0);
    gauge("process_resident_memory_bytes", "Memory in use", bytes("VmRSS"));
    gauge("process_resident_memory_max_bytes", "The most memory ever in use", bytes("VmHWM"));
    gauge("process_virtual_memory_bytes", "Address space", bytes("VmSize"));
    let open = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
    gauge("process_open_fds", "Open files and sockets", open);
    if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu_seconds(&stat)) {
        let metric = Counter::<f64, AtomicU64>::default();
        metric.inc_by(seconds);
        registry.register("process_cpu_seconds", "Processor time used", metric);
    }
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read() {
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t   1234 kB\n", "VmRSS"), Some(1234.0));
        assert_eq!(kilobytes("Name:\tx\n", "VmRSS"), None);
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100 1000 10";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a"), None);
    }
}
