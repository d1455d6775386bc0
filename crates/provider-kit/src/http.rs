//! The small HTTP port: metrics, and two questions an orchestrator asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::handle::Handle;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/metrics`, `/healthz` (the process answers) and `/readyz` (it also takes calls).
pub(crate) fn router(handle: Handle, ready: Arc<AtomicBool>) -> Router {
    let readiness = move || async move {
        if ready.load(Ordering::SeqCst) {
            (StatusCode::OK, "ok\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not taking calls\n")
        }
    };
    let metrics =
        move || async move { ([(header::CONTENT_TYPE, OPEN_METRICS)], handle.scrape()).into_response() };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
}
