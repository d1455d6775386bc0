//! Six kinds of workload.
//!
//! | archetype | of 100 needs | priority | gang | what it asks for |
//! |---|---|---|---|---|
//! | gpu-training | 5 | 1,000 | Same rack | whole or part machines of `train1` |
//! | gpu-inference | 15 | 1,000; 100 when training machines will do too | | `infer1`, some also `train1` |
//! | cpu-batch | 35 | 100 | | nearly anything without gpus, half of it in any region |
//! | cpu-service | 30 | 1,000 | | general and compute machines, a quarter of it spread over zones |
//! | memory-db | 10 | 1,000 | Same rack | memory machines, never spot |
//! | critical | 5 | 1,000,000 | | general machines, mostly owned or reserved, half of it spread |

use bigfleet_model::penalty::PenaltyBucket;

use crate::amount::{Amount, GIB};

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Archetype {
    GpuTraining,
    GpuInference,
    CpuBatch,
    CpuService,
    MemoryDb,
    Critical,
}

impl Archetype {
    pub(crate) const ALL: [Self; 6] = [
        Self::GpuTraining,
        Self::GpuInference,
        Self::CpuBatch,
        Self::CpuService,
        Self::MemoryDb,
        Self::Critical,
    ];

    /// Its needs out of a hundred.
    pub(crate) fn weight(self) -> u32 {
        match self {
            Self::GpuTraining | Self::Critical => 5,
            Self::GpuInference => 15,
            Self::CpuBatch => 35,
            Self::CpuService => 30,
            Self::MemoryDb => 10,
        }
    }

    /// Whether all its needs are gangs.
    pub(crate) fn is_gang(self) -> bool {
        matches!(self, Self::GpuTraining | Self::MemoryDb)
    }

    /// The share of its gangs that are larger than any one machine.
    pub(crate) fn large_gang_share(self) -> f64 {
        match self {
            Self::GpuTraining => 0.5,
            Self::MemoryDb => 0.4,
            _ => 0.05,
        }
    }

    /// How many requirement sets its needs draw from, per region.
    pub(crate) fn sets(self) -> usize {
        match self {
            Self::GpuTraining => 12,
            Self::GpuInference => 50,
            Self::CpuBatch => 80,
            Self::CpuService => 110,
            Self::MemoryDb => 25,
            Self::Critical => 35,
        }
    }

    /// The sizes of its indivisible pieces.
    pub(crate) fn units(self) -> &'static [Amount] {
        match self {
            Self::GpuTraining => &TRAINING_UNITS,
            Self::GpuInference => &INFERENCE_UNITS,
            Self::CpuBatch => &BATCH_UNITS,
            Self::CpuService => &SERVICE_UNITS,
            Self::MemoryDb => &DATABASE_UNITS,
            Self::Critical => &CRITICAL_UNITS,
        }
    }

    /// The pairs of interruption and reclamation penalty its needs declare, in dollars; `None` is undeclared.
    pub(crate) fn penalties(self) -> &'static [(Option<f64>, Option<f64>)] {
        match self {
            Self::GpuTraining => {
                &[(Some(64.0), Some(16.0)), (Some(256.0), Some(64.0)), (Some(1024.0), Some(64.0))]
            }
            Self::GpuInference => &[
                (Some(1.0), Some(0.0)),
                (Some(4.0), Some(1.0)),
                (Some(8.0), Some(2.0)),
                (Some(16.0), Some(4.0)),
            ],
            Self::CpuBatch => &[
                (None, None),
                (Some(0.0), Some(0.0)),
                (Some(0.5), Some(0.0)),
                (Some(0.5), Some(0.5)),
                (Some(1.0), Some(0.5)),
            ],
            Self::CpuService => &[
                (Some(4.0), Some(1.0)),
                (Some(16.0), Some(4.0)),
                (Some(64.0), Some(16.0)),
                (Some(64.0), None),
            ],
            Self::MemoryDb => {
                &[(Some(256.0), Some(64.0)), (Some(1024.0), Some(256.0)), (Some(4096.0), Some(1024.0))]
            }
            Self::Critical => &[
                (Some(4096.0), Some(1024.0)),
                (Some(65_536.0), Some(1024.0)),
                (Some(f64::INFINITY), Some(4096.0)),
            ],
        }
    }
}

/// The bucket of a declared or undeclared penalty.
pub(crate) fn bucket(dollars: Option<f64>) -> PenaltyBucket {
    dollars
        .map_or(PenaltyBucket::UNSPECIFIED, |d| PenaltyBucket::for_dollars(d).expect("penalties are dollars"))
}

const fn unit(cpu_milli: u64, memory_gib_halves: u64, gpus: u64) -> Amount {
    Amount::new(cpu_milli, memory_gib_halves * (GIB / 2), gpus)
}

const TRAINING_UNITS: [Amount; 3] = [unit(10_000, 220, 1), unit(44_000, 960, 4), unit(90_000, 1920, 8)];
const INFERENCE_UNITS: [Amount; 4] =
    [unit(3_000, 16, 1), unit(3_000, 24, 1), unit(6_000, 48, 1), unit(20_000, 160, 2)];
const BATCH_UNITS: [Amount; 5] =
    [unit(500, 2, 0), unit(1_000, 4, 0), unit(2_000, 8, 0), unit(4_000, 14, 0), unit(1_000, 12, 0)];
const SERVICE_UNITS: [Amount; 5] =
    [unit(250, 1, 0), unit(500, 2, 0), unit(1_000, 4, 0), unit(1_000, 7, 0), unit(2_000, 14, 0)];
const DATABASE_UNITS: [Amount; 3] = [unit(2_000, 28, 0), unit(4_000, 56, 0), unit(7_000, 110, 0)];
const CRITICAL_UNITS: [Amount; 3] = [unit(500, 2, 0), unit(1_000, 6, 0), unit(3_000, 20, 0)];
