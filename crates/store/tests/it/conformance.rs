//! Reading, writing and listing.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use goodput_store::{Location, Path, Tag};
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use crate::sites::on_every_store;

on_every_store!(
    an_object_is_what_was_written,
    a_state_has_one_tag,
    ranges_are_exact,
    a_replacement_is_seen_whole_or_not_at_all,
    one_of_many_creates,
    counting_by_compare_and_swap_loses_nothing,
    what_changed_or_is_gone_is_not_replaced,
    a_listing_is_complete_and_sorted,
    names_may_hold_anything,
    deleting_what_is_not_there_is_fine,
);

/// The path of an object below a location.
fn path(location: &Location, name: &str) -> Path {
    location.join(name).root().clone()
}

async fn an_object_is_what_was_written(location: &Location) {
    let path = path(location, "a/b.bin");
    assert_eq!(location.read(&path).await.unwrap(), None);
    for bytes in [&b"first"[..], b"", &[7; 300_000], b"last"] {
        location.write(&path, Bytes::copy_from_slice(bytes)).await.unwrap();
        assert_eq!(location.read(&path).await.unwrap().unwrap(), bytes);
        assert_eq!(location.store().head(&path).await.unwrap().size, bytes.len() as u64);
    }
}

async fn a_state_has_one_tag(location: &Location) {
    let path = path(location, "a");
    location.write(&path, "one".into()).await.unwrap();
    let read = location.read_tagged(&path).await.unwrap().unwrap().tag;
    assert_eq!(read, Tag::of(&location.store().head(&path).await.unwrap()));
    assert_eq!(read, Tag::of(&location.list().await.unwrap()[0]));
    assert_eq!(read, location.read_tagged(&path).await.unwrap().unwrap().tag);
    location.write(&path, "two, and longer".into()).await.unwrap();
    assert_ne!(read, location.read_tagged(&path).await.unwrap().unwrap().tag);
    assert_ne!(Tag::default(), Tag::default(), "what is not known is equal to nothing");
}

async fn ranges_are_exact(location: &Location) {
    let path = path(location, "a");
    let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    location.write(&path, bytes.clone().into()).await.unwrap();
    let store = location.store();
    let part = |range: &Range<u64>| {
        let (start, end) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
        bytes[start..end].to_vec()
    };
    for range in [0..1, 0..100_000, 5..10, 99_999..100_000, 50_000..99_999] {
        assert_eq!(store.get_range(&path, range.clone()).await.unwrap(), part(&range), "{range:?}");
    }
    let options = GetOptions { range: Some(GetRange::Offset(99_000)), ..GetOptions::default() };
    let found = store.get_opts(&path, options).await.unwrap();
    assert_eq!((found.range.clone(), found.meta.size), (99_000..100_000, 100_000));
    assert_eq!(found.bytes().await.unwrap(), bytes[99_000..]);
    let ranges = [0..10, 90_000..90_010, 10..20];
    let expected: Vec<Vec<u8>> = ranges.iter().map(part).collect();
    assert_eq!(store.get_ranges(&path, &ranges).await.unwrap(), expected);
    assert!(store.get_range(&path, 200_000..200_001).await.is_err());
}

/// A reader in a loop sees one of the objects that were written, all of it, and never none.
async fn a_replacement_is_seen_whole_or_not_at_all(location: &Location) {
    let path = path(location, "a/part-0.parquet");
    let sizes = [200_000_usize, 70_000, 130_001];
    // The objects come round again after 251 of them: the byte tells the size.
    let object = |number: usize| Bytes::from(vec![(number % 251).to_le_bytes()[0]; sizes[number % 251 % sizes.len()]]);
    location.write(&path, object(0)).await.unwrap();
    let (done, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let reader = {
        let (location, path, done, reads) = (location.clone(), path.clone(), Arc::clone(&done), Arc::clone(&reads));
        tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let seen = location.read(&path).await.unwrap().expect("there is always an object");
                let number = usize::from(seen[0]);
                assert!(seen.iter().all(|byte| usize::from(*byte) == number), "a mix of two");
                assert_eq!(seen.len(), sizes[number % sizes.len()], "a part of one");
                reads.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut number = 0;
    while number < 100 || reads.load(Ordering::Relaxed) < 30 {
        number += 1;
        location.write(&path, object(number)).await.unwrap();
        if reader.is_finished() {
            break;
        }
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::Relaxed);
    reader.await.unwrap();
}

async fn one_of_many_creates(location: &Location) {
    for round in 0..3 {
        let path = path(location, &format!("round-{round}"));
        let takers = (0..8).map(|taker| {
            let (location, path) = (location.clone(), path.clone());
            tokio::spawn(async move {
                let name = format!("taker {taker}");
                location.create(&path, name.clone().into()).await.unwrap().then_some(name)
            })
        });
        let winners: Vec<_> = futures::future::join_all(takers).await;
        let winners: Vec<String> = winners.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(location.read(&path).await.unwrap().unwrap(), winners[0].as_bytes());
    }
}

async fn counting_by_compare_and_swap_loses_nothing(location: &Location) {
    let path = path(location, "counter");
    assert!(location.create(&path, "0 nobody".into()).await.unwrap());
    let counters = (0..4).map(|counter| {
        let (location, path) = (location.clone(), path.clone());
        tokio::spawn(async move {
            for step in 0..5 {
                loop {
                    let old = location.read_tagged(&path).await.unwrap().unwrap();
                    let count: u32 =
                        std::str::from_utf8(&old.bytes).unwrap().split(' ').next().unwrap().parse().unwrap();
                    let new = format!("{} counter {counter} step {step}", count + 1);
                    if location.replace_if(&path, &old, new.into()).await.unwrap() {
                        break;
                    }
                }
            }
        })
    });
    for counter in futures::future::join_all(counters).await {
        counter.unwrap();
    }
    let last = location.read(&path).await.unwrap().unwrap();
    assert!(last.starts_with(b"20 "), "{last:?}");
}

async fn what_changed_or_is_gone_is_not_replaced(location: &Location) {
    let path = path(location, "folder/a");
    location.write(&path, "one".into()).await.unwrap();
    let old = location.read_tagged(&path).await.unwrap().unwrap();
    location.write(&path, "two, by another".into()).await.unwrap();
    assert!(!location.replace_if(&path, &old, "mine".into()).await.unwrap());
    assert_eq!(location.read(&path).await.unwrap().unwrap(), "two, by another");
    assert!(!location.create(&path, "mine".into()).await.unwrap());
    let now = location.read_tagged(&path).await.unwrap().unwrap();
    assert!(location.replace_if(&path, &now, "mine".into()).await.unwrap());
    assert_eq!(location.read(&path).await.unwrap().unwrap(), "mine");
    let now = location.read_tagged(&path).await.unwrap().unwrap();
    location.delete(&path).await.unwrap();
    assert!(!location.replace_if(&path, &now, "late".into()).await.unwrap());
    assert_eq!(location.read(&path).await.unwrap(), None);
    assert!(location.list().await.unwrap().is_empty());
}

/// More objects than a store tells at once; and a name that sorts otherwise by folder than as a whole.
async fn a_listing_is_complete_and_sorted(location: &Location) {
    let mut names: Vec<String> = (0..1_100).map(|number| format!("date={:03}/part-{number}", number % 7)).collect();
    names.extend(["date=000.old/a", "date=000 b/a", "date=000-1"].map(str::to_owned));
    let writes = names.iter().map(|name| {
        let path = path(location, name);
        async move { location.write(&path, "x".into()).await.unwrap() }
    });
    futures::stream::iter(writes).buffer_unordered(16).collect::<Vec<_>>().await;
    let mut expected: Vec<Path> = names.iter().map(|name| path(location, name)).collect();
    expected.sort();
    let listed = location.list().await.unwrap();
    assert!(listed.iter().all(|object| object.size == 1));
    let listed: Vec<Path> = listed.into_iter().map(|object| object.location).collect();
    assert_eq!(listed, expected);
    let below = location.join("date=000").list().await.unwrap();
    assert_eq!(below.len(), names.iter().filter(|name| name.starts_with("date=000/")).count(), "a folder is no prefix");
    assert!(location.join("nothing").list().await.unwrap().is_empty());
}

async fn names_may_hold_anything(location: &Location) {
    let names = ["a b", "date=2026-01-31", "100%", "%41", "ü名", "x+y&z", "q?r#1", "semi;colon", "~tilde", "a'b\"c"];
    for name in names {
        let path = path(location, &format!("odd/{name}/part 0 {name}.parquet"));
        location.write(&path, name.to_owned().into()).await.unwrap();
        assert_eq!(location.read(&path).await.unwrap().unwrap(), name.as_bytes(), "{name}");
        let listed = location.join(&format!("odd/{name}")).list().await.unwrap();
        assert_eq!(listed.len(), 1, "{name}: {listed:?}");
        assert_eq!(listed[0].location, path, "{name}");
        assert_eq!(location.read(&listed[0].location).await.unwrap().unwrap(), name.as_bytes(), "{name}");
    }
    assert_eq!(location.list().await.unwrap().len(), names.len());
    let odd = location.join("odd/100%");
    location.delete(&path(&odd, "part 0 100%.parquet")).await.unwrap();
    assert_eq!(location.list().await.unwrap().len(), names.len() - 1);
}

async fn deleting_what_is_not_there_is_fine(location: &Location) {
    let path = path(location, "a");
    location.delete(&path).await.unwrap();
    location.write(&path, "x".into()).await.unwrap();
    location.delete(&path).await.unwrap();
    location.delete(&path).await.unwrap();
    assert_eq!(location.read(&path).await.unwrap(), None);
}
