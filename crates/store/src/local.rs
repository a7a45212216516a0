//! Compare-and-swap on local disks, which `object_store` does not have.

use std::fs::{File, OpenOptions};

use object_store::local::LocalFileSystem;
use object_store::path::Path;

/// The file that is locked while an object beside it is compared and replaced.
pub(crate) const GUARD: &str = ".guard";

/// The right to compare and replace the objects of a folder; it ends when this is dropped, and with the process.
pub(crate) struct Guard(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

/// Waits for the guard of the folder of an object; `None` if there is no such folder.
///
/// The system's lock of a file is used since it cannot outlive the process that holds it. It holds between processes of one
/// machine, and between machines where the file system passes locks on, as NFS 4 does.
pub(crate) async fn guard(path: &Path) -> object_store::Result<Option<Guard>> {
    let folder = match LocalFileSystem::new().path_to_filesystem(path)?.parent() {
        Some(folder) => folder.to_owned(),
        None => return Ok(None),
    };
    let locked = tokio::task::spawn_blocking(move || {
        let options = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(GUARD));
        let file = match options {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.lock()?;
        Ok(Some(Guard(file)))
    });
    let failed = |source: std::io::Error| object_store::Error::Generic {
        store: "LocalFileSystem",
        source: format!("the lock of `{GUARD}` cannot be had: {source}").into(),
    };
    locked.await?.map_err(failed)
}
