//! The services as gRPC wants them: who may call, and who answers.

use std::sync::Arc;

use bigfleet_proto::v1alpha1::shard_read_server::ShardRead;
use bigfleet_proto::v1alpha1::{InspectNeedsRequest, InspectNeedsResponse};
use bigfleet_record::tape::Reader;
use tonic::{Request, Response, Status};

use crate::outputs::Outputs;
use crate::own_cluster::OwnClusters;
use crate::pages::{Pages, Stream, stream};
use crate::roles::{Right, check};
use crate::shards::{About, Shards};
use crate::snapshot::blocking;
use crate::summary::VerdictCache;
use crate::truth::Watched;
use crate::{API_VERSION, v1};

/// The view of one shard: serves `bigfleet.view.v1.View`, `bigfleet.view.v1.ClusterView` and
/// `bigfleet.v1alpha1.ShardRead`.
pub struct View<S> {
    pub(crate) shards: Arc<S>,
    pub(crate) about: Arc<About>,
    pub(crate) verdicts: Arc<VerdictCache>,
    pub(crate) own_clusters: Arc<OwnClusters>,
    pub(crate) watched: Watched,
    pub(crate) outputs: Option<Arc<dyn Outputs>>,
}

impl<S> Clone for View<S> {
    fn clone(&self) -> Self {
        Self {
            shards: self.shards.clone(),
            about: self.about.clone(),
            verdicts: self.verdicts.clone(),
            own_clusters: self.own_clusters.clone(),
            watched: self.watched.clone(),
            outputs: self.outputs.clone(),
        }
    }
}

impl<S: Shards> View<S> {
    /// The view of a shard. Clone it to serve it under each name.
    pub fn new(shards: Arc<S>, about: About) -> Self {
        let (verdicts, own_clusters, watched) = Default::default();
        Self { shards, about: Arc::new(about), verdicts, own_clusters, watched, outputs: None }
    }

    /// The same, able to ask the providers behind machines.
    #[must_use]
    pub fn asking(self, outputs: Arc<dyn Outputs>) -> Self {
        Self { outputs: Some(outputs), ..self }
    }

    async fn version(&self, role: &str) -> Result<v1::Version, Status> {
        let mut version = self
            .shards
            .inspect(|shard, now| v1::Version {
                shard_id: shard.config().shard_id.to_string(),
                epoch: shard.config().epoch,
                started_unix_nanos: shard.started_unix_nanos(),
                now_unix_nanos: now,
                ..v1::Version::default()
            })
            .await?;
        version.server_version.clone_from(&self.about.server_version);
        API_VERSION.clone_into(&mut version.api_version);
        version.simulated = self.about.simulated;
        role.clone_into(&mut version.role);
        if let Some(folder) = self.about.record_dir.clone() {
            version.recording = true;
            // A record that cannot be read is told by those who ask for it.
            let first =
                blocking(move || Ok(Reader::open(&folder).ok().and_then(|reader| reader.first()))).await?;
            if let Some(first) = first {
                (version.oldest_cycle, version.oldest_unix_nanos) = (first.cycle, first.now_unix_nanos);
            }
        }
        Ok(version)
    }

    /// Starts a list for somebody who may read.
    fn list<Q, P, F>(
        &self,
        request: Request<Q>,
        make: impl FnOnce(Self, Q, Pages<P>) -> F,
    ) -> Result<Response<Stream<P>>, Status>
    where
        P: Send + 'static,
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        check(request.extensions(), Right::Read)?;
        let view = self.clone();
        Ok(stream(|pages| make(view, request.into_inner(), pages)))
    }
}

macro_rules! answer {
    ($self:ident, $request:ident, $method:ident) => {{
        check($request.extensions(), Right::Read)?;
        Ok(Response::new($self.$method($request.into_inner()).await?))
    }};
}

macro_rules! list {
    ($self:ident, $request:ident, $method:ident) => {
        $self.list($request, |view, request, pages| async move { view.$method(request, pages).await })
    };
}

#[tonic::async_trait]
impl<S: Shards> v1::view_server::View for View<S> {
    type WatchStream = Stream<v1::WatchEvent>;
    type ListNeedsStream = Stream<v1::NeedPage>;
    type ListMachinesStream = Stream<v1::MachinePage>;
    type ListClustersStream = Stream<v1::ClusterPage>;
    type ListDecisionsStream = Stream<v1::DecisionPage>;
    type ListProposalsStream = Stream<v1::ProposalPage>;
    type ListOffersStream = Stream<v1::OfferPage>;
    type ListProvidersStream = Stream<v1::ProviderPage>;
    type ListSessionsStream = Stream<v1::SessionPage>;
    type ListShortfallsStream = Stream<v1::ShortfallPage>;

    async fn get_version(
        &self,
        request: Request<v1::GetVersionRequest>,
    ) -> Result<Response<v1::Version>, Status> {
        let role = check(request.extensions(), Right::Read)?;
        Ok(Response::new(self.version(role).await?))
    }

    async fn get_summary(
        &self,
        request: Request<v1::GetSummaryRequest>,
    ) -> Result<Response<v1::Summary>, Status> {
        check(request.extensions(), Right::Read)?;
        Ok(Response::new(self.summary(request.into_inner().decisions).await?))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        list!(self, request, watch)
    }

    async fn list_needs(
        &self,
        request: Request<v1::ListNeedsRequest>,
    ) -> Result<Response<Self::ListNeedsStream>, Status> {
        list!(self, request, list_needs)
    }

    async fn list_machines(
        &self,
        request: Request<v1::ListMachinesRequest>,
    ) -> Result<Response<Self::ListMachinesStream>, Status> {
        list!(self, request, list_machines)
    }

    async fn list_clusters(
        &self,
        request: Request<v1::ListClustersRequest>,
    ) -> Result<Response<Self::ListClustersStream>, Status> {
        list!(self, request, list_clusters_at)
    }

    async fn list_decisions(
        &self,
        request: Request<v1::ListDecisionsRequest>,
    ) -> Result<Response<Self::ListDecisionsStream>, Status> {
        list!(self, request, list_decisions)
    }

    async fn list_offers(
        &self,
        request: Request<v1::ListOffersRequest>,
    ) -> Result<Response<Self::ListOffersStream>, Status> {
        list!(self, request, list_offers)
    }

    async fn list_providers(
        &self,
        request: Request<v1::ListProvidersRequest>,
    ) -> Result<Response<Self::ListProvidersStream>, Status> {
        list!(self, request, list_providers_at)
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<Self::ListSessionsStream>, Status> {
        list!(self, request, list_sessions_at)
    }

    async fn list_shortfalls(
        &self,
        request: Request<v1::ListShortfallsRequest>,
    ) -> Result<Response<Self::ListShortfallsStream>, Status> {
        list!(self, request, list_shortfalls)
    }

    async fn get_rails(&self, request: Request<v1::GetRailsRequest>) -> Result<Response<v1::Rails>, Status> {
        answer!(self, request, rails_at)
    }

    async fn get_modes(&self, request: Request<v1::GetModesRequest>) -> Result<Response<v1::Modes>, Status> {
        answer!(self, request, modes)
    }

    async fn list_proposals(
        &self,
        request: Request<v1::ListProposalsRequest>,
    ) -> Result<Response<Self::ListProposalsStream>, Status> {
        list!(self, request, list_proposals)
    }

    async fn set_mode(
        &self,
        request: Request<v1::SetModeRequest>,
    ) -> Result<Response<v1::SetModeAnswer>, Status> {
        let role = check(request.extensions(), Right::Command)?;
        Ok(Response::new(self.set_mode(request.into_inner(), role).await?))
    }

    async fn approve(
        &self,
        request: Request<v1::ApproveRequest>,
    ) -> Result<Response<v1::ApproveAnswer>, Status> {
        let role = check(request.extensions(), Right::Command)?;
        Ok(Response::new(self.approve(request.into_inner(), role).await?))
    }

    async fn get_costs(&self, request: Request<v1::GetCostsRequest>) -> Result<Response<v1::Costs>, Status> {
        answer!(self, request, costs)
    }

    async fn lint(&self, request: Request<v1::LintRequest>) -> Result<Response<v1::LintAnswer>, Status> {
        answer!(self, request, lint)
    }

    async fn get_provider_truth(
        &self,
        request: Request<v1::GetProviderTruthRequest>,
    ) -> Result<Response<v1::ProviderTruth>, Status> {
        answer!(self, request, provider_truth)
    }

    async fn explain_need(
        &self,
        request: Request<v1::ExplainNeedRequest>,
    ) -> Result<Response<v1::NeedExplanation>, Status> {
        answer!(self, request, explain_need)
    }

    async fn explain_machine(
        &self,
        request: Request<v1::ExplainMachineRequest>,
    ) -> Result<Response<v1::MachineExplanation>, Status> {
        answer!(self, request, explain_machine)
    }

    async fn explain_decision(
        &self,
        request: Request<v1::ExplainDecisionRequest>,
    ) -> Result<Response<v1::DecisionExplanation>, Status> {
        answer!(self, request, explain_decision)
    }

    async fn explain_cluster(
        &self,
        request: Request<v1::ExplainClusterRequest>,
    ) -> Result<Response<v1::ClusterExplanation>, Status> {
        answer!(self, request, explain_cluster)
    }

    async fn explain_preemption(
        &self,
        request: Request<v1::ExplainPreemptionRequest>,
    ) -> Result<Response<v1::PreemptionExplanation>, Status> {
        answer!(self, request, explain_preemption)
    }

    async fn why_not(
        &self,
        request: Request<v1::WhyNotRequest>,
    ) -> Result<Response<v1::WhyNotAnswer>, Status> {
        answer!(self, request, why_not)
    }

    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanAnswer>, Status> {
        answer!(self, request, plan)
    }

    async fn what_if(
        &self,
        request: Request<v1::WhatIfRequest>,
    ) -> Result<Response<v1::WhatIfAnswer>, Status> {
        answer!(self, request, what_if)
    }

    async fn pause(&self, request: Request<v1::PauseRequest>) -> Result<Response<v1::PauseAnswer>, Status> {
        let role = check(request.extensions(), Right::Command)?;
        Ok(Response::new(self.pause(request.into_inner(), role).await?))
    }

    async fn resume(
        &self,
        request: Request<v1::ResumeRequest>,
    ) -> Result<Response<v1::ResumeAnswer>, Status> {
        check(request.extensions(), Right::Command)?;
        Ok(Response::new(self.resume(request.into_inner()).await?))
    }
}

#[tonic::async_trait]
impl<S: Shards> ShardRead for View<S> {
    type InspectNeedsStream = Stream<InspectNeedsResponse>;

    async fn inspect_needs(
        &self,
        request: Request<InspectNeedsRequest>,
    ) -> Result<Response<Self::InspectNeedsStream>, Status> {
        list!(self, request, inspect_needs)
    }
}
