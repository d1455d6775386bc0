//! The store: what survives, what is refused, and what happens when the disk does not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bigfleet_model::machine::MachineState;
use bigfleet_proto::v1alpha1::ListFilter;
use bigfleet_provider_kit::{
    OperationKind, Options, Provider, Recovery, StartError, Store, StoreError, VirtualClock,
};
use redb::backends::InMemoryBackend;
use redb::{BackendError, StorageBackend};
use tonic::Code;

use crate::cloud::{Cloud, FREE, World, operation};

async fn open(path: &Path, cloud: Cloud) -> Result<Provider<Cloud>, StartError> {
    let options = Options::new(Arc::new(VirtualClock::at(0)), 7);
    Provider::open(cloud, Store::file(path), options).await
}

/// A world whose process is gone: its moves are cut short where they are.
async fn crash(world: World) -> Cloud {
    let cloud = world.cloud.clone();
    world.provider.handle().stop(std::time::Duration::ZERO).await;
    cloud
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Store::file(folder.path().join("store"));
    let world = World::with(Cloud::of(3), store()).await;
    let created = world.create("m-0", ("s", 4, 9)).await;
    world.reach("m-0", MachineState::Idle).await;
    let request = bigfleet_proto::v1alpha1::ConfigureRequest {
        machine_id: "m-0".into(),
        cluster_id: "shop".into(),
        shard_metadata: [("k\u{0}".to_string(), String::new())].into(),
        ..Default::default()
    };
    let configured = world.configure_with(request).await;
    let before = world.reach("m-0", MachineState::Configured).await;
    assert_eq!(world.create("nobody", ("s", 1, 1)).await, Err(Code::NotFound));
    let revision = world.list(ListFilter::default()).await.revision;
    let cloud = crash(world).await;

    let world = World::with(cloud, store()).await;
    assert_eq!(world.get("m-0").await.unwrap(), *before);
    assert_eq!(world.list(ListFilter::default()).await.revision, revision, "nothing changed, nothing moved");
    assert_eq!(world.create("m-0", ("s", 4, 9)).await, Err(Code::FailedPrecondition));
    assert_eq!(world.create("nobody", ("s", 1, 1)).await, Err(Code::FailedPrecondition));
    let again = world.configure("m-0", "shop", ("s", 4, 10)).await;
    assert_eq!(operation(&again), operation(&configured));
    let fresh = world.create("m-1", FREE).await;
    assert!(![operation(&created), operation(&configured)].contains(&operation(&fresh)), "never used again");
}

#[tokio::test]
async fn moves_cut_short_come_back_failed_or_where_the_provider_says() {
    for store in [Store::memory(), Store::file(tempfile::tempdir().unwrap().keep().join("store"))] {
        let world = World::with(Cloud::of(4), store.clone()).await;
        world.configured("m-3", "c").await;
        world.cloud.hold();
        for id in ["m-0", "m-1", "m-2"] {
            world.create(id, ("s", 1, 1)).await.unwrap();
        }
        world.drain("m-3", 5, FREE).await.unwrap();
        let cloud = crash(world).await;
        cloud.release();
        cloud.mood().recoveries.insert("m-1".into(), Recovery::Ended("host".into()));
        cloud.mood().recoveries.insert("m-2".into(), Recovery::Undone);
        cloud.mood().recoveries.insert("m-3".into(), Recovery::Undone);

        let world = World::with(cloud, store).await;
        let m0 = world.get("m-0").await.unwrap();
        assert_eq!((m0.state, m0.last_error.as_str()), (MachineState::Failed.to_wire(), "cut short"));
        let m1 = world.get("m-1").await.unwrap();
        assert_eq!((m1.state, m1.host.unwrap().r#ref.as_str()), (MachineState::Idle.to_wire(), "host"));
        let m2 = world.get("m-2").await.unwrap();
        assert_eq!((m2.state, m2.host), (MachineState::Speculative.to_wire(), None));
        let m3 = world.get("m-3").await.unwrap();
        assert_eq!((m3.state, m3.cluster.as_str()), (MachineState::Configured.to_wire(), "c"));
        assert!(world.create("m-2", ("s", 1, 2)).await.is_ok());
        world.reach("m-2", MachineState::Idle).await;
    }
}

#[tokio::test]
async fn moves_cut_short_may_be_settled_while_the_provider_serves() {
    let store = Store::memory();
    let mut cloud = Cloud::of(4);
    cloud.recovers_while_serving = true;
    let world = World::with(cloud, store.clone()).await;
    world.cloud.hold();
    for id in ["m-0", "m-1", "m-2"] {
        world.create(id, ("s", 1, 1)).await.unwrap();
    }
    let id_of = |world: &World| world.provider.handle().operation_id("m-0", OperationKind::Create);
    let before = id_of(&world).expect("an operation");
    let cloud = crash(world).await;
    cloud.mood().recoveries.insert("m-0".into(), Recovery::Ended("host".into()));
    cloud.mood().recoveries.insert("m-1".into(), Recovery::Undone);

    let world = World::with(cloud, store).await;
    for id in ["m-0", "m-1", "m-2"] {
        assert_eq!(world.get(id).await.unwrap().state, MachineState::Creating.to_wire(), "not settled yet");
    }
    let again = world.create("m-0", ("s", 1, 2)).await;
    assert_eq!(operation(&again), before, "the move goes on under its id");
    // What a provider reports meanwhile wins.
    world
        .provider
        .handle()
        .update("m-1", |machine| {
            machine.state = MachineState::Failed.to_wire();
            machine.last_error = "burnt down".into();
        })
        .await
        .unwrap();
    world.cloud.release();
    assert_eq!(world.reach("m-0", MachineState::Idle).await.host.clone().unwrap().r#ref, "host");
    assert_eq!(world.reach("m-2", MachineState::Failed).await.last_error, "cut short");
    assert_eq!(world.get("m-1").await.unwrap().last_error, "burnt down");
}

#[tokio::test]
async fn what_is_not_settled_in_time_has_failed() {
    let store = Store::memory();
    let mut cloud = Cloud::of(1);
    cloud.recovers_while_serving = true;
    let world = World::with(cloud, store.clone()).await;
    world.cloud.hold();
    world.create("m-0", FREE).await.unwrap();
    let world = World::with(crash(world).await, store).await;
    while world.clock.next_wake_unix_nanos().is_none() {
        tokio::task::yield_now().await;
    }
    world.clock.advance(std::time::Duration::from_mins(15));
    let error = world.reach("m-0", MachineState::Failed).await.last_error.clone();
    assert!(error.contains("was not known within 900 s"), "{error}");
}

#[tokio::test]
async fn offerings_refresh_what_is_stored_and_never_remove() {
    let store = Store::memory();
    let world = World::with(Cloud::of(3), store.clone()).await;
    world.configured("m-2", "c").await;
    world.provider.handle().update("m-2", |machine| machine.price_per_hour = 9.0).await.unwrap();
    let mut cloud = crash(world).await;
    cloud.slots = 2;
    let world = World::with(cloud, store.clone()).await;
    let m2 = world.get("m-2").await.unwrap();
    assert_eq!((m2.price_per_hour, m2.cluster.as_str()), (9.0, "c"), "no longer offered, still there");
    let mut cloud = crash(world).await;
    cloud.slots = 4;
    let world = World::with(cloud, store).await;
    let m2 = world.get("m-2").await.unwrap();
    assert_eq!((m2.price_per_hour, m2.cluster.as_str()), (0.5, "c"), "offered at its price again");
    assert_eq!(world.list(ListFilter::default()).await.machines.len(), 4);
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let first = open(&path, Cloud::of(1)).await.unwrap();
    let Err(StartError::Store(StoreError::InUse(named))) = open(&path, Cloud::of(1)).await else {
        panic!("two providers on one store")
    };
    assert_eq!(named, path);
    first.handle().stop(std::time::Duration::ZERO).await;
    open(&path, Cloud::of(1)).await.unwrap();
}

#[tokio::test]
async fn a_damaged_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    open(&path, Cloud::of(500)).await.unwrap().handle().stop(std::time::Duration::ZERO).await;
    let good = std::fs::read(&path).unwrap();
    open(&path, Cloud::of(500)).await.unwrap().handle().stop(std::time::Duration::ZERO).await;

    // Somewhere in the records themselves, in the header, and everywhere.
    // The flipped bit turns one zone's name into another: every record can still be read.
    let record = good.windows(5).position(|window| window == b"m-250").expect("the record is in the file");
    let zone =
        record + good[record..].windows(6).position(|window| window == b"zone-a").expect("and its zone");
    let mut flipped = good.clone();
    flipped[zone + 5] ^= 0x02;
    let mut headless = good.clone();
    headless[..64].fill(0xaa);
    let noise: Vec<u8> =
        (0..100_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (what, bytes) in [("a flipped bit", &flipped), ("a lost header", &headless), ("noise", &noise)] {
        std::fs::write(&path, bytes).unwrap();
        let error = match open(&path, Cloud::of(500)).await {
            Err(StartError::Store(error @ StoreError::Damaged { .. })) => error.to_string(),
            Err(other) => panic!("{what}: {other}"),
            Ok(_) => panic!("{what} went unnoticed"),
        };
        assert!(error.contains("restore the file from a copy"), "{what}: {error}");
    }
    std::fs::write(&path, &good).unwrap();
    open(&path, Cloud::of(500)).await.unwrap();
}

/// A disk that can be full, or gone altogether.
#[derive(Debug, Clone)]
struct FailingDisk {
    bytes: Arc<InMemoryBackend>,
    full: Arc<AtomicBool>,
    gone: Arc<AtomicBool>,
    refusals: Arc<AtomicU64>,
}

impl FailingDisk {
    fn new() -> Self {
        Self {
            bytes: Arc::new(InMemoryBackend::new()),
            full: Arc::default(),
            gone: Arc::default(),
            refusals: Arc::default(),
        }
    }

    fn store(&self) -> Store {
        let disk = self.clone();
        Store::opened_by("(failing disk)", move |builder| builder.create_with_backend(disk.clone()))
    }

    fn check(&self, writing: bool) -> std::io::Result<()> {
        if self.gone.load(Ordering::SeqCst) || (writing && self.full.load(Ordering::SeqCst)) {
            self.refusals.fetch_add(1, Ordering::SeqCst);
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> std::io::Result<u64> {
        self.check(false)?;
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.check(false)?;
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.check(true)?;
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.check(true)?;
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.check(true)?;
        self.bytes.write(offset, data)
    }

    fn try_lock_range(&self, _: std::ops::Bound<u64>, _: std::ops::Bound<u64>) -> Result<bool, BackendError> {
        Err(BackendError::Unsupported)
    }
}

#[tokio::test]
async fn a_full_disk_refuses_the_call_and_changes_nothing() {
    for gone in [false, true] {
        let disk = FailingDisk::new();
        let world = World::with(Cloud::of(3), disk.store()).await;
        world.create("m-0", ("s", 1, 1)).await.unwrap();
        world.reach("m-0", MachineState::Idle).await;
        let before = world.list(ListFilter::default()).await.revision;

        let switch = if gone { &disk.gone } else { &disk.full };
        switch.store(true, Ordering::SeqCst);
        assert_eq!(world.create("m-1", ("s", 1, 1)).await, Err(Code::Unavailable));
        assert_eq!(
            world.drain("m-0", 0, ("s", 1, 2)).await,
            Err(Code::Unavailable),
            "even its mark needs the disk"
        );
        assert!(disk.refusals.load(Ordering::SeqCst) > 0, "the disk was asked");
        assert_eq!(world.get("m-1").await.unwrap().state, MachineState::Speculative.to_wire());
        assert_eq!(world.list(ListFilter::default()).await.revision, before);
        assert!(!world.cloud.mood().calls.contains(&"Create m-1".to_string()), "no work without a record");

        switch.store(false, Ordering::SeqCst);
        world.create("m-1", ("s", 1, 1)).await.expect("the refused token was not taken");
        world.reach("m-1", MachineState::Idle).await;
        let cloud = crash(world).await;
        let world = World::with(cloud, disk.store()).await;
        assert_eq!(world.get("m-1").await.unwrap().state, MachineState::Idle.to_wire());
        assert_eq!(world.create("m-1", ("s", 1, 1)).await, Err(Code::FailedPrecondition));
    }
}

#[tokio::test]
async fn a_move_whose_end_cannot_be_written_ends_when_the_disk_is_back() {
    let disk = FailingDisk::new();
    let world = World::with(Cloud::of(1), disk.store()).await;
    world.cloud.hold();
    world.create("m-0", FREE).await.unwrap();
    disk.full.store(true, Ordering::SeqCst);
    world.cloud.release();
    while disk.refusals.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.get("m-0").await.unwrap().state, MachineState::Creating.to_wire());
    disk.full.store(false, Ordering::SeqCst);
    let idle = tokio::spawn({
        let handle = world.provider.handle();
        async move { handle.wait_for("m-0", |machine| machine.state == MachineState::Idle.to_wire()).await }
    });
    while !idle.is_finished() {
        world.clock.advance(std::time::Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_bad_offering_stops_the_start() {
    struct Bad;
    impl bigfleet_provider_kit::Backend for Bad {
        fn name(&self) -> &'static str {
            "bad"
        }
        async fn offerings(
            &self,
        ) -> Result<Vec<bigfleet_provider_kit::Offering>, bigfleet_provider_kit::Failure> {
            let slot = bigfleet_provider_kit::Offering::new("a", "t", "z");
            Ok(vec![slot.clone(), slot])
        }
        async fn create(
            &self,
            _: &bigfleet_provider_kit::Machine,
        ) -> Result<String, bigfleet_provider_kit::Failure> {
            Err("never".into())
        }
        async fn configure(
            &self,
            _: &bigfleet_provider_kit::Machine,
            _: &[u8],
        ) -> Result<(), bigfleet_provider_kit::Failure> {
            Ok(())
        }
        async fn confirm_ready(
            &self,
            _: &bigfleet_provider_kit::Machine,
        ) -> Result<bool, bigfleet_provider_kit::Failure> {
            Ok(true)
        }
        async fn drain(
            &self,
            _: &bigfleet_provider_kit::Machine,
            _: std::time::Duration,
        ) -> Result<(), bigfleet_provider_kit::Failure> {
            Ok(())
        }
        async fn delete(
            &self,
            _: &bigfleet_provider_kit::Machine,
        ) -> Result<(), bigfleet_provider_kit::Failure> {
            Ok(())
        }
    }
    let options = Options::new(Arc::new(VirtualClock::at(0)), 7);
    let started = Provider::open(Bad, Store::memory(), options).await;
    assert!(matches!(started, Err(StartError::Twice(id)) if id == "a"));
}
