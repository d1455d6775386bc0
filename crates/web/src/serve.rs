//! Serving: plain on loopback, TLS elsewhere; few callers at once, and none that does not begin.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{get, post};
use bigfleet_net::{TlsFiles, pages};
use tokio::net::TcpListener;

use crate::site::Site;
use crate::{api, assets, guard, stream};

/// Connections that may be open at once. A browser keeps up to six, one of them the stream.
const MOST_CONNECTIONS: usize = 512;

/// Why a page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Served {
    /// The socket failed.
    #[error("the page cannot be served: {0}")]
    Io(#[from] io::Error),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] bigfleet_net::TlsError),
}

/// Serves a page until `stop`.
pub async fn serve(
    listener: TcpListener,
    site: Arc<Site>,
    tls: Option<&TlsFiles>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Served> {
    let config = match tls {
        None => None,
        Some(files) => {
            // Browsers have no certificate of ours: they are asked for none, whatever other ports ask.
            let files = TlsFiles { ca: None, ..files.clone() };
            let mut config = files.server_config()?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Some(config)
        }
    };
    Ok(pages::serve(listener, config, MOST_CONNECTIONS, router(site), stop).await?)
}

fn router(site: Arc<Site>) -> Router {
    let questions = Router::new()
        .route("/hello", get(api::hello::hello))
        .route("/live", get(stream::live))
        .route("/needs", get(api::lists::needs))
        .route("/machines", get(api::lists::machines))
        .route("/decisions", get(api::lists::decisions))
        .route("/clusters", get(api::lists::clusters))
        .route("/providers", get(api::lists::providers))
        .route("/sessions", get(api::lists::sessions))
        .route("/rails", get(api::lists::rails))
        .route("/offers", get(api::lists::offers))
        .route("/costs", get(api::lists::costs))
        .route("/lint", get(api::lists::lint))
        .route("/truth", get(api::lists::truth))
        .route("/explain/{thing}", get(api::explain::explain))
        .route("/moment", get(api::moment::moment))
        .route("/policy", get(api::policy::policy))
        .route("/plan", get(api::plan::plan))
        .route("/whatif", post(api::whatif::what_if))
        .route("/pause", post(api::command::pause))
        .route("/resume", post(api::command::resume))
        .route_layer(middleware::from_fn_with_state(site.clone(), guard::known_callers));
    // Signing in is for those who are not known yet.
    let open =
        Router::new().route("/session", post(guard::sign_in)).route("/session/end", post(guard::sign_out));
    Router::new()
        .nest("/api", questions.merge(open))
        .fallback(get(assets::asset))
        .layer(middleware::from_fn_with_state(site.clone(), guard::checked))
        .with_state(site)
}
