//! Group commit: what many requests have to write at the same time goes to the database in one statement.
//!
//! While one group is being committed the next one gathers, so the group's size follows the load by itself: a lone request
//! waits for nobody, and a hundred at once pay for one commit.

use crate::store::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many items one statement takes.
const MOST_ITEMS: usize = 256;
/// How much may wait, in kibibytes. Beyond it those who bring more wait until there is room.
const ROOM: u32 = 64 * 1024;
/// How long is waited before a group is tried again while the database is away.
const PAUSE: Duration = Duration::from_millis(100);
/// After how long without work a lane lets go of its connection.
const IDLE: Duration = Duration::from_secs(1);

/// What a lane writes.
pub(super) trait Write: Send + 'static {
    /// What one request brings.
    type Item: Send + Sync + 'static;
    /// What it is told.
    type Done: Send + 'static;
    /// Whether a group is tried until the database is back.
    const PATIENT: bool;

    /// Writes everything in one commit, or nothing.
    fn write(&mut self, items: &[Self::Item]) -> impl Future<Output = Result<Vec<Self::Done>, StoreError>> + Send;

    /// Hears whether the database answered.
    fn heard(&self, answered: bool);

    /// Lets go of the connection.
    fn rest(&mut self);
}

struct Queued<W: Write> {
    item: W::Item,
    told: oneshot::Sender<Result<W::Done, Arc<StoreError>>>,
    room: Option<OwnedSemaphorePermit>,
}

/// The way to a writer. Cheap to clone.
pub(super) struct Lane<W: Write> {
    queue: mpsc::UnboundedSender<Queued<W>>,
    room: Arc<Semaphore>,
    stop: CancellationToken,
}

/// What a request hears when its item is written, or cannot be.
pub(super) type Told<W> = oneshot::Receiver<Result<<W as Write>::Done, Arc<StoreError>>>;

impl<W: Write> Clone for Lane<W> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), room: Arc::clone(&self.room), stop: self.stop.clone() }
    }
}

impl<W: Write> Lane<W> {
    /// Starts the writer, which ends when it is told to or when nobody can reach it any more.
    pub(super) fn start(writer: W) -> Self {
        let (queue, waiting) = mpsc::unbounded_channel();
        let lane = Self { queue, room: Arc::new(Semaphore::new(ROOM as usize)), stop: CancellationToken::new() };
        TaskTracker::new().spawn(work(writer, waiting, lane.stop.clone()));
        lane
    }

    /// Queues an item of so many bytes, once there is room for it.
    pub(super) async fn put(&self, item: W::Item, bytes: usize) -> Told<W> {
        let weight = u32::try_from(bytes / 1024 + 1).unwrap_or(ROOM).min(ROOM);
        // Closed when the service ends; what comes then is still written if there is time.
        let room = Arc::clone(&self.room).acquire_many_owned(weight).await.ok();
        let (told, hears) = oneshot::channel();
        // Nobody takes it once the writer has stopped; who waits for it hears so.
        let _ = self.queue.send(Queued { item, told, room });
        hears
    }

    /// Whether nothing more can be queued at the moment.
    pub(super) fn is_full(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// Waits until everything that was queued is written, then ends the writer.
    pub(super) async fn finish(&self) {
        let _ = self.room.acquire_many(ROOM).await;
        self.stop.cancel();
    }
}

async fn work<W: Write>(mut writer: W, mut waiting: mpsc::UnboundedReceiver<Queued<W>>, stop: CancellationToken) {
    let mut group = Vec::with_capacity(MOST_ITEMS);
    loop {
        tokio::select! {
            biased;
            got = waiting.recv_many(&mut group, MOST_ITEMS) => if got == 0 { return },
            () = stop.cancelled() => return,
            () = tokio::time::sleep(IDLE) => {
                writer.rest();
                continue;
            }
        }
        let (items, told): (Vec<_>, Vec<_>) =
            group.drain(..).map(|queued| (queued.item, (queued.told, queued.room))).unzip();
        let written = write(&mut writer, &items).await;
        // Whoever does not wait any more does not need to hear.
        for ((told, room), result) in told.into_iter().zip(written) {
            drop(room);
            let _ = told.send(result);
        }
    }
}

/// Writes a group. What the database refuses as a whole is written one by one, so that an item that cannot be written costs
/// nobody else's.
async fn write<W: Write>(writer: &mut W, items: &[W::Item]) -> Vec<Result<W::Done, Arc<StoreError>>> {
    match attempt(writer, items).await {
        Ok(done) => done.into_iter().map(Ok).collect(),
        Err(error) if error.is_unavailable() || items.len() == 1 => {
            let error = Arc::new(error);
            items.iter().map(|_| Err(Arc::clone(&error))).collect()
        }
        Err(_) => {
            let mut results = Vec::with_capacity(items.len());
            for item in items {
                let done = attempt(writer, std::slice::from_ref(item)).await;
                let done = done.map_err(Arc::new).and_then(|done| {
                    let missing = || Arc::new(StoreError::away());
                    done.into_iter().next().ok_or_else(missing)
                });
                results.push(done);
            }
            results
        }
    }
}

async fn attempt<W: Write>(writer: &mut W, items: &[W::Item]) -> Result<Vec<W::Done>, StoreError> {
    loop {
        let written = writer.write(items).await;
        match written {
            Err(error) if error.is_unavailable() => {
                writer.heard(false);
                if !W::PATIENT {
                    return Err(error);
                }
                tracing::warn!(%error, items = items.len(), "the database is away; what is to be written waits");
                tokio::time::sleep(PAUSE).await;
            }
            other => {
                writer.heard(true);
                return other;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Keeps the groups that it was given; refuses every group with a zero in it.
    struct Keep(Arc<Mutex<Vec<Vec<u32>>>>);

    impl Write for Keep {
        type Item = u32;
        type Done = u32;
        const PATIENT: bool = false;

        async fn write(&mut self, items: &[u32]) -> Result<Vec<u32>, StoreError> {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.0.lock().unwrap().push(items.to_vec());
            if items.contains(&0) {
                return Err(StoreError::Conflict(crate::store::Conflict::Changed));
            }
            Ok(items.iter().map(|item| item * 2).collect())
        }

        fn heard(&self, _: bool) {}
        fn rest(&mut self) {}
    }

    #[tokio::test]
    async fn what_comes_while_a_group_is_written_is_the_next_group() {
        let groups = Arc::default();
        let lane = Lane::start(Keep(Arc::clone(&groups)));
        let first = lane.put(1, 10).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let more: Vec<_> = futures_util::future::join_all((2..10).map(|n| lane.put(n, 10))).await;
        assert_eq!(first.await.unwrap().unwrap(), 2);
        for (n, told) in (2..10).zip(more) {
            assert_eq!(told.await.unwrap().unwrap(), n * 2);
        }
        assert_eq!(*groups.lock().unwrap(), [vec![1], (2..10).collect()]);
    }

    #[tokio::test]
    async fn one_that_cannot_be_written_costs_nobody_else() {
        let lane = Lane::start(Keep(Arc::default()));
        let told = futures_util::future::join_all([5, 0, 7].map(|n| lane.put(n, 10))).await;
        let results = futures_util::future::join_all(told).await;
        let results: Vec<_> = results.into_iter().map(|result| result.unwrap().ok()).collect();
        assert_eq!(results, [Some(10), None, Some(14)]);
    }

    #[tokio::test]
    async fn the_end_comes_after_the_last_item() {
        let groups = Arc::default();
        let lane = Lane::start(Keep(Arc::clone(&groups)));
        for n in 1..4 {
            drop(lane.put(n, 70 * 1024 * 1024).await); // each takes all the room there is
        }
        lane.finish().await;
        assert_eq!(groups.lock().unwrap().concat(), [1, 2, 3]);
    }
}
