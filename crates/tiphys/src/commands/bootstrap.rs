//! `tiphys bootstrap`: what the platform stands on.

mod ansible;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_cluster::Access;
use tiphys_engine::PlatformFiles;
use tiphys_install::bootstrap::{
    self, Adoption, Installation, Rendered, Rotation, Stage, rotate_initial,
};
use tiphys_install::configure::{Mode, configure};
use tiphys_install::mounted::Mounted;
use tiphys_model::bootstrap::Installer;
use tiphys_model::{Bootstrap, Exit, Platform, Scope};

use crate::args::{BootstrapArgs, DocumentFormat, RunFormat};
use crate::commands::deploy::{Deployment, Origin};
use crate::commands::plan::plan;
use crate::commands::preflight;
use crate::failure::Failure;
use crate::report_files::RunFiles;
use crate::written::{self, Written};
use crate::{input, output, runtime, target};

pub(crate) fn run(args: &BootstrapArgs) -> Result<Exit, Failure> {
    let (mut platform, files) = input::with_files(&args.setup.file)?;
    if let (Some(bootstrap), Some(installer)) = (&mut platform.bootstrap, args.installer) {
        bootstrap.installer = installer.into();
    }
    let bootstrap = platform.bootstrap.as_ref().ok_or(Failure::NoBootstrap)?;
    let mounted = args.setup.credentials.read()?;
    let rendered = rendered(&args.setup.file, &platform, bootstrap, &mounted)?;
    if args.render {
        let stages = bootstrap::stages(&rendered);
        match args.output {
            DocumentFormat::Text => output::data(|out| write_yaml(out, &stages))?,
            DocumentFormat::Json => output::data(|out| write_stages(out, &stages))?,
        }
        return Ok(Exit::Done);
    }
    let phase1 = Phase1 {
        access: args.setup.cluster.access(),
        platform: &platform,
        files: &files,
        bootstrap,
        rendered: &rendered,
        mounted: &mounted,
        adoption: if args.adopt { Adoption::Allowed } else { Adoption::Refused },
    };
    let (access, credentials) = (&phase1.access, &args.setup.credentials.credentials);
    if let Some(exit) = preflight::first(&platform, access, credentials, phase1.adoption)? {
        return Ok(exit);
    }
    target::tell(access)?;
    let objects = runtime::block_on(async {
        if args.dry_run { phase1.try_out().await } else { phase1.install().await }
    })?;
    if args.dry_run || args.no_run {
        written::print(&objects, args.output)?;
    }
    if args.dry_run {
        output::note("dry run: nothing was changed");
        return Ok(Exit::Done);
    }
    output::note("bootstrap is complete");
    if args.no_run {
        let file = args.setup.file.display();
        output::note(&format!("next: tiphys deploy -f {file}"));
        return Ok(Exit::Done);
    }
    let file = args.setup.file.clone();
    let deployment = Deployment {
        access: phase1.access,
        plan: Arc::new(plan(&platform, &Scope::Platform)?),
        platform: Arc::new(platform),
        again: format!("tiphys deploy -f {}", file.display()),
        origin: (!args.allow_uncommitted).then_some(Origin::File(file)),
        prune: false,
        files: RunFiles::default(),
        format: RunFormat::Text,
        nodes: None,
        unattended: false,
    };
    deployment.run()
}

/// Where the files are seen from that a platform file names.
fn folder(file: &Path) -> &Path {
    if file.is_dir() { file } else { file.parent().unwrap_or(Path::new(".")) }
}

/// The primitives as they are to be, after whatever there is to say about them.
pub(crate) fn rendered(
    file: &Path,
    platform: &Platform,
    bootstrap: &Bootstrap,
    mounted: &Mounted,
) -> Result<Vec<Rendered>, Failure> {
    let prepared = bootstrap::prepare(folder(file), platform, bootstrap, mounted);
    let rendered = runtime::block_on(async { Ok(prepared.await?) })?;
    rendered.iter().flat_map(|one| &one.warnings).for_each(|warning| output::warning(warning));
    Ok(rendered)
}

/// Everything that Phase 1 needs.
pub(crate) struct Phase1<'a> {
    pub(crate) access: Access,
    pub(crate) platform: &'a Platform,
    /// What it was read from.
    pub(crate) files: &'a PlatformFiles,
    pub(crate) bootstrap: &'a Bootstrap,
    pub(crate) rendered: &'a [Rendered],
    pub(crate) mounted: &'a Mounted,
    pub(crate) adoption: Adoption,
}

impl Phase1<'_> {
    async fn try_out(&self) -> Result<Vec<Written>, Failure> {
        let client = self.access.client().await?;
        let installation = self.installation(&client);
        installation.check().await?;
        Ok(installation.try_out().await?.into_iter().map(Written::from).collect())
    }

    /// Installs the primitives, then the platform's part of them. The password that Argo CD was
    /// born with does not outlive this.
    pub(crate) async fn install(&self) -> Result<Vec<Written>, Failure> {
        let client = self.access.client().await?;
        let installation = self.installation(&client);
        installation.check().await?;
        let tell = |text: String| output::note(&text);
        if self.bootstrap.installer == Installer::Ansible {
            installation.run_pull_secrets().await?;
            let stages = bootstrap::stages(self.rendered);
            ansible::run(&self.access, &stages, self.adoption, self.bootstrap.timeout).await?;
        }
        // After Ansible, this finds everything done, and makes sure of it.
        let applied = installation.run(&tell).await?;
        let mut objects: Vec<Written> = applied.into_iter().map(Written::from).collect();
        if rotate_initial(&client, self.platform).await? == Rotation::Rotated {
            tell(format!(
                "replaced the initial password of `admin`: the new one is in the Secret {}",
                tiphys_cluster::names::admin(self.platform)
            ));
        }
        tell("configuring Argo CD for the platform".to_owned());
        // The tokens come last: whoever finds them finds everything else.
        let configured =
            configure(&client, self.platform, self.files, self.mounted, Mode::Apply).await?;
        for object in &configured.left_out {
            tell(object.to_string());
        }
        if let Some(given) = &configured.given_token {
            tell(given.to_string());
        }
        objects.extend(configured.changes.iter().map(Written::from));
        Ok(objects)
    }

    fn installation<'a>(&'a self, client: &'a tiphys_cluster::Client) -> Installation<'a> {
        Installation {
            client,
            platform: self.platform,
            bootstrap: self.bootstrap,
            rendered: self.rendered,
            mounted: self.mounted,
            adoption: self.adoption,
        }
    }
}

/// The objects as a stream of documents; comments say which stage each begins.
fn write_yaml(out: &mut dyn Write, stages: &[Stage]) -> io::Result<()> {
    for stage in stages {
        writeln!(out, "# {}", stage.name)?;
        for object in &stage.objects {
            let text = serde_saphyr::to_string(object).map_err(io::Error::other)?;
            writeln!(out, "---\n{}", text.trim_end())?;
        }
    }
    Ok(())
}

/// The same for programs: each stage is ready before the next one begins.
fn write_stages(mut out: &mut dyn Write, stages: &[Stage]) -> io::Result<()> {
    let stages: Vec<Value> = stages
        .iter()
        .map(|stage| json!({ "name": stage.name, "objects": stage.objects }))
        .collect();
    let manager = tiphys_cluster::names::BOOTSTRAP_MANAGER;
    let document = json!({ "fieldManager": manager, "stages": stages });
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)
}
