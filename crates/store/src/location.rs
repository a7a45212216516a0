//! A place in a store: a URL, or a path of this machine.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use url::Url;

use crate::hints::{Access, is_exhausted, is_without_bucket, said};
use crate::settings::{Opened, open};
use crate::{LocationProblem, StoreError, StoreOptions, local};

/// How often something is tried again whose outcome a store left open, and which the client does not try again by itself.
const TRIES: usize = 6;

/// A place in a store.
#[derive(Clone)]
pub struct Location {
    /// For messages: a URL as it was written, a path in full.
    name: String,
    /// The URL of the store itself, without the path: `file:///`, `s3://bucket`.
    store_url: Url,
    store: Arc<dyn ObjectStore>,
    root: Path,
    access: Access,
}

/// One state of an object: two are equal if nothing was written in between.
#[derive(Debug, Clone, Default)]
pub struct Tag {
    e_tag: Option<String>,
    version: Option<String>,
}

impl Tag {
    /// The state that an answer of the store speaks of.
    pub fn of(meta: &ObjectMeta) -> Tag {
        Tag { e_tag: meta.e_tag.clone(), version: meta.version.clone() }
    }

    /// Azure's listings have no quotes around what its answers to reads have some.
    fn plain(&self) -> Option<&str> {
        self.e_tag.as_deref().map(|tag| tag.trim_matches('"'))
    }
}

impl PartialEq for Tag {
    /// A listing gives no version where a read does. What has no etag is equal to nothing.
    fn eq(&self, other: &Tag) -> bool {
        self.plain().is_some() && self.plain() == other.plain()
    }
}

/// An object that was read, and the state in which it was.
#[derive(Debug, Clone)]
pub struct Tagged {
    /// All of it.
    pub bytes: Bytes,
    /// Its state.
    pub tag: Tag,
}

impl Location {
    /// Understands a URL or a path; a relative path is taken from `base`.
    pub fn parse(text: &str, base: &std::path::Path, options: &StoreOptions) -> Result<Location, StoreError> {
        Location::understand(text, base, options)
            .map_err(|source| StoreError::Location { location: without_secrets(text), source })
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
        let Opened { store, root, access } = open(&url, options)?;
        let mut store_url = url.clone();
        store_url.set_path("/");
        Ok(Location { name, store_url, store, root, access })
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

    /// Reads a whole object; `None` if there is none.
    pub async fn read(&self, path: &Path) -> Result<Option<Bytes>, StoreError> {
        Ok(self.read_tagged(path).await?.map(|object| object.bytes))
    }

    /// Reads a whole object and the state in which it is; `None` if there is none.
    pub async fn read_tagged(&self, path: &Path) -> Result<Option<Tagged>, StoreError> {
        match self.try_read(path).await {
            Ok(object) => Ok(Some(object)),
            // Where there is no bucket, it is not only this object that is missing.
            Err(error @ object_store::Error::NotFound { .. }) if !is_without_bucket(&error) => Ok(None),
            Err(source) => Err(self.problem(path, "read", source)),
        }
    }

    async fn try_read(&self, path: &Path) -> object_store::Result<Tagged> {
        // An answer to a range says how long the object is; one without may be short and nobody would know.
        let options = GetOptions { range: Some(GetRange::Offset(0)), ..GetOptions::default() };
        let found = match self.store.get_opts(path, options).await {
            Err(error) if is_empty_range(&error) => self.store.get(path).await?,
            found => found?,
        };
        let (size, tag) = (found.meta.size, Tag::of(&found.meta));
        let bytes = found.bytes().await?;
        if bytes.len() as u64 != size {
            let source = format!("{} of {size} bytes of `{path}` arrived", bytes.len()).into();
            return Err(object_store::Error::Generic { store: "read", source });
        }
        Ok(Tagged { bytes, tag })
    }

    /// Writes a whole object in one step: a reader sees the old one or this one. Gives its tag, if the store has such.
    pub async fn write(&self, path: &Path, bytes: Bytes) -> Result<Option<String>, StoreError> {
        let written = self.store.put(path, PutPayload::from_bytes(bytes)).await;
        written.map(|written| written.e_tag).map_err(|source| self.problem(path, "written", source))
    }

    /// Writes an object if there is none; `false` if there is one. Of many who do so, one wins.
    ///
    /// The bytes must be the writer's own: a store may lose its answer, and then who wrote them is told by reading them.
    pub async fn create(&self, path: &Path, bytes: Bytes) -> Result<bool, StoreError> {
        self.put_if(path, PutMode::Create, bytes).await
    }

    /// Writes an object if it is still what was read; `false` if it is not. Of many who do so, one wins.
    ///
    /// The bytes must be the writer's own, as those of `create`. On local disks, all who replace the object must do so with
    /// this function; a hidden file `.guard` stays beside it.
    pub async fn replace_if(&self, path: &Path, old: &Tagged, bytes: Bytes) -> Result<bool, StoreError> {
        if self.store_url.scheme() != "file" {
            let version = UpdateVersion { e_tag: old.tag.e_tag.clone(), version: old.tag.version.clone() };
            return self.put_if(path, PutMode::Update(version), bytes).await;
        }
        let guard = local::guard(path).await.map_err(|source| self.problem(path, "replaced", source))?;
        // An etag of a local file is its inode and time: both may come again at once. The bytes tell for sure.
        let is_same = self.read(path).await?.is_some_and(|now| now == old.bytes);
        if guard.is_some() && is_same {
            self.write(path, bytes).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// A conditional write. A store may have done it and its answer be lost: asked again, it then refuses because of the very
    /// bytes that it has taken; or the write is on its way and arrives later. So who wrote is told by what is there.
    async fn put_if(&self, path: &Path, mode: PutMode, bytes: Bytes) -> Result<bool, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
            let written = self.store.put_opts(path, PutPayload::from_bytes(bytes.clone()), options).await;
            let error = match written {
                Ok(_) => return Ok(true),
                Err(error) => error,
            };
            let is_refused = matches!(
                error,
                object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. }
                    | object_store::Error::NotFound { .. }
            );
            let is_open = matches!(error, object_store::Error::Generic { .. });
            if !is_refused && !is_open {
                return Err(self.problem(path, "written", error));
            }
            let again = tries < TRIES && !is_exhausted(&error);
            // If that fails, too, then the first error says why.
            let Ok(now) = self.read_tagged(path).await else { return Err(self.problem(path, "written", error)) };
            match (now, &mode) {
                (Some(now), _) if now.bytes == bytes => return Ok(true),
                _ if is_refused => return Ok(false),
                // Nothing has changed, so that it may be tried again; the tag of an update would not fit a second time.
                (None, PutMode::Create) if again => {}
                (Some(now), PutMode::Update(old)) if now.tag.e_tag == old.e_tag && again => {}
                // The state that the write wants is gone: wherever the write may be, it cannot succeed.
                (Some(_), PutMode::Create) => return Ok(false),
                (now, PutMode::Update(old)) if now.as_ref().is_none_or(|now| now.tag.e_tag != old.e_tag) => {
                    return Ok(false);
                }
                _ => return Err(self.problem(path, "written", error)),
            }
        }
    }

    /// Deletes an object; it need not be there.
    pub async fn delete(&self, path: &Path) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.delete(path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => return Ok(()),
                Err(error @ object_store::Error::Generic { .. }) if tries < TRIES && !is_exhausted(&error) => {}
                Err(source) => return Err(self.problem(path, "deleted", source)),
            }
        }
    }

    /// What lies below this place, by name: each kind of store has an order of its own, if any.
    pub async fn list(&self) -> Result<Vec<ObjectMeta>, StoreError> {
        let objects = self.store.list(Some(&self.root)).try_collect::<Vec<_>>().await;
        let mut objects = objects.map_err(|source| self.problem(&self.root, "listed", source))?;
        objects.retain(|object| object.location.filename() != Some(local::GUARD));
        objects.sort_by(|left, right| left.location.cmp(&right.location));
        Ok(objects)
    }

    /// Wraps what the store said about one of its objects.
    pub fn problem(&self, path: &Path, action: &'static str, source: object_store::Error) -> StoreError {
        StoreError::Object { location: self.name_of(path), action, hint: self.hint(&source), source: Box::new(source) }
    }

    /// What to do about an error of this store, if there is something to say.
    pub fn hint(&self, error: &object_store::Error) -> Option<String> {
        self.access.hint(error)
    }
}

/// Whether a read from the first byte on was refused since there is none.
fn is_empty_range(error: &object_store::Error) -> bool {
    let said = said(error);
    // In the words of Amazon, of local disks, and of Azurite, which tells of the bytes 0 to -1.
    ["status code: 416", "only 0 bytes long", "bytes 0--1/0"].iter().any(|part| said.contains(part))
}

/// A URL for messages: without what stands before an `@` with a password, and without a query, which may be a signature.
fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = match host.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => host,
        _ => host,
    };
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
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
