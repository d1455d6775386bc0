//! A view that tells a fixed story, so that output can be compared letter by letter.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bigfleet_net::TlsFiles;
use bigfleet_view::v1::view_server::{View, ViewServer};
use bigfleet_view::v1::*;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use crate::story;

type Pages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What the server is like.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) version: Version,
    /// Questions it does not know, by method.
    pub(crate) unknown: Vec<&'static str>,
    /// What it refuses to do, and the words.
    pub(crate) denied: Option<&'static str>,
    /// How many machines it has beside those of the story.
    pub(crate) crowd: u32,
    /// The cluster that is connected only when sessions are listed for the first time.
    pub(crate) leaves: &'static str,
}

impl Default for Manner {
    fn default() -> Self {
        Self { version: story::version(), unknown: Vec::new(), denied: None, crowd: 0, leaves: "" }
    }
}

/// The last request of each sort, as text: what the flags became.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

struct Fake {
    manner: Manner,
    asked: Asked,
}

impl Fake {
    fn hear<T: std::fmt::Debug>(&self, method: &'static str, request: Request<T>) -> Result<T, Status> {
        let message = request.into_inner();
        self.asked.lock().unwrap().push(format!("{message:?}"));
        if self.manner.unknown.contains(&method) {
            return Err(Status::unimplemented(""));
        }
        match self.manner.denied {
            Some(words) => Err(Status::permission_denied(words)),
            None => Ok(message),
        }
    }
}

fn stream<T: Send + 'static>(pages: Vec<T>) -> Response<Pages<T>> {
    Response::new(Box::pin(tokio_stream::iter(pages.into_iter().map(Ok))))
}

fn known<T>(name: &str, prefix: &str, answer: T) -> Result<Response<T>, Status> {
    if prefix.starts_with(name) || prefix == name {
        return Ok(Response::new(answer));
    }
    Err(Status::not_found(format!("there is nothing called {name:?}; did you mean {prefix}?")))
}

#[tonic::async_trait]
impl View for Fake {
    async fn get_version(&self, request: Request<GetVersionRequest>) -> Result<Response<Version>, Status> {
        self.hear("get_version", request)?;
        Ok(Response::new(self.manner.version.clone()))
    }

    async fn get_summary(&self, request: Request<GetSummaryRequest>) -> Result<Response<Summary>, Status> {
        self.hear("get_summary", request)?;
        Ok(Response::new(story::summary()))
    }

    type WatchStream = Pages<WatchEvent>;
    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Pages<WatchEvent>>, Status> {
        self.hear("watch", request)?;
        // Two ticks, then the end.
        Ok(stream(vec![WatchEvent::default(), WatchEvent::default()]))
    }

    type ListNeedsStream = Pages<NeedPage>;
    async fn list_needs(
        &self,
        request: Request<ListNeedsRequest>,
    ) -> Result<Response<Pages<NeedPage>>, Status> {
        let request = self.hear("list_needs", request)?;
        let as_of = AsOf { from_record: request.at.is_some(), ..story::as_of() };
        let needs =
            story::needs().into_iter().filter(|need| !request.short_only || !need.satisfied).collect();
        Ok(stream(vec![NeedPage { as_of: Some(as_of), needs, total: None }]))
    }

    type ListMachinesStream = Pages<MachinePage>;
    async fn list_machines(
        &self,
        request: Request<ListMachinesRequest>,
    ) -> Result<Response<Pages<MachinePage>>, Status> {
        let request = self.hear("list_machines", request)?;
        let pages = story::machine_pages(self.manner.crowd, request.detail() == Detail::Full);
        Ok(Response::new(Box::pin(tokio_stream::iter(pages).map(Ok))))
    }

    type ListClustersStream = Pages<ClusterPage>;
    async fn list_clusters(
        &self,
        request: Request<ListClustersRequest>,
    ) -> Result<Response<Pages<ClusterPage>>, Status> {
        self.hear("list_clusters", request)?;
        Ok(stream(vec![ClusterPage {
            as_of: Some(story::as_of()),
            clusters: story::clusters(),
            total: None,
        }]))
    }

    type ListDecisionsStream = Pages<DecisionPage>;
    async fn list_decisions(
        &self,
        request: Request<ListDecisionsRequest>,
    ) -> Result<Response<Pages<DecisionPage>>, Status> {
        self.hear("list_decisions", request)?;
        Ok(stream(vec![DecisionPage { as_of: Some(story::as_of()), decisions: story::decisions() }]))
    }

    type ListOffersStream = Pages<OfferPage>;
    async fn list_offers(
        &self,
        request: Request<ListOffersRequest>,
    ) -> Result<Response<Pages<OfferPage>>, Status> {
        self.hear("list_offers", request)?;
        Ok(stream(vec![OfferPage { as_of: Some(story::as_of()), offers: story::offers(), total: None }]))
    }

    type ListProvidersStream = Pages<ProviderPage>;
    async fn list_providers(
        &self,
        request: Request<ListProvidersRequest>,
    ) -> Result<Response<Pages<ProviderPage>>, Status> {
        self.hear("list_providers", request)?;
        Ok(stream(vec![ProviderPage { as_of: Some(story::as_of()), providers: story::providers() }]))
    }

    type ListSessionsStream = Pages<SessionPage>;
    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<Pages<SessionPage>>, Status> {
        self.hear("list_sessions", request)?;
        let lists =
            self.asked.lock().unwrap().iter().filter(|asked| asked.starts_with("ListSessions")).count();
        let sessions = story::clusters().into_iter().filter_map(|cluster| cluster.session);
        let sessions =
            sessions.filter(|session| lists < 2 || session.cluster != self.manner.leaves).collect();
        Ok(stream(vec![SessionPage { as_of: Some(story::as_of()), sessions, total: None }]))
    }

    type ListShortfallsStream = Pages<ShortfallPage>;
    async fn list_shortfalls(
        &self,
        request: Request<ListShortfallsRequest>,
    ) -> Result<Response<Pages<ShortfallPage>>, Status> {
        self.hear("list_shortfalls", request)?;
        Ok(stream(vec![ShortfallPage {
            as_of: Some(story::as_of()),
            shortfalls: story::shortfalls(),
            total: None,
        }]))
    }

    async fn get_rails(&self, request: Request<GetRailsRequest>) -> Result<Response<Rails>, Status> {
        self.hear("get_rails", request)?;
        Ok(Response::new(story::rails()))
    }

    async fn get_costs(&self, request: Request<GetCostsRequest>) -> Result<Response<Costs>, Status> {
        let request = self.hear("get_costs", request)?;
        Ok(Response::new(story::costs(&request)))
    }

    async fn lint(&self, request: Request<LintRequest>) -> Result<Response<LintAnswer>, Status> {
        self.hear("lint", request)?;
        Ok(Response::new(story::lints()))
    }

    async fn get_provider_truth(
        &self,
        request: Request<GetProviderTruthRequest>,
    ) -> Result<Response<ProviderTruth>, Status> {
        self.hear("get_provider_truth", request)?;
        Ok(Response::new(story::provider_truth()))
    }

    async fn explain_need(
        &self,
        request: Request<ExplainNeedRequest>,
    ) -> Result<Response<NeedExplanation>, Status> {
        let request = self.hear("explain_need", request)?;
        match &*request.need {
            "a1b2c3d4" => Ok(Response::new(story::covered_need())),
            name => known(name, "77aa88bb", story::short_need()),
        }
    }

    async fn explain_machine(
        &self,
        request: Request<ExplainMachineRequest>,
    ) -> Result<Response<MachineExplanation>, Status> {
        let request = self.hear("explain_machine", request)?;
        match &*request.machine {
            "gcp-0007" => Ok(Response::new(story::idle_machine())),
            name => known(name, "aws-0031", story::bought_machine()),
        }
    }

    async fn explain_decision(
        &self,
        request: Request<ExplainDecisionRequest>,
    ) -> Result<Response<DecisionExplanation>, Status> {
        self.hear("explain_decision", request)?;
        Ok(Response::new(story::preempt_decision()))
    }

    async fn explain_cluster(
        &self,
        request: Request<ExplainClusterRequest>,
    ) -> Result<Response<ClusterExplanation>, Status> {
        let request = self.hear("explain_cluster", request)?;
        known(&request.cluster, "ml", story::cluster())
    }

    async fn explain_preemption(
        &self,
        request: Request<ExplainPreemptionRequest>,
    ) -> Result<Response<PreemptionExplanation>, Status> {
        let request = self.hear("explain_preemption", request)?;
        let preemptions = if request.machine == "gcp-0007" { Vec::new() } else { vec![story::preemption()] };
        Ok(Response::new(PreemptionExplanation { as_of: Some(story::as_of()), preemptions }))
    }

    async fn why_not(&self, request: Request<WhyNotRequest>) -> Result<Response<WhyNotAnswer>, Status> {
        let request = self.hear("why_not", request)?;
        Ok(Response::new(story::why_not(&request.machine)))
    }

    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<PlanAnswer>, Status> {
        let request = self.hear("plan", request)?;
        Ok(Response::new(if request.cluster == "quiet" { story::empty_plan() } else { story::plan() }))
    }

    async fn what_if(&self, _: Request<WhatIfRequest>) -> Result<Response<WhatIfAnswer>, Status> {
        Err(Status::unimplemented("not part of the story"))
    }

    async fn pause(&self, request: Request<PauseRequest>) -> Result<Response<PauseAnswer>, Status> {
        let request = self.hear("pause", request)?;
        Ok(Response::new(PauseAnswer { pause: Some(story::pause(&request)) }))
    }

    async fn get_modes(&self, request: Request<GetModesRequest>) -> Result<Response<Modes>, Status> {
        self.hear("get_modes", request)?;
        Ok(Response::new(story::modes()))
    }

    async fn set_mode(&self, request: Request<SetModeRequest>) -> Result<Response<SetModeAnswer>, Status> {
        let request = self.hear("set_mode", request)?;
        let is = (request.mode() != Mode::Unspecified).then(|| story::mode(&request));
        Ok(Response::new(SetModeAnswer { was: story::modes().orders.pop(), is }))
    }

    type ListProposalsStream = Pages<ProposalPage>;
    async fn list_proposals(
        &self,
        request: Request<ListProposalsRequest>,
    ) -> Result<Response<Pages<ProposalPage>>, Status> {
        self.hear("list_proposals", request)?;
        Ok(stream(vec![ProposalPage { as_of: Some(story::as_of()), proposals: story::proposals() }]))
    }

    async fn approve(&self, request: Request<ApproveRequest>) -> Result<Response<ApproveAnswer>, Status> {
        let request = self.hear("approve", request)?;
        let approved = if request.cluster == "quiet" { Vec::new() } else { story::proposals() };
        Ok(Response::new(ApproveAnswer { approved }))
    }

    async fn resume(&self, request: Request<ResumeRequest>) -> Result<Response<ResumeAnswer>, Status> {
        let request = self.hear("resume", request)?;
        let ended =
            if request.number == 3 || request.everything { story::rails().pauses } else { Vec::new() };
        Ok(Response::new(ResumeAnswer { ended, released: Vec::new() }))
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) asked: Asked,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(Manner::default(), None)
    }

    pub(crate) fn with(manner: Manner, tls: Option<TlsFiles>) -> Self {
        let asked = Asked::default();
        let fake = Fake { manner, asked: asked.clone() };
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel::<SocketAddr>();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                serve(listener, fake, tls, stopped).await;
            });
        });
        let address = told.recv().expect("the server listens");
        Self { url: format!("{scheme}://{address}"), asked, stop: Some(stop), thread: Some(thread) }
    }

    /// The last thing it was asked.
    pub(crate) fn last_asked(&self) -> String {
        self.asked.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

async fn serve(listener: TcpListener, fake: Fake, tls: Option<TlsFiles>, stopped: oneshot::Receiver<()>) {
    let layer = bigfleet_net::CallLayer::usual();
    let router = bigfleet_proto::transport::server().layer(layer.clone()).add_service(ViewServer::new(fake));
    let stopped = async move {
        let _ = stopped.await;
    };
    let tls = tls.map(|files| files.server_config().expect("good files"));
    router.serve_with_incoming_shutdown(layer.incoming(listener, tls, 64), stopped).await.unwrap();
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A test that failed must not hang here.
            let _ = thread.join();
        }
    }
}
