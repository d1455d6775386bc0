//! A shard that starts again on the same folder.

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_record::tape::{Limits, Reader};
use bigfleet_shard::{Pause, PauseScope};
use bigfleet_shard_server::{Keep, Settings, StartError};

use crate::house::{Provider, anywhere, clock, cloud, hasty, listed_often, soon, start};
use crate::operator::{Operator, need};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_promised_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let sim = cloud("sim", 16).await;
    let provider = Provider::serve(sim.service(), sim.handle(), anywhere()).await;
    let keep = Keep::Folder { path: folder.path().into(), record: Limits::default() };
    let settings = Settings { keep, ..Settings::local(hasty(), vec![listed_often("sim", provider.url())]) };

    let first = start(settings.clone()).await;
    let mut shop = Operator::connect(first.grpc, "shop").await;
    shop.rollup(vec![need(10, 4)]).await;
    let update = shop.serve_until(|update| update.state() == MachineState::Configured).await;
    let pause = Pause {
        scope: PauseScope::default(),
        dry_run: false,
        reason: "test".into(),
        author: "me".into(),
        since_unix_nanos: 1,
        until_unix_nanos: None,
    };
    let paused = first.core().act(move |shard, now, step| shard.pause(pause, now, step)).await.unwrap();
    assert_eq!(paused, Ok(1));
    let busy = bigfleet_shard_server::start(settings.clone(), clock()).await.err().unwrap();
    assert!(matches!(busy, StartError::Store(_)), "one process at a time: {busy}");
    let epoch = first.epoch;
    first.stop().await.unwrap();

    let second = start(settings).await;
    assert!(second.epoch > epoch, "{} after {epoch}", second.epoch);
    let remembered = second
        .core()
        .look(|shard, _| {
            let rows = shard.clusters().get("shop").map_or(0, |cluster| cluster.demand.len());
            (shard.pauses().len(), rows, shard.cycle() > 0)
        })
        .await
        .unwrap();
    assert_eq!(remembered, (1, 1, true));
    let mut shop = Operator::connect(second.grpc, "shop").await;
    let again = shop.serve_until(|update| update.state() == MachineState::Configured).await;
    assert_eq!(again.machine_id, update.machine_id, "told to whoever connects");
    second.stop().await.unwrap();
    provider.stop().await;

    let reader = Reader::open(folder.path().join("record")).unwrap();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert!(!records.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_without_a_folder_forgets_and_still_counts_lives() {
    let first = start(Settings::local(hasty(), vec![])).await;
    assert!(first.epoch > 1_700_000_000, "the seconds of the clock");
    first.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_core_thread_ends_the_server_with_its_name() {
    let mut running = start(Settings::local(hasty(), vec![])).await;
    let asked = running.core().look(|_, _| panic!("planted by a test")).await;
    assert!(asked.is_err(), "nobody is left to answer");
    let error = soon("the server to end", running.ended()).await.unwrap_err().to_string();
    assert!(error.starts_with("the core thread has ended: it panicked"), "{error}");
}
