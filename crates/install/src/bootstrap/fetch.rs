//! Getting manifests from where they are. What does not have the pinned SHA-256 is not used.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::Utf8Error;
use std::{fs, io};

use http::StatusCode;
use sha2::{Digest, Sha256};
use tiphys_model::bootstrap::{Chart, Manifests, Primitive, PrimitiveName};
use tiphys_model::{Exit, Explain, Explanation};

use super::render::RenderInput;
use crate::https::{Https, Unanswered};
use crate::mounted::Mounted;
use crate::registry::{self, Reference};

/// Larger than any manifests, and small enough to hold.
const MOST_BYTES: usize = 64 << 20;

/// An error fetching manifests.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum FetchError {
    NotPinned {
        primitive: Box<Primitive>,
        /// The SHA-256 of what is there.
        found: String,
    },
    NotText {
        primitive: PrimitiveName,
        source: Utf8Error,
    },
    Unreadable {
        path: PathBuf,
        source: io::Error,
    },
    TooLarge {
        path: PathBuf,
    },
    /// No artifact has such a name.
    NotAReference {
        text: String,
    },
    Unanswered {
        place: String,
        why: Unanswered,
    },
    Status {
        url: String,
        status: StatusCode,
    },
    /// What helm needs cannot be put into a folder.
    TempFolder {
        chart: Box<Chart>,
        source: io::Error,
    },
    NoHelm {
        chart: Box<Chart>,
        source: io::Error,
    },
    Helm {
        chart: Box<Chart>,
        stderr: String,
    },
}

impl Explain for FetchError {
    fn explain(&self) -> Explanation {
        let say = |what: String, why: String| Explanation::new(Exit::Configuration, what, why);
        let unreadable = |path: &Path, why| {
            say(format!("cannot read {}", path.display()), why)
                .hint("check the path in `spec.bootstrap`: it is relative to the platform file")
        };
        let unfetched = |place: &str, why| {
            say(format!("cannot fetch {place}"), why).hint(
                "check the address, the network and the credentials, or use a file with `path`",
            )
        };
        let unrendered = |chart: &Chart, why| {
            say(format!("cannot render the chart {} {}", chart.name, chart.version), why)
        };
        match self {
            FetchError::NotPinned { primitive, found } => say(
                format!("the manifests of {} do not match the pin", primitive.name.title()),
                format!(
                    "{} has the SHA-256 {found}, but {} is pinned",
                    primitive.manifests,
                    primitive.checksum.as_str()
                ),
            )
            .hint(format!(
                "check what has changed; if the change is intended, set \
                 `spec.bootstrap.{}.manifests.sha256` to the new checksum",
                primitive.name.as_str()
            )),
            FetchError::NotText { primitive, .. } => say(
                format!("cannot use the manifests of {}", primitive.title()),
                "they are not valid UTF-8".to_owned(),
            ),
            FetchError::Unreadable { path, source } => unreadable(path, source.to_string()),
            FetchError::TooLarge { path } => {
                unreadable(path, format!("the file is larger than {} MiB", MOST_BYTES >> 20))
            }
            FetchError::NotAReference { text } => {
                unfetched(text, "expected the form `REGISTRY/REPOSITORY:TAG`".to_owned())
            }
            FetchError::Unanswered { place, why } => unfetched(place, why.clone()),
            FetchError::Status { url, status } => unfetched(url, status.to_string()),
            FetchError::TempFolder { chart, source } => unrendered(chart, source.to_string()),
            FetchError::NoHelm { chart, source } => {
                unrendered(chart, format!("cannot run helm: {source}"))
                    .hint("install helm 3.12 or newer, or pin rendered manifests with `path`")
            }
            FetchError::Helm { chart, stderr } => unrendered(chart, stderr.clone())
                .hint("run `helm template` with the same chart to reproduce this"),
        }
    }
}

/// Everything that a primitive is rendered from. Files are seen from `folder`.
pub async fn fetch(
    folder: &Path,
    primitive: &Primitive,
    mounted: &Mounted,
) -> Result<RenderInput, FetchError> {
    let manifests = match &primitive.manifests {
        Manifests::Path(path) => read(&folder.join(path))?,
        Manifests::Chart(chart) => {
            template(folder, chart, &primitive.namespace, mounted.registry_authority.as_deref())
                .await?
        }
        Manifests::Url(url) => download(url, mounted).await?,
        Manifests::Oci(reference) => pull(reference, mounted).await?,
    };
    check(primitive, &manifests)?;
    let patches = primitive.patches.as_ref().map(|path| read(&folder.join(path))).transpose()?;
    Ok(RenderInput {
        manifests: text(primitive, manifests)?,
        patches: patches.map(|patches| text(primitive, patches)).transpose()?,
        known_hosts: mounted.host_keys(),
        pull_secret: mounted.registry.is_some(),
    })
}

fn check(primitive: &Primitive, manifests: &[u8]) -> Result<(), FetchError> {
    let found = sha256(manifests);
    if found == primitive.checksum.as_str() {
        return Ok(());
    }
    Err(FetchError::NotPinned { primitive: Box::new(primitive.clone()), found })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(primitive: &Primitive, bytes: Vec<u8>) -> Result<String, FetchError> {
    String::from_utf8(bytes).map_err(|error| FetchError::NotText {
        primitive: primitive.name,
        source: error.utf8_error(),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, FetchError> {
    let unreadable = |source| FetchError::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.len() > MOST_BYTES as u64 {
        return Err(FetchError::TooLarge { path: path.to_owned() });
    }
    fs::read(path).map_err(unreadable)
}

/// For `map_err` on what servers are asked for.
fn unanswered(place: &str) -> impl Fn(Unanswered) -> FetchError {
    move |why| FetchError::Unanswered { place: place.to_owned(), why }
}

fn https(place: &str, mounted: &Mounted) -> Result<Https, FetchError> {
    Https::new(mounted.registry_authority.as_deref()).map_err(unanswered(place))
}

async fn download(url: &str, mounted: &Mounted) -> Result<Vec<u8>, FetchError> {
    let answer = https(url, mounted)?.get(url, None, None, MOST_BYTES).await;
    let answer = answer.map_err(unanswered(url))?;
    if !answer.status.is_success() {
        return Err(FetchError::Status { url: url.to_owned(), status: answer.status });
    }
    Ok(answer.body.to_vec())
}

async fn pull(text: &str, mounted: &Mounted) -> Result<Vec<u8>, FetchError> {
    let reference = Reference::parse(text)
        .ok_or_else(|| FetchError::NotAReference { text: text.to_owned() })?;
    let config = mounted.registry.as_ref();
    let login = config.and_then(|config| registry::login(config, reference.registry));
    let https = https(text, mounted)?;
    let layer = registry::pull(&https, &reference, login.as_ref(), MOST_BYTES).await;
    layer.map_err(unanswered(text))
}

/// Charts are Helm's own business: nobody else reads them alike.
async fn template(
    folder: &Path,
    chart: &Chart,
    namespace: &str,
    authority: Option<&str>,
) -> Result<Vec<u8>, FetchError> {
    let boxed = || Box::new(chart.clone());
    let unwritten = |source| FetchError::TempFolder { chart: boxed(), source };
    let mut helm = tokio::process::Command::new("helm");
    helm.args(["template", &chart.name, &chart.name, "--repo", &chart.repository])
        .args(["--version", &chart.version, "--namespace", namespace, "--include-crds"])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if let Some(values) = &chart.values {
        helm.arg("--values").arg(folder.join(values));
    }
    // Helm's own option for it would replace the authorities of this machine. Of folders, it reads
    // several, beside the machine's own file.
    let own = tempfile::tempdir().map_err(unwritten)?;
    if let Some(authority) = authority {
        fs::write(own.path().join("ca.crt"), authority).map_err(unwritten)?;
        helm.env("SSL_CERT_DIR", format!("{}:/etc/ssl/certs", own.path().display()));
    }
    let output = helm.output().await;
    let output = output.map_err(|source| FetchError::NoHelm { chart: boxed(), source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(FetchError::Helm { chart: boxed(), stderr })
}

#[cfg(test)]
mod tests {
    use tiphys_model::bootstrap::{Checksum, PrimitiveName};

    use super::*;

    fn primitive(path: &str, checksum: Checksum) -> Primitive {
        Primitive {
            name: PrimitiveName::ArgoCd,
            version: "1".to_owned(),
            namespace: "argocd".to_owned(),
            manifests: Manifests::Path(path.to_owned()),
            checksum,
            patches: None,
        }
    }

    #[tokio::test]
    async fn only_what_is_pinned_is_used() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), "kind: A").unwrap();
        let fetched = async |path: &str, pinned: &str| {
            let pinned = Checksum::parse(&sha256(pinned.as_bytes())).unwrap();
            let primitive = primitive(path, pinned);
            fetch(folder.path(), &primitive, &Mounted::default()).await
        };
        assert_eq!(fetched("a.yaml", "kind: A").await.unwrap().manifests, "kind: A");
        let error = fetched("a.yaml", "kind: B").await.unwrap_err().explain();
        assert_eq!(error.exit, Exit::Configuration);
        assert!(error.why.contains(&sha256(b"kind: A")), "{error}");
        let absent = fetched("absent.yaml", "").await.unwrap_err();
        assert!(absent.explain().what.contains("absent.yaml"), "{absent}");
    }
}
