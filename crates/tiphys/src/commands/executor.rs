//! `tiphys executor`: what a container runs. Variables say what to do, and all that is printed is JSON.
//!
//! Nothing of the environment counts but the variables that are named here: the same call means the
//! same wherever it is made.

mod plugin;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Parser;
use tiphys_cluster::{KubeconfigSource, names};
use tiphys_model::Exit;
use tiphys_workflows::Owner;

use crate::args::{Action, Args, DeployArgs, ExecutorArgs, ExecutorPart, NodesGiven};
use crate::failure::Failure;
use crate::variables::first_line;
use crate::{commands, git, input, output, progress_file};

const KUBECONFIG_TEXT: &str = "TIPHYS_KUBECONFIG_BASE64";
const NAME_OF_PLATFORM: &str = "set it to the name of the platform";
const ACTIONS: &str = "set it to deploy, validate or teardown";
/// For a cluster that has no root app yet. What it names relative to itself is mounted beside it.
const MOUNTED_FILE: &str = "/var/run/tiphys/platform/platform.yaml";
/// How long other runs are waited for: as long as a run may take, unless its platform file says otherwise.
const LONGEST_WAIT: Duration = Duration::from_secs(3 * 60 * 60);
/// Where Kubernetes tells a pod its namespace.
pub(crate) const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

pub(crate) fn run(
    args: &ExecutorArgs,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<Exit, Failure> {
    output::speak_json();
    if args.part == Some(ExecutorPart::Plugin) {
        return plugin::run(&Variables(lookup));
    }
    let progress = lookup(progress_file::VARIABLE).map(PathBuf::from);
    let Order { action, kubeconfig } = Order::read(&Variables(lookup))?;
    let in_pod = matches!(kubeconfig, KubeconfigSource::Pod);
    match action {
        Action::Deploy(mut args) => {
            args.cluster.given = Some(kubeconfig);
            args.reports.progress = progress;
            begin_with_file(&mut args, Path::new(MOUNTED_FILE))?;
            patiently(|| commands::deploy::run(&args))
        }
        Action::Validate(mut args) => {
            args.look.cluster.given = Some(kubeconfig);
            commands::validate::run(&args)
        }
        Action::Teardown(mut args) => {
            args.cluster.given = Some(kubeconfig);
            args.reports.progress = progress;
            if in_pod && is_ours(fs::read_to_string(POD_NAMESPACE).unwrap_or_default().trim()) {
                args.keep_primitives = true;
                output::note("projects, accounts and primitives stay: this run needs them itself");
            }
            patiently(|| commands::teardown::run(&args))
        }
        other => Err(Failure::Bug(format!("the executor chose {other:?}"))),
    }
}

/// Nobody is there to try again when another run holds the platform. Each attempt begins with what Git has
/// by then.
fn patiently(run: impl Fn() -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    let began = Instant::now();
    loop {
        match run() {
            Err(failure) if failure.exit() == Exit::Held && began.elapsed() < LONGEST_WAIT => {
                output::note("another run holds the platform: waiting for it");
            }
            ended => return ended,
        }
    }
}

/// Whether a full teardown would delete the account and the namespace of a pod in this namespace.
fn is_ours(namespace: &str) -> bool {
    [names::NAMESPACE, names::TEARDOWN_NAMESPACE].contains(&namespace)
}

/// Deploys the mounted file, if there is one and the cluster does not know the platform yet.
fn begin_with_file(args: &mut DeployArgs, file: &Path) -> Result<(), Failure> {
    let named = &mut args.platform.named;
    let Some(name) = named.name.clone().filter(|_| file.exists()) else { return Ok(()) };
    if git::has_root_app(&args.cluster.access(), &named.namespace, &name)? {
        return Ok(());
    }
    let found = input::own_platform(Some(file))?.name;
    if found != name {
        let why = format!("{} is the file of the platform `{found}`", file.display());
        let next = "set it to that name, or mount the file of the other platform";
        return Err(wrong("TIPHYS_PLATFORM", &why, next));
    }
    named.name = None;
    args.platform.file = Some(file.to_owned());
    Ok(())
}

/// What the environment asks for.
#[derive(Debug)]
struct Order {
    action: Action,
    kubeconfig: KubeconfigSource,
}

impl Order {
    fn read(variables: &Variables<impl Fn(&str) -> Option<OsString>>) -> Result<Self, Failure> {
        let variable = |name: &str| variables.get(name);
        let action = variables.required("TIPHYS_ACTION", ACTIONS)?;
        let platform = variables.required("TIPHYS_PLATFORM", NAME_OF_PLATFORM)?;
        let format = match action.as_str() {
            "deploy" | "teardown" => "jsonl",
            "validate" => "json",
            other => {
                let why = format!("`{other}` is not an action of the executor");
                return Err(Failure::Usage {
                    what: format!("invalid TIPHYS_ACTION: {why}"),
                    next: ACTIONS.to_owned(),
                });
            }
        };
        let nodes = match variable("TIPHYS_ENGINE")?.as_deref() {
            None | Some("local") => None,
            Some("workflows") => Some(nodes(variables)?),
            Some(engine) => {
                let why = format!("`{engine}` is not an engine of this version");
                return Err(wrong("TIPHYS_ENGINE", &why, "set it to local, or unset it"));
            }
        };
        let unattended = match variable("TIPHYS_UNATTENDED")?.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                let why = format!("`{other}` is neither `true` nor `false`");
                let next = "set it to true if no person starts the deployment";
                return Err(wrong("TIPHYS_UNATTENDED", &why, next));
            }
        };
        let mut words = vec!["tiphys".to_owned(), action.clone(), format!("-o={format}")];
        words.push(format!("--platform={platform}"));
        words.extend(variable("TIPHYS_SCOPE")?.map(|scope| format!("--scope={scope}")));
        words.extend(variable("TIPHYS_NAMESPACE")?.map(|name| format!("--namespace={name}")));
        if action == "teardown" {
            if variable("TIPHYS_CONFIRM")?.as_ref() != Some(&platform) {
                let next = format!("set it to `{platform}` to remove this platform");
                return Err(wrong("TIPHYS_CONFIRM", "it is not the name of the platform", &next));
            }
            words.push("--yes".to_owned());
        }
        let args = Args::try_parse_from(words).map_err(|error| Failure::Usage {
            what: first_line(&error),
            next: "check the variables TIPHYS_*".to_owned(),
        })?;
        let kubeconfig = match (variable("KUBECONFIG")?, variable(KUBECONFIG_TEXT)?) {
            (Some(_), _) => KubeconfigSource::Usual(None),
            (None, Some(text)) => decoded(&text)?,
            (None, None) => KubeconfigSource::Pod,
        };
        let mut action = args.action;
        if let Action::Deploy(args) = &mut action {
            args.nodes = nodes;
            args.unattended = unattended;
        }
        Ok(Order { action, kubeconfig })
    }
}

/// The workflow that this is a step of, as the chart's template says it.
fn nodes(variables: &Variables<impl Fn(&str) -> Option<OsString>>) -> Result<NodesGiven, Failure> {
    const TEMPLATE: &str = "use the templates of the chart, or unset TIPHYS_ENGINE";
    let owner = Owner {
        name: variables.required("TIPHYS_WORKFLOW", TEMPLATE)?,
        uid: variables.required("TIPHYS_WORKFLOW_UID", TEMPLATE)?,
    };
    let pod = variables.required("TIPHYS_NODES", TEMPLATE)?;
    let pod = serde_json::from_str(&pod);
    let pod = pod.map_err(|error| wrong("TIPHYS_NODES", &error.to_string(), TEMPLATE))?;
    Ok(NodesGiven { owner, pod })
}

/// The environment, as far as it counts.
pub(super) struct Variables<L>(L);

impl<L: Fn(&str) -> Option<OsString>> Variables<L> {
    /// One that is empty counts as not set.
    pub(super) fn get(&self, name: &str) -> Result<Option<String>, Failure> {
        match (self.0)(name).map(OsString::into_string) {
            Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(Err(_)) => Err(wrong(name, "it is not UTF-8", "set it again")),
            None => Ok(None),
        }
    }

    pub(super) fn required(&self, name: &str, next: &str) -> Result<String, Failure> {
        self.get(name)?.ok_or_else(|| wrong(name, "it is not set", next))
    }
}

/// What was wrapped may have line breaks.
fn decoded(text: &str) -> Result<KubeconfigSource, Failure> {
    let text: String = text.split_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(text).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let next = "set it to the output of `base64 KUBECONFIG_FILE`";
    let text = text.ok_or_else(|| wrong(KUBECONFIG_TEXT, "it is not Base64 of a text", next))?;
    Ok(KubeconfigSource::Text { text: text.into(), place: KUBECONFIG_TEXT })
}

fn wrong(name: &str, why: &str, next: &str) -> Failure {
    Failure::Variable { name: name.to_owned(), why: why.to_owned(), next: next.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(variables: &[(&str, &str)]) -> Result<Order, Failure> {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Order::read(&Variables(|name: &str| found(name).map(|(_, value)| value.into())))
    }

    #[test]
    fn variables_say_what_to_do() {
        let order = order(&[
            ("TIPHYS_ACTION", "deploy"),
            ("TIPHYS_PLATFORM", "shop"),
            ("TIPHYS_SCOPE", "stack:data,app:web"),
            ("TIPHYS_NAMESPACE", "gitops"),
            ("TIPHYS_FILE", "/etc/passwd"),
            ("TIPHYS_TIMEOUT", "1s"),
        ]);
        let Order { action, kubeconfig } = order.unwrap();
        let Action::Deploy(args) = action else { panic!("{action:?}") };
        assert_eq!(args.platform.repeat(), " --platform shop -n gitops --scope stack:data,app:web");
        assert_eq!((args.timeout, args.platform.file), (None, None), "no variables of ours");
        assert!(matches!(kubeconfig, KubeconfigSource::Pod), "HOME does not count");
    }

    #[test]
    fn a_kubeconfig_comes_from_a_file_or_a_text() {
        let with = |name, value| {
            let order =
                order(&[("TIPHYS_ACTION", "validate"), ("TIPHYS_PLATFORM", "shop"), (name, value)]);
            order.map(|order| order.kubeconfig)
        };
        assert!(matches!(with("KUBECONFIG", "/k").unwrap(), KubeconfigSource::Usual(None)));
        let text = with(KUBECONFIG_TEXT, "YXBpVmVy\nc2lvbjogdjE=\n").unwrap();
        assert!(matches!(&text, KubeconfigSource::Text { .. }));
        assert!(!format!("{text:?}").contains("apiVersion"), "it holds credentials: {text:?}");
        let error = with(KUBECONFIG_TEXT, "?").unwrap_err();
        assert_eq!(error.exit(), Exit::Configuration);
    }

    #[test]
    fn a_teardown_wants_the_name_of_the_platform() {
        let teardown = |confirm: &str| {
            order(&[
                ("TIPHYS_ACTION", "teardown"),
                ("TIPHYS_PLATFORM", "shop"),
                ("TIPHYS_CONFIRM", confirm),
            ])
        };
        for wrong in ["", "yes", "shop2"] {
            assert!(teardown(wrong).is_err(), "{wrong}");
        }
        let Action::Teardown(args) = teardown("shop").unwrap().action else {
            panic!("no teardown")
        };
        assert!(args.yes);
    }
}
