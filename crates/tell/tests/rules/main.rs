//! One snapshot for each rule by which a need comes by its machines: a real shard decides, and its explanation is read.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::requirement::Requirement;
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use bigfleet_tell::style::Paint;
use bigfleet_tell::{Story, explain};
use bigfleet_view::v1::view_server::View as Api;
use bigfleet_view::{short_id, v1};
use tonic::Request;

#[expect(dead_code, reason = "the tests of the view need more of it")]
#[path = "../../../view/tests/view/driver.rs"]
mod driver;

use driver::{Driver, config, metal, need, quota};

const RACK: &str = "example.org/rack";

/// A machine that is bound to a need's cluster, for that need.
fn bound(machine: Machine, need: &Need) -> Machine {
    let assigned = Assignment {
        cluster: need.cluster.clone(),
        priority: need.profile.priority(),
        fingerprint: need.profile.fingerprint().into(),
        group: need.group.clone(),
        ..Assignment::default()
    };
    Machine { state: MachineState::Configured, cluster: (&*need.cluster).into(), assigned, ..machine }
}

fn cpus(machine: Machine, cpus: u64) -> Machine {
    Machine { resources: ResourceVec::parse([("cpu", cpus.to_string())]).unwrap(), ..machine }
}

fn racked(machine: Machine, rack: &str) -> Machine {
    Machine { labels: Labels::new([(RACK, rack)]).unwrap(), ..machine }
}

/// A gang of so many pieces of one cpu that must share a rack.
fn gang(cluster: &str, group: &str, pieces: u64) -> Need {
    Need { group: group.into(), ..need(cluster, 100, pieces, vec![Requirement::same(RACK)]) }
}

/// A shard in which nothing that is decided is carried out.
fn held_back(machines: Vec<Machine>, needs: &[Need]) -> Arc<Driver> {
    let mut config = config();
    config.rails.dry_run = true;
    let driver = Driver::new(config, machines, None);
    let mut clusters: Vec<&str> = needs.iter().map(|need| &*need.cluster).collect();
    clusters.dedup();
    for cluster in clusters {
        let rows = needs.iter().filter(|need| &*need.cluster == cluster);
        driver.report(cluster, rows.cloned().collect());
    }
    driver
}

fn said(story: &Story) -> String {
    let mut out = Vec::new();
    story.write(&mut out, 100, Paint::Plain).unwrap();
    let text = String::from_utf8(out).unwrap();
    // The rules are what is shown here, not when they were followed: these answers and what is wrapped of them are left out.
    let aside = ["record", "decisions", "withheld", "since", "price", "next"];
    let mut shown = Vec::new();
    let mut is_aside = false;
    for line in text.lines() {
        let label = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        if label.is_some() || !line.starts_with(' ') {
            is_aside = label.is_some_and(|label| aside.iter().any(|one| label.starts_with(one)));
        }
        if !is_aside {
            shown.push(line);
        }
    }
    shown.join("\n")
}

async fn of_need(driver: &Arc<Driver>, need: &Need) -> String {
    let request = v1::ExplainNeedRequest {
        need: short_id(&need.key()),
        without_remedies: true,
        ..v1::ExplainNeedRequest::default()
    };
    let answer = Api::explain_need(&driver.view(None), Request::new(request)).await.unwrap();
    said(&explain::need::story(&answer.into_inner()))
}

async fn of_machine(driver: &Arc<Driver>, machine: &str) -> String {
    let request = v1::ExplainMachineRequest { machine: machine.into(), at: None };
    let answer = Api::explain_machine(&driver.view(None), Request::new(request)).await.unwrap();
    said(&explain::machine::story(&answer.into_inner()))
}

#[tokio::test]
async fn own_machines_first_then_what_no_need_keeps() {
    let (web, api) = (need("shop", 100, 12, vec![]), need("shop", 50, 4, vec![]));
    let driver = held_back(
        vec![
            bound(metal("m-1", "za", "8"), &web),
            bound(metal("m-2", "za", "4"), &api),
            bound(metal("m-3", "za", "4"), &api),
        ],
        &[web.clone(), api],
    );
    insta::assert_snapshot!(of_need(&driver, &web).await);
}

#[tokio::test]
async fn what_a_need_keeps_is_not_there_for_those_before_it() {
    let (web, api) = (need("shop", 100, 8, vec![]), need("shop", 50, 8, vec![]));
    let driver = held_back(
        vec![bound(metal("m-1", "za", "8"), &api), metal("m-2", "za", "8")],
        &[web.clone(), api.clone()],
    );
    let both = format!("{}\n\n{}", of_need(&driver, &web).await, of_machine(&driver, "m-1").await);
    insta::assert_snapshot!(both);
}

#[tokio::test]
async fn a_bargain_beats_the_next_best() {
    let web = need("shop", 100, 16, vec![]);
    let small = cpus(quota("small-1", CapacityType::OnDemand, 0.3), 4);
    let large = cpus(quota("large-1", CapacityType::OnDemand, 0.9), 16);
    let driver = held_back(vec![small, large], std::slice::from_ref(&web));
    let plan = Api::plan(&driver.view(None), Request::new(v1::PlanRequest::default())).await.unwrap();
    let why = plan.into_inner().actions.iter().map(bigfleet_tell::sentence::why).collect::<Vec<_>>();
    insta::assert_snapshot!(format!("{}\nplan: {}", of_need(&driver, &web).await, why.join("\n")));
}

#[tokio::test]
async fn a_need_takes_over_when_nothing_is_left_to_acquire() {
    let (web, batch) = (need("shop", 100, 8, vec![]), need("shop", 50, 8, vec![]));
    let driver = held_back(vec![bound(metal("m-1", "za", "8"), &batch)], &[web.clone(), batch.clone()]);
    let all =
        [of_need(&driver, &web).await, of_need(&driver, &batch).await, of_machine(&driver, "m-1").await];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[tokio::test]
async fn what_the_others_make_superfluous_is_trimmed() {
    let web = need("shop", 100, 8, vec![]);
    let driver = held_back(
        vec![bound(metal("m-1", "za", "2"), &web), bound(metal("m-2", "za", "8"), &web)],
        std::slice::from_ref(&web),
    );
    let all = [of_need(&driver, &web).await, of_machine(&driver, "m-1").await];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[tokio::test]
async fn a_gang_is_given_the_rack_that_adds_least_to_the_bill() {
    let train = gang("ml", "train-7", 16);
    let rented = |id: &str, rack: &str, price: f64| racked(quota(id, CapacityType::OnDemand, price), rack);
    let driver = held_back(
        vec![
            rented("a-1", "rack-1", 0.5),
            rented("a-2", "rack-1", 0.5),
            rented("b-1", "rack-2", 0.4),
            rented("b-2", "rack-2", 0.4),
        ],
        std::slice::from_ref(&train),
    );
    insta::assert_snapshot!(of_need(&driver, &train).await);
}

#[tokio::test]
async fn a_gang_stays_where_its_own_machines_are() {
    let train = gang("ml", "train-7", 16);
    let home = |id: &str| bound(racked(metal(id, "za", "8"), "rack-1"), &train);
    let free = |id: &str| racked(metal(id, "za", "8"), "rack-2");
    let driver =
        held_back(vec![home("a-1"), home("a-2"), free("b-1"), free("b-2")], std::slice::from_ref(&train));
    let at_home = of_need(&driver, &train).await;
    // It lacks half: more of it is in one rack than in the other.
    let larger = train.times(2);
    driver.report("ml", vec![larger.clone()]);
    insta::assert_snapshot!(format!("{at_home}\n\n{}", of_need(&driver, &larger).await));
}

#[tokio::test]
async fn gangs_that_fit_on_one_machine_are_folded() {
    let gangs = ["train-1", "train-2", "train-3"].map(|group| gang("ml", group, 2));
    let driver = held_back(vec![racked(metal("m-1", "za", "8"), "rack-1")], &gangs);
    insta::assert_snapshot!(of_need(&driver, &gangs[1]).await);
}
