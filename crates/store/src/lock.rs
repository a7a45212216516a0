//! One writer at a time: a lock that is an object of the store, with a holder and an end.
//!
//! Everything rests on conditional writes: of many who create the object, or replace one state of it, one wins. The object
//! is never deleted: a lock that is given back says so in its record, since no store deletes an object only if it is still
//! what was read. Who holds a lock may die; its lock can be taken over once its time is over. So a holder renews it in time,
//! and does nothing that needs the lock after its end. The clocks of those who share a lock must agree to well within the
//! time for which it is taken.

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::{Location, StoreError, Tagged};

/// The name of the lock's object.
const LOCK_FILE: &str = "_lock.json";

/// How often a lock is tried that others give back and take at the same moment.
const TRIES: usize = 10;

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// What it does.
    pub run_id: String,
}

/// What the lock's object says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// Who holds it, or was the last to hold it.
    #[serde(flatten)]
    pub holder: Holder,
    /// Since when.
    pub acquired_ts: DateTime<Utc>,
    /// Until when, unless it is renewed.
    pub expires_ts: DateTime<Utc>,
    /// Whether it was given back.
    pub is_released: bool,
    /// Tells the times that it was taken apart: the same process may do so twice.
    token: String,
}

impl LockRecord {
    /// Whether somebody holds the lock at an instant.
    pub fn is_held(&self, now: DateTime<Utc>) -> bool {
        !self.is_released && now < self.expires_ts
    }
}

/// What went wrong with a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error(
        "`{location}` is held by run `{}` (process {} on `{}`) since {}, until {}",
        by.holder.run_id, by.holder.pid, by.holder.host, shown(by.acquired_ts), shown(by.expires_ts)
    )]
    Held {
        /// The lock.
        location: String,
        /// Who.
        by: Box<LockRecord>,
    },
    /// It was held and is no longer: its time was over, and somebody took it.
    #[error("`{location}` was lost{}", by.as_ref().map(|by| format!(" to run `{}` (process {} on `{}`)", by.holder.run_id, by.holder.pid, by.holder.host)).unwrap_or_default())]
    Lost {
        /// The lock.
        location: String,
        /// To whom; `None` if its object is gone.
        by: Option<Box<LockRecord>>,
    },
    /// Its object is none of ours.
    #[error("`{location}` is not a lock")]
    Unreadable {
        /// The lock.
        location: String,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LockError {
    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            LockError::Held { by, .. } => Some(format!(
                "wait until it ends; if that process is dead, the lock ends by itself at {}",
                shown(by.expires_ts)
            )),
            LockError::Lost { .. } => Some("nothing is lost: run again".to_owned()),
            LockError::Unreadable { .. } => Some("delete it if no run is under way".to_owned()),
            LockError::Store(error) => error.hint().map(str::to_owned),
        }
    }
}

/// A lock that is held, from its acquisition until its end, or until it is given back.
#[derive(Debug)]
pub struct Lock {
    location: Location,
    path: Path,
    record: LockRecord,
}

impl Lock {
    /// Takes the lock of a place, for a time; it must be free, given back, or past its end.
    pub async fn acquire(
        location: &Location,
        holder: Holder,
        now: DateTime<Utc>,
        ttl: TimeDelta,
    ) -> Result<Lock, LockError> {
        let path = location.root().clone().join(LOCK_FILE);
        let acquired_ts = now.trunc_subsecs(3);
        let record =
            LockRecord { holder, acquired_ts, expires_ts: acquired_ts + ttl, is_released: false, token: new_token() };
        let lock = Lock { location: location.clone(), path, record };
        let bytes = lock.bytes(&lock.record)?;
        let mut last = None;
        for _ in 0..TRIES {
            let taken = match lock.read().await? {
                None => lock.location.create(&lock.path, bytes.clone()).await?,
                Some((_, by)) if by.is_held(now) => {
                    return Err(LockError::Held { location: lock.name(), by: Box::new(by) });
                }
                Some((found, by)) => {
                    last = Some(by);
                    lock.location.replace_if(&lock.path, &found, bytes.clone()).await?
                }
            };
            if taken {
                return Ok(lock);
            }
        }
        // Others took it each time and gave it back before it could be read.
        Err(match last {
            Some(by) => LockError::Held { location: lock.name(), by: Box::new(by) },
            None => LockError::Lost { location: lock.name(), by: None },
        })
    }

    /// What the lock's object says.
    pub fn record(&self) -> &LockRecord {
        &self.record
    }

    /// Holds it for a time from now on.
    pub async fn renew(&mut self, now: DateTime<Utc>, ttl: TimeDelta) -> Result<(), LockError> {
        let record = LockRecord { expires_ts: now.trunc_subsecs(3) + ttl, ..self.record.clone() };
        self.replace(&record).await?;
        self.record = record;
        Ok(())
    }

    /// Gives it back; an error if it was lost before.
    pub async fn release(self, now: DateTime<Utc>) -> Result<(), LockError> {
        let record = LockRecord { expires_ts: now.trunc_subsecs(3), is_released: true, ..self.record.clone() };
        self.replace(&record).await
    }

    /// Replaces the object if it is still ours.
    async fn replace(&self, record: &LockRecord) -> Result<(), LockError> {
        let bytes = self.bytes(record)?;
        for _ in 0..TRIES {
            match self.read().await? {
                Some((found, by)) if by.token == self.record.token => {
                    if self.location.replace_if(&self.path, &found, bytes.clone()).await? {
                        return Ok(());
                    }
                }
                found => {
                    let by = found.map(|(_, by)| Box::new(by));
                    return Err(LockError::Lost { location: self.name(), by });
                }
            }
        }
        Err(LockError::Lost { location: self.name(), by: None })
    }

    async fn read(&self) -> Result<Option<(Tagged, LockRecord)>, LockError> {
        let Some(found) = self.location.read_tagged(&self.path).await? else { return Ok(None) };
        let record = serde_json::from_slice(&found.bytes).map_err(|source| self.unreadable(source))?;
        Ok(Some((found, record)))
    }

    fn bytes(&self, record: &LockRecord) -> Result<bytes::Bytes, LockError> {
        let text = serde_json::to_string_pretty(record).map_err(|source| self.unreadable(source))?;
        Ok(format!("{text}\n").into())
    }

    fn unreadable(&self, source: serde_json::Error) -> LockError {
        LockError::Unreadable { location: self.name(), source }
    }

    fn name(&self) -> String {
        self.location.name_of(&self.path)
    }
}

fn shown(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Chance enough to tell the takers of a lock apart: the keys of each hasher are drawn by the system.
fn new_token() -> String {
    use std::hash::BuildHasher;
    let draw = || std::hash::RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", draw(), draw())
}
