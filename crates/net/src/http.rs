//! The small HTTP port: metrics, and two questions an orchestrator asks.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::clock::SystemClock;
use crate::patient::Patient;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/metrics`, `/healthz` (the process answers) and `/readyz` (it also does its work, or says why not).
pub fn router<Ready, Metrics>(
    ready: impl Fn() -> Ready + Clone + Send + Sync + 'static,
    metrics: impl Fn() -> Metrics + Clone + Send + Sync + 'static,
) -> Router
where
    Ready: Future<Output = Result<(), String>> + Send + 'static,
    Metrics: Future<Output = String> + Send + 'static,
{
    let readiness = move || async move {
        match ready().await {
            Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
            Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }
    };
    let scrape =
        move || async move { ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics().await).into_response() };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(scrape))
}

/// Serves until `stop`, few callers at once, and none that does not go on with what it began.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let listener = Patient::new(listener, Arc::new(SystemClock::start()));
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}
