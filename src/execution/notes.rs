//! What is written down of calls whose handlers report later: before they are sent, and what is reported. In groups, like the log.
//!
//! Such calls are few beside the others, so the writers give their connections back after each group.

use super::journal::PATIENCE;
use super::lane::{Lane, Write};
use crate::store::pending::{Opening, Report};
use crate::store::{Store, StoreError, Writer};

/// The ways to the log for such calls. Cheap to clone.
#[derive(Clone)]
pub(super) struct Notes {
    openings: Lane<Openings>,
    reports: Lane<Reports>,
}

impl Notes {
    pub(super) fn start(store: &Store) -> Self {
        let writer = || Writer::new(store.clone());
        Self { openings: Lane::start(Openings(writer())), reports: Lane::start(Reports(writer())) }
    }

    /// Writes a call as running; says whether that is certain.
    pub(super) async fn open(&self, opening: Opening) -> bool {
        let bytes = opening.record.call.bytes();
        let written = async { self.openings.put(opening, bytes).await.await };
        match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(Ok(()))) => true,
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "a call could not be noted before it was sent");
                false
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Writes what is reported of a call; says whether it counts. Nothing if that is not known yet: then it is written when the
    /// database is back, and counts unless something else was there before.
    pub(super) async fn report(&self, report: Report) -> Option<bool> {
        let id = report.call.id;
        let bytes = report.call.bytes() + report.picture.as_ref().map_or(0, |picture| picture.get().len());
        let written = async { self.reports.put(report, bytes).await.await };
        match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(Ok(counts))) => Some(counts),
            Ok(Ok(Err(error))) => {
                tracing::error!(%error, call = %id, "what is reported of a call could not be written");
                None
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(call = %id, "what is reported of a call is not written yet");
                None
            }
        }
    }

    /// Waits until everything is written, and ends the writers.
    pub(super) async fn finish(&self) {
        self.openings.finish().await;
        self.reports.finish().await;
    }
}

struct Openings(Writer);

impl Write for Openings {
    type Item = Opening;
    type Done = ();
    const PATIENT: bool = false;

    async fn write(&mut self, items: &[Opening]) -> Result<Vec<()>, StoreError> {
        let opened = self.0.open(items).await.map(|()| vec![(); items.len()]);
        self.0.rest();
        opened
    }

    fn heard(&self, _: bool) {}

    fn rest(&mut self) {
        self.0.rest();
    }
}

struct Reports(Writer);

impl Write for Reports {
    type Item = Report;
    type Done = bool;
    const PATIENT: bool = true;

    async fn write(&mut self, items: &[Report]) -> Result<Vec<bool>, StoreError> {
        let counted = self.0.report(items).await;
        self.0.rest();
        counted
    }

    fn heard(&self, _: bool) {}

    fn rest(&mut self) {
        self.0.rest();
    }
}
