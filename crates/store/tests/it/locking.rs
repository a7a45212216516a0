//! The lock: one holder at a time, whoever dies.

use chrono::{DateTime, TimeDelta, Utc};
use goodput_store::{Holder, Location, Lock, LockError};

use crate::sites::on_every_store;

on_every_store!(
    the_loser_is_told_who_holds_the_lock,
    a_lock_can_be_renewed_and_given_back,
    one_of_many_takes_a_free_lock,
    one_of_many_takes_over_the_lock_of_the_dead,
    who_lost_the_lock_is_told,
    what_is_no_lock_is_not_replaced,
);

fn holder(run_id: &str) -> Holder {
    Holder { host: "night-1".to_owned(), pid: 4711, run_id: run_id.to_owned() }
}

/// An instant of a made-up night, some minutes after its begin.
fn minute(minutes: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600 + minutes * 60, 0).unwrap()
}

const TTL: TimeDelta = TimeDelta::minutes(10);

async fn acquire(location: &Location, run_id: &str, minutes: i64) -> Result<Lock, LockError> {
    Lock::acquire(location, holder(run_id), minute(minutes), TTL).await
}

fn holder_of(error: &LockError) -> &str {
    match error {
        LockError::Held { by, .. } => &by.holder.run_id,
        LockError::Lost { by: Some(by), .. } => &by.holder.run_id,
        other => panic!("{other}"),
    }
}

async fn the_loser_is_told_who_holds_the_lock(location: &Location) {
    let _held = acquire(location, "first", 0).await.unwrap();
    let error = acquire(location, "second", 9).await.unwrap_err();
    let said = error.to_string();
    let expected = "_lock.json` is held by run `first` (process 4711 on `night-1`) \
                    since 2026-01-01T00:00:00Z, until 2026-01-01T00:10:00Z";
    assert!(said.contains(expected), "{said}");
    assert!(error.hint().unwrap().contains("at 2026-01-01T00:10:00Z"), "{:?}", error.hint());
    // The same process is another holder if it asks again.
    assert_eq!(holder_of(&acquire(location, "first", 9).await.unwrap_err()), "first");
}

async fn a_lock_can_be_renewed_and_given_back(location: &Location) {
    let mut lock = acquire(location, "first", 0).await.unwrap();
    assert!(lock.record().is_held(minute(9)) && !lock.record().is_held(minute(10)));
    lock.renew(minute(8), TTL).await.unwrap();
    assert!(lock.record().is_held(minute(17)));
    assert_eq!(holder_of(&acquire(location, "second", 17).await.unwrap_err()), "first");
    lock.release(minute(17)).await.unwrap();
    let second = acquire(location, "second", 17).await.unwrap();
    assert_eq!(holder_of(&acquire(location, "third", 18).await.unwrap_err()), "second");
    second.release(minute(18)).await.unwrap();
}

/// Many ask at once: one gets the lock, and all others are told of that one.
async fn race(location: &Location, round: i64, minutes: i64) -> Lock {
    let takers = (0..8).map(|taker| {
        let (location, name) = (location.clone(), format!("round {round} taker {taker}"));
        tokio::spawn(async move { acquire(&location, &name, minutes).await })
    });
    let (mut winners, mut told) = (Vec::new(), Vec::new());
    for taker in futures::future::join_all(takers).await {
        match taker.unwrap() {
            Ok(lock) => winners.push(lock),
            Err(error) => told.push(holder_of(&error).to_owned()),
        }
    }
    let winner = winners.pop().expect("one takes it");
    assert!(winners.is_empty(), "{winners:?}");
    assert_eq!(told, vec![winner.record().holder.run_id.clone(); 7]);
    winner
}

async fn one_of_many_takes_a_free_lock(location: &Location) {
    for round in 0..3 {
        let lock = race(location, round, round).await;
        lock.release(minute(round)).await.unwrap();
    }
}

async fn one_of_many_takes_over_the_lock_of_the_dead(location: &Location) {
    for round in 0..3 {
        // Each is left behind, and its time is over when the next round begins.
        let left_behind = race(location, round, round * 10).await;
        assert!(!left_behind.record().is_held(minute((round + 1) * 10)));
    }
}

async fn who_lost_the_lock_is_told(location: &Location) {
    let mut slow = acquire(location, "slow", 0).await.unwrap();
    // Late, but nobody was quicker.
    slow.renew(minute(11), TTL).await.unwrap();
    let quick = acquire(location, "quick", 30).await.unwrap();
    let error = slow.renew(minute(31), TTL).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert_eq!(holder_of(&error), "quick");
    assert!(error.to_string().contains("was lost to run `quick` (process 4711 on `night-1`)"), "{error}");
    assert!(matches!(slow.release(minute(31)).await, Err(LockError::Lost { .. })));
    // That took nothing from the one who holds it.
    assert_eq!(holder_of(&acquire(location, "third", 31).await.unwrap_err()), "quick");
    quick.release(minute(31)).await.unwrap();
}

async fn what_is_no_lock_is_not_replaced(location: &Location) {
    let path = location.join("_lock.json").root().clone();
    location.write(&path, "mine".into()).await.unwrap();
    let error = acquire(location, "first", 0).await.unwrap_err();
    assert!(matches!(error, LockError::Unreadable { .. }), "{error}");
    assert!(error.hint().unwrap().contains("delete it"));
    assert_eq!(location.read(&path).await.unwrap().unwrap(), "mine");
}
