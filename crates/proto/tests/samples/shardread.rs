//! Samples of the messages in `shardread.proto`.

use super::capacity::need;
use super::provider::resources;
use super::s;
use crate::Golden;
use bigfleet_proto::v1alpha1::*;

pub(crate) fn check(golden: &mut Golden) {
    use inspect_needs_response::Frame;
    golden.check("InspectNeedsRequest", &InspectNeedsRequest { cluster_id: s("cluster_id"), limit: 1002 });
    golden
        .check("InspectNeedsResponse.header", &InspectNeedsResponse { frame: Some(Frame::Header(header())) });
    golden.check("InspectNeedsResponse.need", &InspectNeedsResponse { frame: Some(Frame::Need(view())) });
    golden.check("InspectNeedsHeader", &header());
    golden.check("NeedView", &view());
    golden.check("MatchingSupply", &supply());
    golden.check("PreemptionSummary", &preemption());
    golden.check("DomainCoverage", &coverage());
}

fn header() -> InspectNeedsHeader {
    InspectNeedsHeader { cycle: -1, computed_at_unix_nanos: -2, total_needs: 1003 }
}

fn view() -> NeedView {
    NeedView {
        need: Some(need()),
        cluster_id: s("cluster_id"),
        arrival_unix_nanos: -3,
        profile_fingerprint: s("profile_fingerprint"),
        satisfied: true,
        residual_deficit: Some(resources()),
        claimed_machine_count: 1007,
        bootstrap_count: 1008,
        provision_count: 1009,
        same_domain: s("same_domain"),
        same_satisfiable: true,
        acquisition_parked: true,
        parked_age_cycles: 1013,
        age_cycles_unmet: 1014,
        unmet_reason: UnmetReason::PreemptionExhausted.into(),
        matching_supply: Some(supply()),
        preemption: Some(preemption()),
        same_candidates: vec![coverage()],
    }
}

fn supply() -> MatchingSupply {
    MatchingSupply { idle: 1001, configured: 1002, speculative: 1003, capped: true }
}

fn preemption() -> PreemptionSummary {
    PreemptionSummary { victims_found: 1001, capacity_freed: Some(resources()) }
}

fn coverage() -> DomainCoverage {
    DomainCoverage { domain: s("domain"), coverage_per_mille: 1002, satisfiable: true }
}
