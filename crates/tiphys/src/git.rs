//! The platform file as Git has it: through Argo CD, at the commit that the root app is at. Nobody
//! needs a clone for it, or a login of the Git server.

use tiphys_cluster::Access;
use tiphys_engine::platform_file::LABEL;
use tiphys_engine::{PlatformFiles, RootSource};
use tiphys_install::configure::stored_file;
use tiphys_model::{Exit, Explain, Explanation, Platform, PlatformName, Scope};
use tiphys_spec::{Source, Sources};
use tiphys_state::GraphStore;

use crate::failure::Failure;
use crate::input::{self, InputError};
use crate::{output, runtime};

/// A platform that was found by its name.
pub(crate) struct Found {
    pub(crate) platform: Platform,
    /// Its root app has the file; otherwise `configure` has kept it.
    pub(crate) from_git: bool,
}

enum FileSource {
    Stored(PlatformFiles),
    Root(RootSource),
}

/// The platform of this name, as the newest commit of its root app has it. Where that cannot be asked,
/// it is what `configure` was given last.
pub(crate) fn platform(
    access: &Access,
    namespace: &str,
    name: &PlatformName,
) -> Result<Found, Failure> {
    let source = runtime::block_on(async {
        let client = access.client().await?;
        if let Some(files) = stored_file::read(&client, namespace, name).await? {
            return Ok(FileSource::Stored(files));
        }
        // How Argo CD is reached was noted when it was deployed last.
        let graph = GraphStore::new(&client, namespace, name).read().await?;
        let known = graph.map(|graph| graph.platform(name, namespace)).transpose()?;
        let known = known.unwrap_or_else(|| tiphys_spec::named(name.clone(), namespace.to_owned()));
        let root = RootSource::of(&client, &known, &|text| output::note(&text)).await?;
        Ok(FileSource::Root(root))
    })?;
    let source = match source {
        FileSource::Root(source) => source,
        FileSource::Stored(files) => {
            output::note("platform file as `tiphys configure` has stored it");
            let platform = read(&files, "stored in the cluster")?;
            return Ok(Found { platform, from_git: false });
        }
    };
    let revision = source.revisions.to_string();
    let Some(files) = &source.files else {
        return Err(NotThere { name: name.clone(), revision }.into());
    };
    let platform = read(files, &format!("at {revision}"))?;
    if platform.name != *name {
        let found = platform.name;
        return Err(Misnamed { name: name.clone(), found, revision }.into());
    }
    output::note(&format!("platform file at revision {revision}"));
    Ok(Found { platform, from_git: true })
}

/// Whether a platform of this name was set up in the cluster.
pub(crate) fn has_root_app(
    access: &Access,
    namespace: &str,
    name: &PlatformName,
) -> Result<bool, Failure> {
    runtime::block_on(async {
        let client = access.client().await?;
        let platform = tiphys_spec::named(name.clone(), namespace.to_owned());
        Ok(RootSource::root_app(&client, &platform).await?.is_some())
    })
}

/// The platform that these files describe.
fn read(files: &PlatformFiles, place: &str) -> Result<Platform, Failure> {
    let source = |(name, text): (&String, &String)| {
        Source::new(format!("{name} {place}"), text.as_bytes().to_vec())
    };
    let sources: Result<Vec<Source>, _> = files.iter().map(source).collect();
    let sources = sources.map_err(|error| Failure::Input(InputError::NotText(error)))?;
    let sources = if files.len() > 1 { Sources::directory(sources) } else { Sources::new(sources) };
    input::parsed(sources)
}

/// Whether these files mean the same platform. Comments and the order of apps mean nothing.
pub(crate) fn means(files: &PlatformFiles, revision: &str, platform: &Platform) -> bool {
    let digest = |platform: &Platform| {
        tiphys_plan::plan(platform, &Scope::Platform).ok().map(|plan| plan.digest)
    };
    read(files, &format!("at {revision}")).is_ok_and(|in_git| digest(&in_git) == digest(platform))
}

/// The root app has no platform file.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
struct NotThere {
    name: PlatformName,
    revision: String,
}

impl Explain for NotThere {
    fn explain(&self) -> Explanation {
        let NotThere { name, revision } = self;
        Explanation::new(
            Exit::Configuration,
            "the root app does not contain the platform file",
            format!("it renders no ConfigMap with the label `{LABEL}: {name}` at {revision}"),
        )
        .hint("add it to the root app (see docs/platform-file.md), or pass the file with `-f`")
    }
}

/// The root app has the platform file of another platform under this name.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
struct Misnamed {
    name: PlatformName,
    found: PlatformName,
    revision: String,
}

impl Explain for Misnamed {
    fn explain(&self) -> Explanation {
        let Misnamed { name, found, revision } = self;
        Explanation::new(
            Exit::Configuration,
            format!("the platform file of `{name}` is named `{found}`"),
            format!("the root app's ConfigMap has the label `{LABEL}: {name}` at {revision}"),
        )
        .hint("make the label and `metadata.name` equal")
    }
}
