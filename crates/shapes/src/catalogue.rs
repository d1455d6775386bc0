//! Sixty instance types: ten families of six sizes. Made up, but sized and priced like the real ones.
//!
//! | family | kind | arch | memory per cpu | dollars per cpu and hour |
//! |---|---|---|---|---|
//! | `gen1`, `gen2` | general | amd64 | 4 GiB | 0.048, 0.0504 |
//! | `gen3` | general | arm64 | 4 GiB | 0.0385 |
//! | `cmp1`, `cmp2` | compute | amd64 | 2 GiB | 0.0425, 0.0446 |
//! | `cmp3` | compute | arm64 | 2 GiB | 0.034 |
//! | `mem1` | memory | amd64 | 8 GiB | 0.063 |
//! | `mem2` | memory | arm64 | 8 GiB | 0.0504 |
//! | `infer1` | gpu | amd64 | 4 GiB | by size, 1 to 8 small gpus |
//! | `train1` | gpu | amd64 | 10 to 12 GiB | by size, 1 to 8 large gpus |
//!
//! The cpu families come with 2, 4, 8, 16, 32 and 64 cpus. A type is named after its family and its cpus:
//! `gen1-16`. Workloads get 99 % of the cpus less 60 thousandths of one, 94 % of the memory less 256 MiB,
//! and all gpus.

use crate::amount::{Amount, GIB};

/// What a family is good at. The name is also the first half of a machine's pool label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    General,
    Compute,
    Memory,
    Gpu,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Gpu => "gpu",
        }
    }
}

/// One size of a family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeSize {
    pub(crate) cpus: u64,
    pub(crate) memory_gib: u64,
    pub(crate) gpus: u64,
    pub(crate) usd_per_hour: f64,
}

/// Machines that differ only in size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) arch: &'static str,
    /// Empty for machines without gpus.
    pub(crate) accelerator: &'static str,
    /// Racks out of a hundred that hold this family.
    pub(crate) rack_weight: u64,
    /// How often each size is the main size of a rack, relative to the others.
    pub(crate) size_weights: [u64; SIZES],
    pub(crate) sizes: [TypeSize; SIZES],
}

/// Sizes per family.
pub(crate) const SIZES: usize = 6;
/// All types; type `t` is size `t % SIZES` of family `t / SIZES`.
pub(crate) const TYPES: usize = FAMILIES.len() * SIZES;
/// Where `infer1` is in [`FAMILIES`].
pub(crate) const INFER: usize = 8;
/// Where `train1` is in [`FAMILIES`].
pub(crate) const TRAIN: usize = 9;

const CPU_SIZE_WEIGHTS: [u64; SIZES] = [4, 10, 22, 32, 22, 10];
/// Databases and training jobs live on the larger machines.
const LARGE_SIZE_WEIGHTS: [u64; SIZES] = [2, 4, 10, 22, 32, 30];

const fn ladder(gib_per_cpu: u64, usd_per_cpu_hour: f64) -> [TypeSize; SIZES] {
    let mut sizes = [TypeSize { cpus: 2, memory_gib: 0, gpus: 0, usd_per_hour: 0.0 }; SIZES];
    let mut at = 0;
    while at < SIZES {
        let cpus = 2 << at;
        sizes[at] = TypeSize {
            cpus,
            memory_gib: cpus * gib_per_cpu,
            gpus: 0,
            usd_per_hour: cpus as f64 * usd_per_cpu_hour,
        };
        at += 1;
    }
    sizes
}

const fn gpu(cpus: u64, memory_gib: u64, gpus: u64, usd_per_hour: f64) -> TypeSize {
    TypeSize { cpus, memory_gib, gpus, usd_per_hour }
}

const fn cpu_family(
    name: &'static str,
    kind: Kind,
    arch: &'static str,
    rack_weight: u64,
    gib_per_cpu: u64,
    usd_per_cpu_hour: f64,
) -> Family {
    let size_weights = if let Kind::Memory = kind { LARGE_SIZE_WEIGHTS } else { CPU_SIZE_WEIGHTS };
    let sizes = ladder(gib_per_cpu, usd_per_cpu_hour);
    Family { name, kind, arch, accelerator: "", rack_weight, size_weights, sizes }
}

/// The ten families; their rack weights add up to 100.
pub(crate) const FAMILIES: [Family; 10] = [
    cpu_family("gen1", Kind::General, "amd64", 14, 4, 0.048),
    cpu_family("gen2", Kind::General, "amd64", 15, 4, 0.0504),
    cpu_family("gen3", Kind::General, "arm64", 10, 4, 0.0385),
    cpu_family("cmp1", Kind::Compute, "amd64", 12, 2, 0.0425),
    cpu_family("cmp2", Kind::Compute, "amd64", 12, 2, 0.0446),
    cpu_family("cmp3", Kind::Compute, "arm64", 8, 2, 0.034),
    cpu_family("mem1", Kind::Memory, "amd64", 8, 8, 0.063),
    cpu_family("mem2", Kind::Memory, "arm64", 6, 8, 0.0504),
    Family {
        name: "infer1",
        kind: Kind::Gpu,
        arch: "amd64",
        accelerator: "small",
        rack_weight: 8,
        size_weights: [10, 26, 24, 18, 14, 8],
        sizes: [
            gpu(4, 16, 1, 0.526),
            gpu(8, 32, 1, 0.752),
            gpu(16, 64, 1, 1.204),
            gpu(24, 96, 2, 2.288),
            gpu(48, 192, 4, 4.576),
            gpu(96, 384, 8, 9.152),
        ],
    },
    Family {
        name: "train1",
        kind: Kind::Gpu,
        arch: "amd64",
        accelerator: "large",
        rack_weight: 7,
        size_weights: LARGE_SIZE_WEIGHTS,
        sizes: [
            gpu(12, 144, 1, 4.10),
            gpu(24, 288, 2, 8.19),
            gpu(48, 576, 4, 16.39),
            gpu(96, 1152, 8, 32.77),
            gpu(128, 1536, 8, 36.80),
            gpu(192, 2048, 8, 55.04),
        ],
    },
];

/// The family of a type.
pub(crate) fn family(kind: usize) -> &'static Family {
    &FAMILIES[kind / SIZES]
}

/// The size of a type.
pub(crate) fn size(kind: usize) -> &'static TypeSize {
    &family(kind).sizes[kind % SIZES]
}

/// The name of a type.
pub(crate) fn type_name(kind: usize) -> String {
    format!("{}-{}", family(kind).name, size(kind).cpus)
}

/// The nominal size of a type.
pub(crate) fn nominal(kind: usize) -> Amount {
    let size = size(kind);
    Amount::new(size.cpus * 1000, size.memory_gib * GIB, size.gpus)
}

/// What workloads may use of a type.
pub(crate) fn allocatable(kind: usize) -> Amount {
    let size = size(kind);
    Amount::new(size.cpus * 990 - 60, size.memory_gib * GIB / 100 * 94 - GIB / 4, size.gpus)
}
