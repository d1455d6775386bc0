//! Whatever a fleet looks like, the parts of what it costs are all of it, to the billionth of a dollar.

use bigfleet_model::capacity::CapacityType;
use bigfleet_view::v1;
use bigfleet_view::v1::view_server::View as Api;
use tonic::Request;

use crate::driver::{Driver, START, config, metal, need, quota};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[tokio::test]
async fn the_parts_of_any_bill_are_all_of_it() {
    let mut causes = std::collections::BTreeSet::new();
    for seed in 1..=30 {
        let mut random = Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        let machines = (0..2 + random.below(8)).map(|n| {
            // Prices that no binary fraction holds.
            let price = random.below(99_999) as f64 / 7_000.0;
            match random.below(3) {
                0 => quota(&format!("od-{n}"), CapacityType::OnDemand, price),
                1 => quota(&format!("spot-{n}"), CapacityType::Spot, price),
                _ => {
                    let mut owned =
                        metal(&format!("m-{n}"), "za", ["4", "8", "16"][random.below(3) as usize]);
                    owned.price_usd_per_hour = price;
                    owned
                }
            }
        });
        let driver = Driver::new(config(), machines.collect(), Some(&record));
        let view = driver.view(Some(record));
        for _ in 0..4 {
            for cluster in ["shop", "ml"] {
                let pieces = 1 + random.below(20);
                let priority = [100, 1000][random.below(2) as usize];
                driver.report(cluster, vec![need(cluster, priority, pieces, vec![])]);
            }
            driver.pass(1 + random.below(400).cast_signed());
        }
        let summary = Api::get_summary(&view, Request::new(v1::GetSummaryRequest::default()))
            .await
            .unwrap()
            .into_inner();
        for from_unix_nanos in [0, START + 1] {
            for cluster in ["", "shop"] {
                let request = v1::GetCostsRequest {
                    from_unix_nanos,
                    cluster: cluster.into(),
                    ..v1::GetCostsRequest::default()
                };
                let costs = Api::get_costs(&view, Request::new(request)).await.unwrap().into_inner();
                let parts: i64 = costs.parts.iter().map(|part| part.nano_usd).sum();
                assert_eq!(parts, costs.total_nano_usd, "seed {seed}, {cluster:?}: {:?}", costs.parts);
                assert!(costs.parts.iter().all(|part| part.nano_usd >= 0), "seed {seed}: {:?}", costs.parts);
                causes.extend(costs.parts.iter().map(|part| part.cause.clone()));
                let nobody = v1::GetCostsRequest {
                    from_unix_nanos,
                    cluster: "shp".into(),
                    ..v1::GetCostsRequest::default()
                };
                let refused = Api::get_costs(&view, Request::new(nobody)).await.unwrap_err();
                assert!(refused.message().contains("did you mean shop?"), "seed {seed}: {refused}");
                if (from_unix_nanos, cluster) == (0, "") {
                    let whole = costs.total_nano_usd as f64 / 1e9;
                    assert!(
                        (whole - summary.usd_per_hour).abs() < 1e-6,
                        "seed {seed}: {whole} and {} are of one moment",
                        summary.usd_per_hour
                    );
                }
            }
        }
    }
    assert!(causes.len() >= 5, "the bills have many causes: {causes:?}");
}
