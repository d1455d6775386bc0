//! The streamed List: the same answer as the unary one, in chunks that nobody has to hold all of.

use std::sync::Arc;

use bigfleet_proto::provider_v1::machine_stream_server::MachineStream;
use bigfleet_proto::provider_v1::{ListChunk, ListEnd, ListRequest};
use bigfleet_proto::transport::CHUNK_BYTES;
use bigfleet_proto::v1alpha1::{ListFilter, Machine};
use prost::Message;
use prost::bytes::BytesMut;
use tonic::{Request, Response, Status};

use crate::list::{Lister, Selection};

/// Streams what a service lists.
pub(crate) struct Streamed<S>(pub(crate) Arc<S>);

#[tonic::async_trait]
impl<S: Lister> MachineStream for Streamed<S> {
    type ListStream = tokio_stream::Iter<Chunks>;

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let since_revision = request.into_inner().since_revision.to_vec();
        let filter = ListFilter { since_revision, ..ListFilter::default() };
        let selection = self.0.select(&filter).await?;
        Ok(Response::new(tokio_stream::iter(Chunks::new(selection))))
    }
}

/// The chunks of a selection. Each is encoded when the connection has room for it; a caller that reads slowly costs
/// the pointers of its selection and one chunk.
pub(crate) struct Chunks {
    machines: std::vec::IntoIter<Arc<Machine>>,
    sent: u64,
    /// Taken when the end is sent.
    revision: Option<Vec<u8>>,
}

impl Chunks {
    fn new(selection: Selection) -> Self {
        let Selection { machines, revision } = selection;
        Self { machines: machines.into_iter(), sent: 0, revision: Some(revision) }
    }
}

impl Iterator for Chunks {
    type Item = Result<ListChunk, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        self.revision.as_ref()?;
        let mut machines = Vec::new();
        let mut buffer = BytesMut::with_capacity(CHUNK_BYTES + (CHUNK_BYTES >> 4));
        let mut bytes = 0;
        while bytes < CHUNK_BYTES {
            let Some(machine) = self.machines.next() else { break };
            machine.encode(&mut buffer).expect("the buffer grows");
            bytes += buffer.len();
            machines.push(buffer.split().freeze());
        }
        self.sent += machines.len() as u64;
        let is_last = self.machines.as_slice().is_empty();
        let end = is_last.then(|| ListEnd {
            revision: self.revision.take().unwrap_or_default().into(),
            machines: self.sent,
        });
        Some(Ok(ListChunk { machines, end }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offering::Offering;

    fn selection(count: usize, label_bytes: usize) -> Selection {
        let machine = |number: usize| {
            let mut machine = Offering::new(format!("m-{number}"), "t", "z").into_machine("p");
            machine.labels.insert("filler".into(), "x".repeat(label_bytes));
            Arc::new(machine)
        };
        Selection { machines: (0..count).map(machine).collect(), revision: b"17".to_vec() }
    }

    fn read(chunks: &[ListChunk]) -> Vec<Machine> {
        let records = chunks.iter().flat_map(|chunk| &chunk.machines);
        records.map(|record| Machine::decode(&record[..]).unwrap()).collect()
    }

    #[test]
    fn chunks_are_bounded_and_say_when_all_was_sent() {
        for (count, label_bytes) in [(0, 0), (1, 0), (5000, 1000), (3, 3 << 20)] {
            let selection = selection(count, label_bytes);
            let chunks: Vec<ListChunk> = Chunks::new(selection.clone()).map(Result::unwrap).collect();
            let (last, others) = chunks.split_last().expect("at least one chunk");
            let end = ListEnd { revision: "17".into(), machines: count as u64 };
            assert_eq!(
                (last.end.as_ref(), others.iter().all(|chunk| chunk.end.is_none())),
                (Some(&end), true)
            );
            let sent: Vec<Machine> =
                selection.machines.iter().map(|machine| Machine::clone(machine)).collect();
            assert_eq!(read(&chunks), sent);
            for chunk in &chunks {
                let (_, but_last) =
                    chunk.machines.split_last().map_or((None, &[][..]), |(l, r)| (Some(l), r));
                let bytes: usize = but_last.iter().map(prost::bytes::Bytes::len).sum();
                assert!(bytes < CHUNK_BYTES, "{bytes} bytes before the last record of a chunk");
            }
        }
    }
}
