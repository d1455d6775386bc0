//! The small HTTP port: metrics, and two questions an orchestrator asks.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

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

/// Serves until `stop`.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}
