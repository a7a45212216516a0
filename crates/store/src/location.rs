//! A place in a store: a URL, or a path of this machine.

use std::fmt;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use url::Url;

use crate::{LocationProblem, StoreError};

/// Settings of stores, in the names that their users know: `aws_access_key_id`, `google_service_account`,
/// `azure_storage_account_name`, `aws_endpoint`, `allow_http`. Names that a store does not know are passed over.
#[derive(Clone, Default)]
pub struct StoreOptions(Vec<(String, String)>);

impl StoreOptions {
    /// Takes the settings, such as the environment's; names may be in upper or lower case.
    pub fn new(settings: impl IntoIterator<Item = (String, String)>) -> StoreOptions {
        StoreOptions(settings.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
    }
}

impl fmt::Debug for StoreOptions {
    /// The values may be secrets: they are never shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreOptions({} settings)", self.0.len())
    }
}

/// A place in a store.
#[derive(Clone)]
pub struct Location {
    /// For messages: a URL as it was written, a path in full.
    name: String,
    /// The URL of the store itself, without the path: `file:///`, `s3://bucket`.
    store_url: Url,
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl Location {
    /// Understands a URL or a path; a relative path is taken from `base`.
    pub fn parse(text: &str, base: &std::path::Path, options: &StoreOptions) -> Result<Location, StoreError> {
        Location::understand(text, base, options)
            .map_err(|source| StoreError::Location { location: text.to_owned(), source })
    }

    fn understand(text: &str, base: &std::path::Path, options: &StoreOptions) -> Result<Location, LocationProblem> {
        if text.is_empty() {
            return Err(LocationProblem::Path("it is empty".to_owned()));
        }
        let (name, url) = if text.contains("://") {
            (text.trim_end_matches('/').to_owned(), Url::parse(text)?)
        } else {
            let path =
                std::path::absolute(base.join(text)).map_err(|error| LocationProblem::Path(error.to_string()))?;
            let path = normalized(&path);
            let name = path.display().to_string();
            (name.clone(), Url::from_directory_path(path).map_err(|()| LocationProblem::Path(name))?)
        };
        let (store, root) = object_store::parse_url_opts(&url, options.0.iter().cloned())?;
        let mut store_url = url.clone();
        store_url.set_path("/");
        store_url.set_query(None);
        Ok(Location { name, store_url, store: Arc::from(store), root })
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// The URL of the store, without a path.
    pub fn store_url(&self) -> &Url {
        &self.store_url
    }

    /// The path within the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A place below this one.
    pub fn join(&self, name: &str) -> Location {
        let root =
            name.split('/').filter(|part| !part.is_empty()).fold(self.root.clone(), |path, part| path.join(part));
        Location { name: format!("{}/{name}", self.name), root, ..self.clone() }
    }

    /// How messages name an object of this store.
    pub fn name_of(&self, path: &Path) -> String {
        match path.prefix_match(&self.root) {
            Some(parts) => {
                let mut name = self.name.clone();
                for part in parts {
                    name.push('/');
                    name.push_str(part.as_ref());
                }
                name
            }
            None => path.to_string(),
        }
    }

    /// All objects below this place, by their paths; none if it is not there.
    pub async fn list(&self) -> Result<Vec<ObjectMeta>, StoreError> {
        let listed: Result<Vec<ObjectMeta>, _> = self.store.list(Some(&self.root)).try_collect().await;
        let mut objects = listed.map_err(|source| self.problem(&self.root, "listed", source))?;
        objects.sort_by(|left, right| left.location.cmp(&right.location));
        Ok(objects)
    }

    /// Reads a whole object; `None` if there is none.
    pub async fn read(&self, path: &Path) -> Result<Option<bytes::Bytes>, StoreError> {
        let read = async { self.store.get(path).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(self.problem(path, "read", source)),
        }
    }

    /// Writes a whole object in one step: a reader sees the old one or this one. Gives its tag, if the store has such.
    pub async fn write(&self, path: &Path, bytes: bytes::Bytes) -> Result<Option<String>, StoreError> {
        let written = self.store.put(path, PutPayload::from_bytes(bytes)).await;
        written.map(|written| written.e_tag).map_err(|source| self.problem(path, "written", source))
    }

    /// Wraps what the store said about one of its objects.
    pub fn problem(&self, path: &Path, action: &'static str, source: object_store::Error) -> StoreError {
        StoreError::Object { location: self.name_of(path), action, source }
    }
}

/// Resolves `.` and `..` by name, without asking the disk: what does not exist yet has a location too.
fn normalized(path: &std::path::Path) -> std::path::PathBuf {
    let mut out = std::path::PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Location({self})")
    }
}
