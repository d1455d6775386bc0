//! Answers as they leave: JSON, compressed if it is worth it, and refusals that say what to do.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::json;
use tonic::{Code, Status};

/// Below this, compressing costs more than it saves.
const WORTH_IT_BYTES: usize = 4096;

/// A question that was not answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// What is said about it.
    pub(crate) fn words(&self) -> &str {
        &self.message
    }

    /// Whether what was asked about is not known here.
    pub(crate) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Something in the question makes no sense; the message names it and its bound.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let (number, code) = match status.code() {
            Code::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Code::InvalidArgument | Code::OutOfRange => (StatusCode::BAD_REQUEST, "bad_request"),
            Code::FailedPrecondition => (StatusCode::CONFLICT, "failed_precondition"),
            Code::PermissionDenied => (StatusCode::FORBIDDEN, "forbidden"),
            Code::ResourceExhausted => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            Code::Unimplemented => (StatusCode::NOT_IMPLEMENTED, "unimplemented"),
            Code::Unavailable | Code::DeadlineExceeded => (StatusCode::BAD_GATEWAY, "unreachable"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        };
        let message = match number {
            StatusCode::BAD_GATEWAY => format!("the shard does not answer: {}", status.message()),
            _ => status.message().to_owned(),
        };
        Self::new(number, code, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } }).to_string();
        let mut response = (self.status, body).into_response();
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

/// The answer to a question.
pub(crate) type Answer = Result<Response, Refusal>;

/// `data` as JSON.
pub(crate) fn answer(headers: &HeaderMap, data: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(data)
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", error.to_string()))?;
    Ok(respond(headers, "application/json", text, Compression::fast()))
}

/// A body of this type, compressed if the caller takes that and it is worth it.
pub(crate) fn respond(headers: &HeaderMap, kind: &str, body: Vec<u8>, level: Compression) -> Response {
    let mut response = Response::builder().header(header::CONTENT_TYPE, kind);
    let body = if body.len() >= WORTH_IT_BYTES && takes_gzip(headers) {
        response = response.header(header::CONTENT_ENCODING, "gzip");
        gzip(&body, level)
    } else {
        body
    };
    response.body(Body::from(body)).expect("constant headers are valid")
}

pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|one| one.trim().starts_with("gzip")))
}

pub(crate) fn gzip(body: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), level);
    encoder.write_all(body).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}
