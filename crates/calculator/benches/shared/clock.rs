//! Time for benchmarks: processor time of the thread, because the machine may be busy with other work.

/// Tells time in nanoseconds, from some instant on.
pub(crate) type Clock = fn() -> u64;

/// Processor time of this thread: what work costs, whoever else is using the machine.
pub(crate) fn on_cpu() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The best of several runs.
pub(crate) fn best(repeat: usize, mut run: impl FnMut() -> u64) -> u64 {
    (0..repeat).map(|_| run()).min().expect("at least one run")
}

/// How long something takes by a clock, and what it gives.
pub(crate) fn timed_with<T>(clock: Clock, work: impl FnOnce() -> T) -> (u64, T) {
    let start = clock();
    let done = work();
    (clock() - start, done)
}

/// How long something takes in processor time, and what it gives.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (u64, T) {
    timed_with(on_cpu, work)
}
