//! Networks and servers that fail: what is read is right or an error, and every failure comes to an end.

use std::collections::BTreeMap;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta};
use goodput_store::{Holder, Location, Lock, Path};
use goodput_testkit::faults::{FAULTS, Fault, FaultProxy, Plan};
use goodput_testkit::servers::{self, Server};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::sites::{at, new_name};

fn through(server: &Server, proxy: &FaultProxy, folder: &str, retries: &str) -> Location {
    let mut settings = server.settings_at(&proxy.url());
    for prefix in ["AWS", "AZURE"] {
        settings.push((format!("{prefix}_MAX_RETRIES"), retries.to_owned()));
        // A stalled answer is given up soon.
        settings.push((format!("{prefix}_READ_TIMEOUT"), "500ms".to_owned()));
    }
    at(&server.url(folder), settings)
}

fn both(what: &str) -> Vec<Server> {
    [servers::s3(what), servers::azure(what)].into_iter().flatten().collect()
}

fn always(fault: Fault) -> Plan {
    Plan { seed: 1, permille: 1000, faults: vec![fault], dies_after: None }
}

fn object(number: u32) -> Bytes {
    (0..20_000 + number).map(|at| (at.wrapping_mul(number + 7) >> 3).to_le_bytes()[0]).collect()
}

/// A fifth of all requests fail, in each of the ways: everything is still right, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_now_and_then_is_tried_again() {
    for server in both("a proxy that fails now and then") {
        for seed in [1, 2] {
            let plan = Plan { seed, permille: 200, faults: FAULTS.to_vec(), dies_after: None };
            let proxy = FaultProxy::start(server.endpoint(), plan).unwrap();
            let folder = new_name();
            let location = through(&server, &proxy, &folder, "20");
            let mut written = BTreeMap::new();
            for number in 0..20 {
                let path = location.join(&format!("a/{number:02}")).root().clone();
                location.write(&path, object(number)).await.unwrap();
                assert_eq!(location.read(&path).await.unwrap().unwrap(), object(number));
                let part = location.store().get_range(&path, u64::from(number)..10_000).await.unwrap();
                assert_eq!(part, object(number).slice(usize::try_from(number).unwrap()..10_000));
                let parts = location.store().get_ranges(&path, &[0..10, 19_000..19_100]).await.unwrap();
                assert_eq!(parts, [object(number).slice(0..10), object(number).slice(19_000..19_100)]);
                written.insert(path, object(number).len() as u64);
            }
            let listed = location.list().await.unwrap();
            let listed: BTreeMap<_, _> = listed.into_iter().map(|object| (object.location, object.size)).collect();
            assert_eq!(listed, written);
            for path in written.keys() {
                location.delete(path).await.unwrap();
                assert_eq!(location.read(path).await.unwrap(), None);
            }
            assert!(proxy.failed() > 10, "{} of {} requests failed", proxy.failed(), proxy.requests());
        }
    }
}

/// Whatever happens to the answers of conditional writes, who wrote is known; and a lock is taken and given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_a_conditional_write_is_found_out() {
    let now = DateTime::from_timestamp(1_767_225_600, 0).unwrap();
    for server in both("a proxy that loses answers") {
        let faults = vec![Fault::UnavailableAfter, Fault::ResetAfter, Fault::Cut, Fault::Reset];
        let plan = Plan { seed: 3, permille: 300, faults, dies_after: None };
        let proxy = FaultProxy::start(server.endpoint(), plan).unwrap();
        let location = through(&server, &proxy, &new_name(), "20");
        for number in 0..15 {
            let path = location.join(&format!("{number}")).root().clone();
            assert!(location.create(&path, format!("mine {number}").into()).await.unwrap());
            assert!(!location.create(&path, format!("theirs {number}").into()).await.unwrap());
            let old = location.read_tagged(&path).await.unwrap().unwrap();
            assert!(location.replace_if(&path, &old, format!("mine again {number}").into()).await.unwrap());
            assert!(!location.replace_if(&path, &old, format!("theirs again {number}").into()).await.unwrap());
            assert_eq!(location.read(&path).await.unwrap().unwrap(), format!("mine again {number}"));
        }
        for number in 0..5 {
            let holder = Holder { host: "h".to_owned(), pid: 1, run_id: number.to_string() };
            let mut lock = Lock::acquire(&location, holder, now, TimeDelta::minutes(1)).await.unwrap();
            lock.renew(now, TimeDelta::minutes(1)).await.unwrap();
            lock.release(now).await.unwrap();
        }
        assert!(proxy.failed() > 10, "{} of {} requests failed", proxy.failed(), proxy.requests());
    }
}

/// Each fault, each time: an error in the end and no wrong byte, after as many tries as the settings allow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_always_fails_is_an_error() {
    for server in both("a proxy that always fails") {
        let folder = new_name();
        let direct = at(&server.url(&folder), server.settings());
        let path = direct.join("a").root().clone();
        direct.write(&path, object(5)).await.unwrap();
        for fault in FAULTS {
            let proxy = FaultProxy::start(server.endpoint(), always(fault)).unwrap();
            let location = through(&server, &proxy, &folder, "2");
            let read = location.read(&path).await;
            let part = location.store().get_range(&path, 0..19_000).await;
            let listed = location.list().await;
            if fault == Fault::Slow {
                assert_eq!(read.unwrap().unwrap(), object(5));
                assert_eq!(part.unwrap(), object(5).slice(0..19_000));
                assert_eq!(listed.unwrap().len(), 1);
                continue;
            }
            // Half of each answer comes, and each try takes up where the last stopped: that may be enough for a small one.
            match read {
                Ok(read) => assert_eq!(read.unwrap(), object(5), "{fault:?}"),
                Err(error) => assert!(error.to_string().contains("/a` cannot be read"), "{fault:?}: {error}"),
            }
            if let Ok(part) = part {
                assert_eq!(part, object(5).slice(0..19_000), "{fault:?}");
            }
            match (fault, listed) {
                // The length of a listing in chunks is not told wrongly.
                (Fault::Short, Ok(listed)) => assert_eq!(listed.len(), 1),
                (_, Ok(listed)) => panic!("{fault:?}: {listed:?}"),
                (_, Err(error)) => assert!(error.to_string().contains("cannot be listed"), "{fault:?}: {error}"),
            }
            // A request is tried three times; a read that breaks in its body counts those and the requests before it.
            assert!(proxy.requests() <= 30, "{fault:?}: {} requests", proxy.requests());
            let hints = [Fault::InternalError, Fault::Unavailable, Fault::UnavailableAfter];
            if hints.contains(&fault) {
                let other = Path::from(new_name());
                let error = location.write(&other, object(6)).await.unwrap_err();
                assert!(error.hint().is_some_and(|hint| hint.contains("run again later")), "{fault:?}: {error:?}");
            }
        }
    }
}

/// A store that is gone half way ends in an error that says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_dies_half_way_is_an_error() {
    for server in both("a store that dies") {
        let plan = Plan { seed: 1, permille: 0, faults: Vec::new(), dies_after: Some(11) };
        let proxy = FaultProxy::start(server.endpoint(), plan).unwrap();
        let folder = new_name();
        let location = through(&server, &proxy, &folder, "2");
        let mut done = 0;
        let error = loop {
            let path = location.join(&format!("{done}")).root().clone();
            match location.write(&path, object(done)).await {
                Ok(_) => done += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(done, 11);
        assert!(error.hint().is_some_and(|hint| hint.contains("did not answer")), "{error:?}");
        assert!(location.list().await.is_err());
        // What was written before is whole.
        let direct = at(&server.url(&folder), server.settings());
        for number in 0..done {
            let path = direct.join(&format!("{number}")).root().clone();
            assert_eq!(direct.read(&path).await.unwrap().unwrap(), object(number));
        }
    }
}
