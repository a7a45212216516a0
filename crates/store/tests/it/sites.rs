//! A place of its own for each test in each kind of store.

use std::sync::atomic::{AtomicU32, Ordering};

use goodput_store::{Location, StoreOptions};
use goodput_testkit::servers::{self, Server};
use tempfile::TempDir;

/// A place without anything in it.
pub(crate) struct Site {
    pub(crate) location: Location,
    /// Keeps the folder of a local one.
    _folder: Option<TempDir>,
}

pub(crate) fn local() -> Option<Site> {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::parse("root", folder.path(), &StoreOptions::default()).unwrap();
    Some(Site { location, _folder: Some(folder) })
}

pub(crate) fn memory() -> Option<Site> {
    Some(Site { location: at("memory:///root", Vec::new()), _folder: None })
}

pub(crate) fn s3() -> Option<Site> {
    servers::s3("the conformance of S3").map(remote)
}

pub(crate) fn azure() -> Option<Site> {
    servers::azure("the conformance of Azure").map(remote)
}

fn remote(server: Server) -> Site {
    Site { location: at(&server.url(&new_name()), server.settings()), _folder: None }
}

/// A location with settings.
pub(crate) fn at(url: &str, settings: Vec<(String, String)>) -> Location {
    Location::parse(url, std::path::Path::new("/"), &StoreOptions::new(settings)).unwrap()
}

/// A name that no other test has, nor this one when it runs again while the servers do.
pub(crate) fn new_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    #[expect(clippy::disallowed_methods, reason = "a name that differs from run to run")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    format!("t{now:x}-{:x}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Makes a test of each check for each kind of store.
macro_rules! on_every_store {
    ($($check:ident),+ $(,)?) => {
        on_every_store!(@store local, $($check),+);
        on_every_store!(@store memory, $($check),+);
        on_every_store!(@store s3, $($check),+);
        on_every_store!(@store azure, $($check),+);
    };
    (@store $store:ident, $($check:ident),+) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $check() {
                    if let Some(site) = crate::sites::$store() {
                        super::$check(&site.location).await;
                    }
                }
            )+
        }
    };
}
pub(crate) use on_every_store;
