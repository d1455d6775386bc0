//! Between messages and what a coordinator knows. What enters is checked here or where it is decided, once.

use bigfleet_coordinator as core;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::requirement::Requirement;
use bigfleet_proto::convert::resources;
use bigfleet_proto::coordinator_v1 as v1;
use bigfleet_proto::v1alpha1 as wire;
use bigfleet_proto::v1alpha1::coordinator_instruction::Payload;

/// A shard's report. What cannot be read is refused with the field.
pub(crate) fn report(message: &wire::ShardReport) -> Result<core::Report, String> {
    let summary = message.summary.clone().unwrap_or_default();
    let shortfalls = message.shortfalls.iter().take(core::limits::SHORTFALLS + 1).enumerate();
    let shortfalls = shortfalls
        .map(|(place, short)| shortfall(short).map_err(|error| format!("shortfalls[{place}]: {error}")))
        .collect::<Result<_, _>>()?;
    Ok(core::Report {
        epoch: message.shard_epoch,
        cycle: message.cycle,
        total_machines: summary.total_machines,
        free_machines: summary.free_machines,
        by_instance_type: summary.per_instance_type_counts,
        by_zone: summary.per_zone_counts,
        provider_address: summary.provider_address,
        shortfalls,
    })
}

fn shortfall(message: &wire::Shortfall) -> Result<core::Shortfall, String> {
    let empty = std::collections::BTreeMap::new();
    let deficit = message.deficit.as_ref().map_or(&empty, |deficit| &deficit.resources);
    let requirements = message.requirements.iter().map(Requirement::try_from).collect::<Result<_, _>>();
    Ok(core::Shortfall {
        requirements: requirements.map_err(|error| error.to_string())?,
        deficit: resources::from_map(deficit).map_err(|error| error.to_string())?,
        priority: message.priority,
        age_cycles: message.age_cycles,
        interruption: PenaltyBucket::from_wire(message.interruption_penalty_bucket)
            .map_err(|error| error.to_string())?,
    })
}

/// What a shard last said, as dashboards read it: without requirements (wire).
pub(crate) fn snapshot(shard: &str, heard: &core::Heard) -> wire::ShardReportSnapshot {
    let core::Heard { report, received_unix_nanos } = heard;
    let shortfalls = report.shortfalls.iter().map(|short| wire::Shortfall {
        requirements: Vec::new(),
        deficit: Some(wire::Resources { resources: resources::to_map(&short.deficit) }),
        priority: short.priority,
        age_cycles: short.age_cycles,
        interruption_penalty_bucket: short.interruption.to_wire(),
    });
    wire::ShardReportSnapshot {
        shard_id: shard.into(),
        cycle: report.cycle,
        received_at_unix_ns: *received_unix_nanos,
        summary: Some(wire::ShardSummary {
            total_machines: report.total_machines,
            free_machines: report.free_machines,
            per_instance_type_counts: report.by_instance_type.clone(),
            per_zone_counts: report.by_zone.clone(),
            provider_address: report.provider_address.clone(),
        }),
        shortfalls: shortfalls.collect(),
    }
}

/// An instruction, said in the term of whoever says it: it was stored in that term or in one before.
pub(crate) fn instruction(term: i64, instruction: &core::Instruction) -> wire::CoordinatorInstruction {
    let payload = match &instruction.order {
        core::Order::AssignDomain { key, value } => Payload::AssignDomain(wire::AssignDomain {
            topology_key: key.to_string(),
            topology_value: value.to_string(),
        }),
        core::Order::UnassignDomain { key, value } => Payload::UnassignDomain(wire::UnassignDomain {
            topology_key: key.to_string(),
            topology_value: value.to_string(),
        }),
        core::Order::Transfer { machines, from, to } => Payload::TransferOwnership(wire::TransferOwnership {
            machine_ids: machines.iter().map(ToString::to_string).collect(),
            from_shard_id: from.to_string(),
            to_shard_id: to.to_string(),
        }),
    };
    wire::CoordinatorInstruction {
        coordinator_term: term,
        sequence_number: instruction.number.cast_signed(),
        instruction_id: instruction.id(),
        payload: Some(payload),
    }
}

/// Any outcome but "accepted" means that it was not done.
pub(crate) fn outcome(ack: &wire::InstructAck) -> core::Outcome {
    match ack.outcome() {
        wire::instruct_ack::Outcome::Accepted => core::Outcome::Accepted,
        _ => core::Outcome::Refused,
    }
}

pub(crate) fn quota(quota: &core::Quota) -> v1::Quota {
    v1::Quota {
        shard_id: quota.shard.to_string(),
        provider: quota.provider.to_string(),
        instance_type: quota.instance_type.to_string(),
        zone: quota.zone.to_string(),
        capacity_type: quota.capacity_type.to_string(),
        machines: Some(quota.machines),
    }
}

pub(crate) fn provider(provider: &core::Provider) -> v1::Provider {
    v1::Provider {
        name: provider.name.to_string(),
        address: provider.address.to_string(),
        shard_ids: provider.shards.iter().map(ToString::to_string).collect(),
    }
}

pub(crate) fn cluster(fleet: &core::Fleet, cluster: &core::Cluster) -> v1::Cluster {
    v1::Cluster {
        cluster_id: cluster.id.to_string(),
        shard_id: cluster.shard.to_string(),
        shard_address: fleet
            .shard(&cluster.shard)
            .map_or_else(String::new, |shard| shard.address.to_string()),
    }
}

pub(crate) fn domain(domain: &core::Domain) -> v1::Domain {
    let (is_arriving, is_leaving, next) = match &domain.tenure {
        core::Tenure::Arriving { .. } => (true, false, None),
        core::Tenure::Held { .. } => (false, false, None),
        core::Tenure::Leaving { next, .. } => (false, true, next.as_deref()),
    };
    v1::Domain {
        topology_key: domain.key.to_string(),
        topology_value: domain.value.to_string(),
        shard_id: domain.tenure.holder().into(),
        is_arriving,
        is_leaving,
        next_shard_id: next.unwrap_or_default().into(),
        since_unix_nanos: domain.since_unix_nanos,
    }
}

pub(crate) fn transfer(transfer: &core::Transfer) -> v1::Transfer {
    let step = match transfer.step {
        core::Step::Leaving => v1::transfer::Step::Leaving,
        core::Step::Arriving => v1::transfer::Step::Arriving,
        core::Step::Arrived => v1::transfer::Step::Arrived,
    };
    v1::Transfer {
        machine_id: transfer.machine.to_string(),
        domain: transfer.domain.to_string(),
        from_shard_id: transfer.from.to_string(),
        to_shard_id: transfer.to.to_string(),
        step: step.into(),
        since_unix_nanos: transfer.since_unix_nanos,
        reason: transfer.reason.clone(),
    }
}

pub(crate) fn ask(ask: &core::Ask) -> v1::Ask {
    let source = match ask.source {
        core::Source::Idle => v1::ask::Source::Idle,
        core::Source::Quota => v1::ask::Source::Quota,
        core::Source::InUse => v1::ask::Source::InUse,
    };
    v1::Ask {
        id: ask.id,
        getter_shard_id: ask.getter.to_string(),
        source: source.into(),
        requirements: ask.requirements.iter().map(Into::into).collect(),
        deficit: Some(wire::Resources { resources: resources::to_map(&ask.deficit) }),
        priority: ask.priority,
    }
}
