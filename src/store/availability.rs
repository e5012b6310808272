//! Whether Postgres is away, so that what can be answered from memory is, and the rest is refused without waiting. A server that
//! takes no writes is none: after a failover, the address may still lead to a standby for a while.
//!
//! While all is well this costs a clock reading for each query that is watched, and asks nothing of its own. When a watched query
//! finds nobody there, one task asks for Postgres by a connection of its own, twice a second, until it answers; meanwhile no
//! watched query is begun.

use super::session::Server;
use super::{ACQUIRE_TIMEOUT, Store, StoreError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a watched query may take: a Postgres that hangs is away too.
const LONGEST: Duration = Duration::from_secs(2);
/// How often is asked whether it is back.
const INTERVAL: Duration = Duration::from_millis(500);

/// What is known of Postgres. Shared by all clones of a store.
pub(super) struct Availability {
    options: PgConnectOptions,
    began: Instant,
    /// When it last answered, in milliseconds after `began`.
    answered: AtomicU64,
    /// When it last came back, likewise; 0 for never.
    returned: AtomicU64,
    away: AtomicBool,
    /// When the server that the address leads to started, and what is cancelled when it leads to another.
    server: Mutex<(Option<String>, CancellationToken)>,
    /// Those who cannot tell a busy pool from a dead database look one after the other, and the first one's look is enough.
    looking: tokio::sync::Mutex<Option<Instant>>,
    tasks: TaskTracker,
}

impl Availability {
    pub(super) fn of(options: PgConnectOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            began: Instant::now(),
            answered: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            away: AtomicBool::new(false),
            server: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    fn answers(&self) {
        self.answered.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether it came back within this time. A connection that is older may lead to a server that is no longer the one.
    pub(super) fn returned_within(&self, age: Duration) -> bool {
        let returned = self.returned.load(Ordering::Relaxed);
        returned > 0 && age > self.began.elapsed().saturating_sub(Duration::from_millis(returned))
    }

    /// How long ago it last answered.
    fn silence(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.answered.load(Ordering::Relaxed)))
    }

    /// Cancelled when the address leads to another server than now.
    pub(super) fn moved(&self) -> CancellationToken {
        self.server().1.clone()
    }

    fn server(&self) -> MutexGuard<'_, (Option<String>, CancellationToken)> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a server that a connection of some age leads to, if none is known.
    pub(super) fn met(&self, server: &Server) {
        self.server().0.get_or_insert_with(|| server.started.clone());
    }

    /// Notes the server that the address leads to now.
    fn leads_to(&self, server: Server) {
        let mut known = self.server();
        let before = known.0.replace(server.started);
        if before.is_some() && before != known.0 {
            tracing::warn!(
                "the database was started anew, or its address leads to another server; older connections are given up"
            );
            self.returned.store(self.now().max(1), Ordering::Relaxed);
            std::mem::take(&mut known.1).cancel();
        }
    }

    /// Takes it for away until it answers again.
    fn is_away(self: &Arc<Self>) {
        if self.away.swap(true, Ordering::SeqCst) {
            return;
        }
        tracing::warn!("the database is away; lists are served from memory, calls are refused");
        let this = Arc::downgrade(self);
        self.tasks.spawn(wait_for_return(this));
    }

    /// Looks by a connection of its own: the pool cannot tell a dead database from one whose connections are all at work.
    async fn look(self: &Arc<Self>) {
        let mut looked = self.looking.lock().await;
        if self.away.load(Ordering::SeqCst) || looked.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        if self.knock().await {
            self.answers();
        } else {
            self.is_away();
        }
        *looked = Some(Instant::now());
    }

    async fn knock(&self) -> bool {
        let knock = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            let server = Server::of(&mut connection).await?;
            connection.close().await?;
            Ok::<_, sqlx::Error>(server)
        };
        let Ok(Ok(server)) = timeout(ACQUIRE_TIMEOUT, knock).await else { return false };
        let takes_writes = server.takes_writes;
        self.leads_to(server);
        takes_writes
    }
}

/// Ends when Postgres is back, or when nobody is left who would want to know.
async fn wait_for_return(availability: Weak<Availability>) {
    loop {
        sleep(INTERVAL).await;
        let Some(this) = availability.upgrade() else { return };
        if this.knock().await {
            let silence = this.silence();
            this.answers();
            this.returned.store(this.now().max(1), Ordering::Relaxed);
            this.away.store(false, Ordering::SeqCst);
            tracing::info!(seconds = silence.as_secs(), "the database is back");
            return;
        }
    }
}

impl Store {
    /// While Postgres is away: how long ago it last answered.
    pub fn away_for(&self) -> Option<Duration> {
        self.availability.away.load(Ordering::SeqCst).then(|| self.availability.silence())
    }

    /// Does something with Postgres, within two seconds; not at all while it is away. Notices when it went away.
    pub async fn noticing<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let availability = &self.availability;
        if availability.away.load(Ordering::SeqCst) {
            return Err(StoreError::Away);
        }
        let Ok(done) = timeout(LONGEST, work).await else {
            availability.look().await;
            return Err(StoreError::Away);
        };
        let unsure = matches!(&done, Err(StoreError::Database(sqlx::Error::PoolTimedOut)));
        if unsure {
            availability.look().await;
        } else if done.as_ref().is_err_and(StoreError::is_unavailable) {
            availability.is_away();
        } else {
            availability.answers();
        }
        done
    }
}
