//! Logs and traces: the only module that knows OpenTelemetry.
//!
//! Logs are lines on standard error, as text for people or as JSON for machines. Traces go to a collector if one is
//! named: a span for each cycle with its phases, each call to a provider, each roll-up. A collector that is slow or gone
//! costs traces and nothing else.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Span, SpanBuilder, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use thiserror::Error;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::laps::Laps;

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// One line of text each.
    #[default]
    Text,
    /// One JSON object each.
    Json,
}

/// Why logs or traces could not be set up.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The filter makes no sense.
    #[error("log filter {filter:?}: {reason}; write for example info,bigfleet_shard_server=debug")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The collector's address makes no sense.
    #[error("traces cannot be sent to {address:?}: {reason}; write http://host:4317")]
    Collector {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Logs were set up before.
    #[error("logs are set up already: {0}")]
    Twice(String),
}

/// What goes where.
#[derive(Clone, Debug)]
pub struct TelemetrySettings {
    /// How logs are written.
    pub form: LogForm,
    /// Which logs, as `tracing_subscriber` filters have it.
    pub filter: String,
    /// Where traces go, if anywhere.
    pub otlp: Option<String>,
    /// The name traces carry.
    pub shard_id: String,
}

/// Keeps logs and traces going; what is left is sent when it is dropped.
pub struct Telemetry(Option<SdkTracerProvider>);

/// Cycles are measured by their own clock on the core thread, which `tracing` spans cannot be told.
static CYCLES: OnceLock<SdkTracer> = OnceLock::new();

impl Telemetry {
    /// Sets up logs and traces for the whole process. Call it once, inside the runtime.
    pub fn start(settings: &TelemetrySettings) -> Result<Self, TelemetryError> {
        let filter = || {
            EnvFilter::try_new(&settings.filter).map_err(|error| TelemetryError::Filter {
                filter: settings.filter.clone(),
                reason: error.to_string(),
            })
        };
        // Colours are for eyes: a file or a collector would keep them as rubbish.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let coloured = io::stderr().is_terminal() && !no_color;
        let lines =
            tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(coloured).with_target(false);
        let lines = match settings.form {
            LogForm::Text => lines.with_filter(filter()?).boxed(),
            LogForm::Json => lines.json().flatten_event(true).with_filter(filter()?).boxed(),
        };
        let provider = settings.otlp.as_deref().map(|to| traces(to, &settings.shard_id)).transpose()?;
        let spans = provider.as_ref().map(|provider| {
            let tracer = provider.tracer("bigfleet");
            let _ = CYCLES.set(tracer.clone());
            let ours = tracing_subscriber::filter::filter_fn(|meta| {
                meta.is_span() && meta.target().starts_with("bigfleet")
            });
            tracing_opentelemetry::layer().with_tracer(tracer).with_filter(ours)
        });
        let subscriber = tracing_subscriber::registry().with(lines).with(spans);
        subscriber.try_init().map_err(|error| TelemetryError::Twice(error.to_string()))?;
        Ok(Self(provider))
    }

    /// Sends what is left, for at most so long.
    pub fn stop(self, grace: Duration) {
        if let Some(provider) = &self.0 {
            // A collector that is gone must not keep a shard that stops.
            let _ = provider.shutdown_with_timeout(grace);
        }
    }
}

fn traces(address: &str, shard_id: &str) -> Result<SdkTracerProvider, TelemetryError> {
    let bad = |reason: String| TelemetryError::Collector { address: address.into(), reason };
    if !address.starts_with("http://") && !address.starts_with("https://") {
        return Err(bad("it has no scheme".into()));
    }
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(address)
        .with_timeout(Duration::from_secs(5))
        .build()
        .map_err(|error| bad(error.to_string()))?;
    let resource = Resource::builder()
        .with_service_name("bigfleet-shard")
        .with_attribute(KeyValue::new("bigfleet.shard_id", shard_id.to_owned()))
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// A span for a cycle that ran, with one for each of its phases.
pub(crate) fn cycle(laps: &Laps<'_>, cycle: u64, begun: i64, ended: i64) {
    let Some(tracer) = CYCLES.get() else { return };
    let at = |nanos: i64| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos.max(0).unsigned_abs());
    let span = SpanBuilder::from_name("cycle")
        .with_start_time(at(begun))
        .with_attributes([KeyValue::new("cycle", cycle.cast_signed())]);
    let context = Context::new().with_span(tracer.build_with_context(span, &Context::new()));
    for (phase, began, ended) in laps.iter() {
        let span = SpanBuilder::from_name(phase).with_start_time(at(began));
        tracer.build_with_context(span, &context).end_with_timestamp(at(ended));
    }
    context.span().end_with_timestamp(at(ended));
}
