//! How long answers take on a shard of 500,000 machines, and how long they hold it up. Prints; asserts no times.
//!
//! `cargo test --release -p bigfleet-view --test view -- --ignored --nocapture measure`

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bigfleet_model::need::Need;
use bigfleet_net::{Clock as _, SystemClock};
use bigfleet_proto::v1alpha1::InspectNeedsRequest;
use bigfleet_proto::v1alpha1::shard_read_server::ShardRead;
use bigfleet_shapes::{Shape, generate};
use bigfleet_shard::{Event, MINUTE, Rollup, SessionId};
use bigfleet_view::v1;
use bigfleet_view::v1::view_server::View as Api;
use tonic::Request;

use crate::driver::{Driver, config};
use crate::lists::pages;

/// The processor time this process has used, in steps of ten milliseconds: what a busy machine cannot inflate.
fn cpu_millis() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and prints figures"]
async fn measure() {
    let clock = SystemClock::start();
    let scenario = generate(Shape::Fleet500k, 1);
    let mut config = config();
    config.record = false;
    config.limits.flights = 1_000_000;
    config.providers[0].list_every = 60 * MINUTE;
    config.providers[0].stale_after = 120 * MINUTE;
    let driver = Driver::new(config, scenario.machines, None);
    let mut clusters: BTreeMap<String, Vec<Need>> = BTreeMap::new();
    for need in scenario.needs {
        clusters.entry(need.cluster.to_string()).or_default().push(need);
    }
    driver.with(|state, step| {
        for (number, (cluster, needs)) in clusters.into_iter().enumerate() {
            let (session, now) = (SessionId(number as u64 + 1), state.now);
            let opened =
                Event::Opened { session, cluster: cluster.as_str().into(), protocol: "v1alpha1".into() };
            state.shard.handle(opened, now, step);
            let rollup = Rollup { cluster: cluster.as_str().into(), taken_unix_nanos: now, needs };
            state.shard.handle(Event::of_rollup(session, Ok(rollup)), now, step);
        }
    });
    // What is bought arrives, what is not needed goes a little at a time.
    driver.pass(20);
    let (machines, needs, short) = driver.with(|state, _| {
        let engine = state.shard.engine();
        (state.shard.machine_count(), engine.need_count(), engine.short_needs().len())
    });
    eprintln!("{machines} machines, {needs} needs, {short} short");

    let view = driver.view(None);
    macro_rules! time {
        ($name:literal, $call:expr) => {{
            let mut times = Vec::new();
            let mut result = None;
            driver.longest_look_nanos.store(0, Ordering::Relaxed);
            let worked = cpu_millis();
            for _ in 0..3 {
                let begun = clock.now_unix_nanos();
                result = Some($call);
                times.push((clock.now_unix_nanos() - begun) as f64 / 1e6);
            }
            times.sort_by(f64::total_cmp);
            let longest = driver.longest_look_nanos.load(Ordering::Relaxed) as f64 / 1e6;
            eprintln!(
                "{:<34} median {:9.2} ms   cpu {:8.1} ms   longest look {longest:7.2} ms",
                $name,
                times[1],
                (cpu_millis() - worked) / 3.0
            );
            result.unwrap()
        }};
    }
    let shorts = time!(
        "shortfalls",
        pages(Api::list_shortfalls(&view, Request::new(v1::ListShortfallsRequest::default())).await)
            .await
            .unwrap()
    );
    let plain = shorts.iter().flat_map(|page| &page.shortfalls).find_map(|short| short.need.clone());
    let plain = plain.expect("somebody is short").long_id;
    let all = time!(
        "needs, all",
        pages(Api::list_needs(&view, Request::new(v1::ListNeedsRequest::default())).await).await.unwrap()
    );
    let satisfied =
        all.iter().flat_map(|p| &p.needs).find(|n| n.satisfied).unwrap().key.clone().unwrap().long_id;
    // A short gang if there is one: gangs that are served look at every domain all the same.
    let gangs = all.iter().flat_map(|page| &page.needs).filter(|need| !need.domain_key.is_empty());
    let gang = gangs.min_by_key(|need| need.satisfied).and_then(|need| need.key.clone());
    let gang = gang.expect("there are gangs").long_id;
    let explain = |need: &str, without_remedies| {
        Request::new(v1::ExplainNeedRequest { need: need.into(), without_remedies, ..Default::default() })
    };
    time!("explain need, satisfied", Api::explain_need(&view, explain(&satisfied, false)).await.unwrap());
    time!("explain need, short", Api::explain_need(&view, explain(&plain, false)).await.unwrap());
    time!("explain need, short, no remedies", Api::explain_need(&view, explain(&plain, true)).await.unwrap());
    time!("explain need, gang", Api::explain_need(&view, explain(&gang, false)).await.unwrap());
    time!("explain need, gang, no remedies", Api::explain_need(&view, explain(&gang, true)).await.unwrap());
    let listed = time!(
        "machines, all, brief",
        pages(Api::list_machines(&view, Request::new(v1::ListMachinesRequest::default())).await)
            .await
            .unwrap()
    );
    let bound = listed.iter().flat_map(|p| &p.machines).find(|m| m.state == 5).unwrap().id.clone();
    let full =
        || Request::new(v1::ListMachinesRequest { detail: v1::Detail::Full.into(), ..Default::default() });
    time!("machines, all, full", pages(Api::list_machines(&view, full()).await).await.unwrap());
    let machine = || Request::new(v1::ExplainMachineRequest { machine: bound.clone(), at: None });
    time!("explain machine", Api::explain_machine(&view, machine()).await.unwrap());
    let unknown = || Request::new(v1::ExplainMachineRequest { machine: "no-such-machine".into(), at: None });
    time!("explain unknown machine", Api::explain_machine(&view, unknown()).await.unwrap_err());
    let why_not =
        || Request::new(v1::WhyNotRequest { need: plain.clone(), machine: bound.clone(), at: None });
    time!("why not", Api::why_not(&view, why_not()).await.unwrap());
    time!(
        "offers",
        pages(Api::list_offers(&view, Request::new(v1::ListOffersRequest::default())).await).await.unwrap()
    );
    time!(
        "summary, cached verdicts",
        Api::get_summary(&view, Request::new(v1::GetSummaryRequest::default())).await.unwrap()
    );
    time!(
        "clusters",
        pages(Api::list_clusters(&view, Request::new(v1::ListClustersRequest::default())).await)
            .await
            .unwrap()
    );
    time!("rails", Api::get_rails(&view, Request::new(v1::GetRailsRequest::default())).await.unwrap());
    time!("plan", Api::plan(&view, Request::new(v1::PlanRequest::default())).await.unwrap());
    let add = v1::AddMachines { like: bound.clone(), count: 100, ..Default::default() };
    let edit = v1::Edit { edit: Some(v1::edit::Edit::AddMachines(add)) };
    let what_if =
        || Request::new(v1::WhatIfRequest { edits: vec![edit.clone()], cycles: 1, ..Default::default() });
    time!("what if, 100 machines more", Api::what_if(&view, what_if()).await.unwrap());
    time!(
        "inspect needs",
        pages(ShardRead::inspect_needs(&view, Request::new(InspectNeedsRequest::default())).await)
            .await
            .unwrap()
    );
    // What a living fork costs the shard: the next change has to copy what they share.
    let change_millis = |forked: bool| {
        let fork = forked.then(|| driver.with(|state, _| state.shard.engine().fork()));
        let begun = clock.now_unix_nanos();
        driver.with(|state, step| {
            let session = SessionId(1);
            let (name, demand) = {
                let name = state.shard.sessions()[&session].clone();
                let demand = state.shard.clusters()[&name].demand.clone();
                (name, demand)
            };
            let needs = demand.iter().map(|need| need.clone().times(if forked { 2 } else { 3 })).collect();
            let rollup = Rollup { cluster: name, taken_unix_nanos: state.now, needs };
            state.shard.handle(Event::of_rollup(session, Ok(rollup)), state.now, step);
            state.now += MINUTE;
            state.shard.advance(state.now, step);
        });
        drop(fork);
        (clock.now_unix_nanos() - begun) as f64 / 1e6
    };
    let (alone, forked) = (change_millis(false), change_millis(true));
    eprintln!("a roll-up and its cycle: {alone:.1} ms alone, {forked:.1} ms beside a fork");
}
