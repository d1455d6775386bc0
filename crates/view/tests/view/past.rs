//! Looking back: answers from the decision record.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_model::stamp::Assignment;
use bigfleet_shard::{Event, Memory, PauseScope, ProviderConfig, Shard};
use bigfleet_view::v1::view_server::View as Api;
use bigfleet_view::{View, v1};
use tonic::{Code, Request};

use crate::driver::{Driver, START, config, metal, need, quota};
use crate::lists::{pages, small};

fn at(cycle: u64) -> v1::Moment {
    v1::Moment { moment: Some(v1::moment::Moment::Cycle(cycle)) }
}

#[tokio::test]
async fn the_fleet_of_a_moment_gone_by_can_be_asked_everything() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines = vec![
        metal("m-1", "za", "8"),
        quota("spot-1", CapacityType::Spot, 0.1),
        quota("od-1", CapacityType::OnDemand, 0.4),
    ];
    let driver = Driver::new(config(), machines, Some(&record));
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    let before = driver.with(|state, _| state.shard.cycle());
    driver.report("shop", vec![need("shop", 1000, 16, vec![])]);
    let view = driver.view(Some(record));

    let list = async |at| {
        let request = v1::ListMachinesRequest { at, ..Default::default() };
        pages(Api::list_machines(&view, Request::new(request)).await).await.unwrap().remove(0)
    };
    let states = |page: &v1::MachinePage| {
        let mut states: Vec<_> = page.machines.iter().map(|m| (m.id.clone(), m.state)).collect();
        states.sort();
        states
    };
    let now = list(None).await;
    assert!(states(&now).contains(&("spot-1".into(), 5)));
    let then = list(Some(at(before))).await;
    assert!(then.as_of.as_ref().unwrap().from_record);
    assert_eq!(then.as_of.as_ref().unwrap().cycle, before);
    assert!(states(&then).contains(&("spot-1".into(), 1)), "{:?}", states(&then));

    let request = v1::ListNeedsRequest { at: Some(at(before)), ..Default::default() };
    let needs = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap().remove(0);
    assert_eq!((needs.needs.len(), needs.needs[0].credited), (1, 1));
    let request = v1::ExplainMachineRequest { machine: "m-1".into(), at: Some(at(before)) };
    let machine = Api::explain_machine(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(machine.machine.unwrap().cluster, "shop");
    let request = v1::ExplainNeedRequest { need: "shop".into(), at: Some(at(before)), ..Default::default() };
    let explained = Api::explain_need(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(explained.credited, ["m-1"]);

    let decisions = v1::ListDecisionsRequest { from_record: true, ..Default::default() };
    let decisions =
        pages(Api::list_decisions(&view, Request::new(decisions)).await).await.unwrap().remove(0).decisions;
    let bought = decisions.iter().find(|d| d.kind() == v1::ActionKind::Provision).unwrap();
    let request = v1::ExplainDecisionRequest { cycle: bought.cycle, machine: "spot-1".into() };
    let explained = Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner();
    let machine = explained.machine.unwrap();
    assert_eq!(machine.state, 1, "as it was when it was bought");
    assert_eq!(explained.decision.unwrap().why.unwrap().runner_up.unwrap().machine, "od-1");
    assert_eq!(explained.need.unwrap().key.unwrap().cluster, "shop");
    let request = v1::ExplainDecisionRequest { cycle: bought.cycle, machine: "od-1".into() };
    let nothing = Api::explain_decision(&view, Request::new(request)).await.unwrap_err();
    assert_eq!(nothing.code(), Code::NotFound);
    assert!(nothing.message().contains("decided nothing about machine \"od-1\""), "{}", nothing.message());

    let request = v1::ListNeedsRequest {
        at: Some(v1::Moment { moment: Some(v1::moment::Moment::UnixNanos(5)) }),
        ..Default::default()
    };
    let early = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap_err();
    assert_eq!(early.code(), Code::NotFound);
    let version = Api::get_version(&view, Request::new(v1::GetVersionRequest {})).await.unwrap().into_inner();
    assert!(version.recording && version.oldest_cycle > 0);
    assert_eq!((&*version.server_version, &*version.api_version, &*version.role), ("1.2.3", "v1", ""));
}

#[tokio::test]
async fn without_a_record_there_is_only_now() {
    let (_driver, view) = small();
    let request = v1::ListNeedsRequest { at: Some(at(1)), ..Default::default() };
    let refused = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with("this shard keeps no decision record"), "{}", refused.message());
    let decisions =
        pages(Api::list_decisions(&view, Request::new(v1::ListDecisionsRequest::default())).await)
            .await
            .unwrap();
    let last = &decisions[0].decisions[0];
    let request = v1::ExplainDecisionRequest { cycle: last.cycle, machine: last.machine.clone() };
    let answer = Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner();
    assert_eq!(answer.decision.unwrap().why, last.why, "the cycles at hand are enough");
    let request = v1::ExplainDecisionRequest { cycle: 999, machine: last.machine.clone() };
    let gone = Api::explain_decision(&view, Request::new(request)).await.unwrap_err();
    assert!(gone.message().starts_with("cycle 999 is not at hand ("), "{}", gone.message());
}

/// Everything that is seen of a shard at once.
#[derive(Debug, PartialEq)]
struct Seen {
    clusters: Vec<v1::Cluster>,
    sessions: Vec<v1::Session>,
    providers: Vec<v1::Provider>,
    offers: Vec<v1::Offer>,
    shortfalls: Vec<v1::Shortfall>,
    rails: v1::Rails,
}

async fn seen(view: &View<Driver>, at: Option<v1::Moment>) -> Seen {
    macro_rules! list {
        ($method:ident, $request:ident, $field:ident) => {{
            let request = v1::$request { at, ..Default::default() };
            let pages = pages(Api::$method(view, Request::new(request)).await).await.unwrap();
            assert!(pages.iter().all(|page| page.as_of.as_ref().unwrap().from_record == at.is_some()));
            pages.into_iter().flat_map(|page| page.$field).collect()
        }};
    }
    let rails = Api::get_rails(view, Request::new(v1::GetRailsRequest { at })).await.unwrap().into_inner();
    Seen {
        clusters: list!(list_clusters, ListClustersRequest, clusters),
        sessions: list!(list_sessions, ListSessionsRequest, sessions),
        providers: list!(list_providers, ListProvidersRequest, providers),
        offers: list!(list_offers, ListOffersRequest, offers),
        shortfalls: list!(list_shortfalls, ListShortfallsRequest, shortfalls),
        rails: v1::Rails { as_of: None, ..rails },
    }
}

#[tokio::test]
async fn what_was_seen_then_is_what_is_seen_of_then() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines = (0..8).map(|n| metal(&format!("m-{n}"), "za", "4"));
    let machines = machines.chain([quota("spot-1", CapacityType::Spot, 0.1)]);
    let mut config = config();
    config.guard.supply_floor = 1;
    let driver = Driver::new(config, machines.collect(), Some(&record));
    let view = driver.view(Some(record));
    let mut told: Vec<(u64, Seen)> = Vec::new();
    // A cycle that begins something is recorded as it found the fleet, so the cycle after it is looked at: when all has
    // come to rest, nothing is different.
    let mut look = async |what: &str| {
        driver.pass(12);
        let cycle = driver.with(|state, _| state.shard.cycle());
        let now = seen(&view, None).await;
        let then = seen(&view, Some(at(cycle))).await;
        assert_eq!(comparable(then), comparable(now), "{what}");
        told.push((cycle, seen(&view, Some(at(cycle))).await));
    };
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    look("a cluster came").await;
    driver.report("ml", vec![need("ml", 10, 4000, vec![])]);
    look("one that wants more than there is").await;
    let pause = v1::PauseRequest { cluster: "ml".into(), reason: "drill".into(), ..Default::default() };
    Api::pause(&view, Request::new(pause)).await.unwrap();
    look("a pause").await;
    driver.report("shop", vec![]);
    look("a roll-up that erases everything is held").await;
    driver.with(|state, step| {
        let session = state.shard.clusters()["shop"].session.unwrap();
        state.shard.handle(Event::Closed { session }, state.now, step);
    });
    look("its operator went away").await;
    driver.with(|state, _| state.listing_fails = true);
    driver.pass(120);
    look("the provider fails and its listing grows stale").await;
    driver.with(|state, _| state.listing_fails = false);
    driver.pass(120);
    driver
        .with(|state, step| {
            state.shard.resume(&PauseScope { cluster: Some("ml".into()), kind: None }, state.now, step)
        })
        .unwrap();
    look("all is well again").await;
    driver.with(|state, _| {
        let bound = state.machines.values_mut().filter(|machine| *machine.cluster == *"ml").take(3);
        for machine in bound {
            (machine.state, machine.cluster) = (MachineState::Failed, "".into());
            (machine.assigned, machine.last_error) = (Assignment::default(), "power lost".into());
        }
    });
    driver.pass(12);
    assert_eq!(driver.with(|state, _| state.shard.suspicious_losses().count()), 1);
    look("machines are lost that nobody believes").await;

    for (cycle, then) in &told {
        assert_eq!(&seen(&view, Some(at(*cycle))).await, then, "cycle {cycle}, looked at from the end");
    }
    let [came, wants, paused, held, gone, stale, well, lost] =
        &told.iter().map(|(_, seen)| seen).collect::<Vec<_>>()[..]
    else {
        panic!("eight moments")
    };
    assert_eq!((came.sessions.len(), wants.sessions.len(), gone.sessions.len()), (1, 2, 1));
    assert_eq!((came.shortfalls.len(), wants.shortfalls.len()), (0, 1));
    assert!(wants.shortfalls[0].since_unix_nanos > 0 && wants.shortfalls[0].since_cycle > 0);
    assert_eq!((wants.rails.pauses.len(), paused.rails.pauses.len(), well.rails.pauses.len()), (0, 1, 0));
    assert_eq!((paused.rails.held_rollups.len(), held.rails.held_rollups.len()), (0, 1));
    assert!(paused.clusters[0].lane.as_ref().unwrap().paused);
    assert_eq!(stale.providers[0].list_error, "unavailable: no route");
    assert!(stale.providers[0].failures > 0 && stale.providers[0].brief.as_ref().unwrap().stale);
    assert_eq!((stale.rails.providers.len(), well.rails.providers.len()), (1, 0));
    assert_eq!(well.providers[0].list_error, "");
    let [loss] = &lost.rails.losses[..] else { panic!("{:?}", lost.rails.losses) };
    assert_eq!((&*loss.cluster, &*loss.provider, loss.machines, loss.may_replace), ("ml", "sim", 3, 1));
    assert!(well.rails.losses.is_empty() && lost.rails.purchase_fraction > 0.0);
}

/// Without what goes on after the last cycle of a fleet at rest: listings that say, or fail, what the last one did.
fn comparable(mut seen: Seen) -> Seen {
    for provider in seen.providers.iter_mut().chain(&mut seen.rails.providers) {
        provider.last_full_list_unix_nanos = 0;
        provider.brief.as_mut().unwrap().heard_unix_nanos = 0;
        provider.failures = u32::from(provider.failures > 0);
    }
    // Records say what was withheld because of a mode, not the modes.
    seen.rails.mode = 0;
    for lane in seen.clusters.iter_mut().filter_map(|cluster| cluster.lane.as_mut()) {
        lane.mode = 0;
    }
    for offer in &mut seen.offers {
        offer.price_source.as_mut().unwrap().heard_unix_nanos = 0;
    }
    seen
}

#[tokio::test]
async fn of_two_providers_the_record_knows_whose_a_machine_was() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines = vec![
        quota("a-1", CapacityType::Spot, 0.1),
        quota("b-1", CapacityType::Spot, 0.1),
        quota("b-2", CapacityType::Spot, 0.1),
        metal("b-3", "za", "8"),
    ];
    let mut config = config();
    config.providers.push(ProviderConfig::named("other"));
    let driver = Driver::new(config, machines, Some(&record));
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    driver.pass(12);
    let view = driver.view(Some(record));
    let cycle = driver.with(|state, _| state.shard.cycle());
    for moment in [None, Some(at(cycle))] {
        let seen = seen(&view, moment).await;
        let mut offers: Vec<_> = seen.offers.iter().map(|o| (&*o.provider, o.speculative)).collect();
        offers.sort_unstable();
        assert_eq!(offers, [("other", 2), ("sim", 1)], "{moment:?}");
        let states =
            |provider: &v1::Provider| provider.machines.iter().map(|cell| cell.machines).sum::<u32>();
        assert_eq!(seen.providers.iter().map(states).collect::<Vec<_>>(), [1, 3], "{moment:?}");
        assert!(seen.offers.iter().all(|offer| offer.price_source.as_ref().unwrap().heard_unix_nanos > 0));
    }
}

#[tokio::test]
async fn a_moment_to_come_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let driver = Driver::new(config(), vec![metal("m-1", "za", "8")], Some(&record));
    driver.pass(30);
    let view = driver.view(Some(record));
    let cycle = driver.with(|state, _| state.shard.cycle());
    let ask = async |moment| {
        let request = v1::ListClustersRequest { at: Some(v1::Moment { moment }), ..Default::default() };
        pages(Api::list_clusters(&view, Request::new(request)).await).await.map(drop)
    };
    ask(Some(v1::moment::Moment::Cycle(cycle))).await.unwrap();
    let refused = ask(Some(v1::moment::Moment::Cycle(cycle + 1))).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert_eq!(
        refused.message(),
        format!(
            "cycle {} has not run yet; the last was {cycle}; ask without a moment to see the present",
            cycle + 1
        )
    );
    let refused = ask(Some(v1::moment::Moment::UnixNanos(i64::MAX))).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert!(
        refused
            .message()
            .starts_with("2262-04-11T23:47:16Z is yet to come; the shard's clock says 2027-01-15T08:00:30Z")
    );
}

#[tokio::test]
async fn a_record_of_before_says_what_it_does_not_hold() {
    let record = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/data/tape-1");
    let driver = Driver::new(config(), vec![metal("m-1", "za", "8")], None);
    driver.pass(200);
    let view = driver.view(Some(record));
    let at = Some(at(7));
    let words = "the record of cycle 7 was written by an older version, which did not keep";
    let sessions = v1::ListSessionsRequest { at, ..Default::default() };
    let refused = pages(Api::list_sessions(&view, Request::new(sessions)).await).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with(&format!("{words} sessions; ")), "{}", refused.message());
    let providers = v1::ListProvidersRequest { at, ..Default::default() };
    let refused = pages(Api::list_providers(&view, Request::new(providers)).await).await.unwrap_err();
    assert!(refused.message().starts_with(&format!("{words} how providers were doing; ")));
    let refused = Api::get_rails(&view, Request::new(v1::GetRailsRequest { at })).await.unwrap_err();
    assert!(refused.message().starts_with(&format!("{words} the state of its rails; ")));
    let clusters = v1::ListClustersRequest { at, ..Default::default() };
    let clusters =
        pages(Api::list_clusters(&view, Request::new(clusters)).await).await.unwrap().remove(0).clusters;
    assert!(!clusters.is_empty() && clusters.iter().all(|cluster| cluster.fleet_only));
    assert!(clusters.iter().any(|cluster| cluster.lane.as_ref().unwrap().needs > 0));
    let offers = v1::ListOffersRequest { at, ..Default::default() };
    pages(Api::list_offers(&view, Request::new(offers)).await).await.unwrap();
    let shortfalls = v1::ListShortfallsRequest { at, ..Default::default() };
    pages(Api::list_shortfalls(&view, Request::new(shortfalls)).await).await.unwrap();
}

#[tokio::test]
async fn a_moment_of_another_edition_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let machines = vec![metal("m-1", "za", "8"), quota("spot-1", CapacityType::Spot, 0.1)];
    let driver = Driver::new(config(), machines, Some(&record));
    let other = bigfleet_engine::EDITION + 1;
    driver.with(|state, _| state.edition = other);
    driver.report("shop", vec![need("shop", 1000, 8, vec![])]);
    let old = driver.with(|state, _| state.shard.cycle());
    driver.with(|state, _| state.edition = bigfleet_engine::EDITION);
    driver.report("shop", vec![need("shop", 1000, 16, vec![])]);
    let new = driver.with(|state, _| state.shard.cycle());

    let view = driver.view(Some(record.clone()));
    for (cycle, edition) in [(old, Some(other)), (new, None)] {
        let request = v1::ListNeedsRequest { at: Some(at(cycle)), ..Default::default() };
        let needs = pages(Api::list_needs(&view, Request::new(request)).await).await.unwrap().remove(0);
        assert_eq!(needs.as_of.unwrap().recorded_edition, edition, "cycle {cycle}");
    }

    // A later life, which has nothing of it in memory.
    let later = Driver::holding(Shard::new(config(), Memory::default(), START));
    let view = later.view(Some(record));
    let decisions = v1::ListDecisionsRequest { from_record: true, ..Default::default() };
    let decisions =
        pages(Api::list_decisions(&view, Request::new(decisions)).await).await.unwrap().remove(0).decisions;
    assert!(decisions.iter().all(|d| d.recorded_edition == (d.cycle <= old).then_some(other)));
    let explain = async |machine: &str| {
        let cycle = decisions.iter().rfind(|d| d.machine == machine).expect("a decision about it").cycle;
        let request = v1::ExplainDecisionRequest { cycle, machine: machine.into() };
        Api::explain_decision(&view, Request::new(request)).await.unwrap().into_inner()
    };
    let then = explain("m-1").await;
    assert_eq!((then.edition, then.replayed), (Some(bigfleet_engine::EDITION), false));
    let today = then.today.expect("today's rules decide the same here");
    assert_eq!(
        (today.kind, &*today.machine, today.recorded_edition),
        (then.decision.unwrap().kind, "m-1", None)
    );
    assert!(today.why.is_some());
    let now = explain("spot-1").await;
    assert_eq!((now.edition, now.today), (None, None));
}
