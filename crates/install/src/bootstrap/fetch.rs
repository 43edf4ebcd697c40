//! Getting manifests from where they are. What does not have the pinned SHA-256 is not used.

use std::path::Path;
use std::process::Stdio;
use std::{fs, io};

use sha2::{Digest, Sha256};
use tiphys_model::bootstrap::{Chart, Manifests, Primitive};

use super::render::RenderInput;
use crate::https::Https;
use crate::mounted::Mounted;
use crate::registry::{self, Reference};
use tiphys_cluster::{ClusterError, Kind};

/// Larger than any manifests, and small enough to hold.
const MOST_BYTES: usize = 64 << 20;

/// Everything that a primitive is rendered from. Files are seen from `folder`.
pub async fn fetch(
    folder: &Path,
    primitive: &Primitive,
    mounted: &Mounted,
) -> Result<RenderInput, ClusterError> {
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
        known_hosts: mounted.git.known_hosts.clone(),
        pull_secret: mounted.registry.is_some(),
    })
}

fn check(primitive: &Primitive, manifests: &[u8]) -> Result<(), ClusterError> {
    let found = sha256(manifests);
    let wanted = primitive.checksum.as_str();
    if found == wanted {
        return Ok(());
    }
    Err(ClusterError::new(
        Kind::Configuration,
        format!("the manifests of {} are not the pinned ones", primitive.name.title()),
        format!("{} has the SHA-256 {found}, and {wanted} is pinned", primitive.manifests),
    )
    .hint(format!(
        "find out what has changed; if it is meant, pin `spec.bootstrap.{}.manifests.sha256` to \
         the new one",
        primitive.name.as_str()
    )))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(primitive: &Primitive, bytes: Vec<u8>) -> Result<String, ClusterError> {
    String::from_utf8(bytes).map_err(|_| {
        let what = format!("the manifests of {} cannot be used", primitive.name.title());
        ClusterError::new(Kind::Configuration, what, "they are not text in UTF-8")
    })
}

fn read(path: &Path) -> Result<Vec<u8>, ClusterError> {
    let unreadable = |why: String| {
        let what = format!("{} cannot be read", path.display());
        ClusterError::new(Kind::Configuration, what, why)
            .hint("`spec.bootstrap` names it, seen from the platform file: correct one of them")
    };
    let size = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if size > MOST_BYTES as u64 {
        return Err(unreadable(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
    }
    fs::read(path).map_err(|error| unreadable(error.to_string()))
}

fn unfetched(place: &str, why: String) -> ClusterError {
    ClusterError::new(Kind::Configuration, format!("{place} cannot be fetched"), why)
        .hint("check the address, the way there and the credentials; `path` needs none of them")
}

fn https(place: &str, mounted: &Mounted) -> Result<Https, ClusterError> {
    Https::new(mounted.registry_authority.as_deref()).map_err(|why| unfetched(place, why))
}

async fn download(url: &str, mounted: &Mounted) -> Result<Vec<u8>, ClusterError> {
    let answer = https(url, mounted)?.get(url, None, None, MOST_BYTES).await;
    let answer = answer.map_err(|why| unfetched(url, why))?;
    if !answer.status.is_success() {
        return Err(unfetched(url, answer.status.to_string()));
    }
    Ok(answer.body.to_vec())
}

async fn pull(text: &str, mounted: &Mounted) -> Result<Vec<u8>, ClusterError> {
    let reference = Reference::parse(text).ok_or_else(|| {
        unfetched(text, "it is not of the form `REGISTRY/REPOSITORY:TAG`".to_owned())
    })?;
    let config = mounted.registry.as_ref();
    let login = config.and_then(|config| registry::login(config, reference.registry));
    let https = https(text, mounted)?;
    let layer = registry::pull(&https, &reference, login.as_ref(), MOST_BYTES).await;
    layer.map_err(|why| unfetched(text, why))
}

/// Charts are Helm's own business: nobody else reads them alike.
async fn template(
    folder: &Path,
    chart: &Chart,
    namespace: &str,
    authority: Option<&str>,
) -> Result<Vec<u8>, ClusterError> {
    let what = format!("the chart {} {} cannot be rendered", chart.name, chart.version);
    let failed = |why: String| ClusterError::new(Kind::Configuration, what.clone(), why);
    let unwritten = |error: io::Error| failed(error.to_string());
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
    let output = helm.output().await.map_err(|error| {
        failed(format!("helm cannot be run: {error}"))
            .hint("install helm 3.12 or newer, or pin rendered manifests with `path`")
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.trim().to_owned()).hint("`helm template` with the same chart says the same"))
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
        let error = fetched("a.yaml", "kind: B").await.unwrap_err();
        assert_eq!(error.kind, Kind::Configuration);
        assert!(error.why.contains(&sha256(b"kind: A")), "{error}");
        assert!(fetched("absent.yaml", "").await.unwrap_err().what.contains("absent.yaml"));
    }
}
