//! A Git server with an API, webhooks and commit statuses: Gitea, as a process of a test. Its API of
//! statuses and its webhooks are those of GitHub.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tiphys_install::https::{Authorization, Https};
use tiphys_lab::Gitea;
use tiphys_lab::git::GitServer;

use crate::servers::free_port;

/// Owns all repositories, and may do everything.
const OWNER: &str = "lab";
/// Until it has made its database.
const START: Duration = Duration::from_secs(120);
const MOST_BYTES: usize = 1 << 20;

pub struct Forge {
    process: Child,
    address: String,
    token: String,
    authority: String,
    client: Https,
    repositories: PathBuf,
    folder: TempDir,
}

impl Forge {
    /// At the address that the cluster reaches the lab's Git server at.
    pub async fn start(git: &GitServer) -> Forge {
        let gitea = Gitea::build(&crate::figure).expect("Gitea can be built");
        let folder = TempDir::new().expect("a folder");
        let (host, port) = (git.host().to_owned(), free_port());
        let key = rcgen::generate_simple_self_signed([host.clone()]).expect("a certificate");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("the file can be written");
        };
        write("tls.crt", &key.cert.pem());
        write("tls.key", &key.signing_key.serialize_pem());
        write("app.ini", &settings(folder.path(), &gitea.files, &host, port));
        let run = |args: &[&str]| {
            let output = command(&gitea.program, folder.path()).args(args).output();
            let output = output.expect("Gitea can be started");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{args:?}: {stderr}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        run(&["migrate"]);
        let user = ["admin", "user", "create", "--username", OWNER, "--email", "lab@tiphys.dev"];
        let more = ["--random-password", "--must-change-password=false", "--admin"];
        run(&[&user[..], &more].concat());
        let token = ["admin", "user", "generate-access-token", "--username", OWNER, "--raw"];
        let said = run(&[&token[..], &["--scopes", "all"]].concat());
        // Behind what it logs.
        let token = said.split_whitespace().last().expect("a token").to_owned();
        let mut web = command(&gitea.program, folder.path());
        let process = web.arg("web").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let authority = key.cert.pem();
        let forge = Forge {
            process: process.expect("Gitea can be started"),
            address: format!("https://{host}:{port}"),
            token,
            client: Https::new(Some(&authority)).expect("a client"),
            authority,
            repositories: git.folder().expect("the lab's repositories").to_owned(),
            folder,
        };
        forge.until_it_answers().await;
        forge
    }

    async fn until_it_answers(&self) {
        let began = Instant::now();
        let url = self.api("version");
        while self.client.look(&url, None).await.is_err() {
            assert!(began.elapsed() < START, "Gitea does not answer at {url}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Of its API, as a platform file names it.
    #[must_use]
    pub fn api_address(&self) -> String {
        format!("{}/api/v1", self.address)
    }

    #[must_use]
    pub fn repository(&self, name: &str) -> String {
        format!("{}/{OWNER}/{name}.git", self.address)
    }

    /// Credentials as `configure` takes them: who may read the repositories and set statuses.
    pub fn write_credentials(&self, folder: &Path) {
        let git = folder.join("git");
        fs::create_dir_all(&git).expect("a folder");
        let files = [
            ("username", OWNER),
            ("password", &self.token),
            ("ca.crt", &self.authority),
            ("status-token", &self.token),
        ];
        for (name, text) in files {
            fs::write(git.join(name), text).expect("a file");
        }
    }

    pub async fn create(&self, name: &str) {
        self.post("user/repos", &json!({ "name": name, "default_branch": "main" })).await;
    }

    /// Has it call an address after each push.
    pub async fn call_after_pushes(&self, name: &str, url: &str, secret: &str) {
        let config = json!({ "url": url, "content_type": "json", "secret": secret });
        let hook = json!({ "type": "gitea", "config": config, "events": ["push"], "active": true });
        self.post(&format!("repos/{OWNER}/{name}/hooks"), &hook).await;
    }

    /// What a repository of the lab has, in the one of the same name here.
    pub fn push(&self, git: &GitServer, name: &str) {
        let url =
            self.repository(name).replace("https://", &format!("https://{OWNER}:{}@", self.token));
        let mut push = git.git();
        push.current_dir(self.repositories.join(format!("{name}.git")))
            .env("GIT_SSL_CAINFO", self.folder.path().join("tls.crt"))
            .args(["push", "--quiet", "--force", &url, "main"]);
        let output = push.output().expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Of a commit, the oldest first: context, state and description.
    pub async fn statuses(&self, name: &str, commit: &str) -> Vec<[String; 3]> {
        let path = format!("repos/{OWNER}/{name}/commits/{commit}/statuses?sort=oldest&limit=50");
        let answer = self.client.get(&self.api(&path), None, Some(&self.login()), MOST_BYTES).await;
        let answer = answer.expect("an answer");
        assert!(answer.status.is_success(), "{}: {path}", answer.status);
        let mut statuses: Vec<Value> = serde_json::from_slice(&answer.body).expect("a list");
        statuses.sort_by_key(|status| status["id"].as_u64());
        let text =
            |status: &Value, field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let fields = ["context", "status", "description"];
        statuses.iter().map(|status| fields.map(|field| text(status, field))).collect()
    }

    async fn post(&self, path: &str, body: &Value) {
        let answer = self.client.post(&self.api(path), &self.login(), &body.to_string()).await;
        let answer = answer.expect("an answer");
        let said = String::from_utf8_lossy(&answer.body);
        assert!(answer.status.is_success(), "{path}: {} {said}", answer.status);
    }

    fn api(&self, path: &str) -> String {
        format!("{}/{path}", self.api_address())
    }

    fn login(&self) -> Authorization {
        Authorization::Bearer(SecretString::from(self.token.clone()))
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("GITEA_WORK_DIR", folder).env("HOME", folder);
    command.arg("--config").arg(folder.join("app.ini"));
    command
}

fn settings(folder: &Path, files: &Path, host: &str, port: u16) -> String {
    format!(
        "\
RUN_USER = root
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = {folder}
[server]
PROTOCOL = https
HTTP_ADDR = {host}
HTTP_PORT = {port}
ROOT_URL = https://{host}:{port}/
CERT_FILE = {folder}/tls.crt
KEY_FILE = {folder}/tls.key
STATIC_ROOT_PATH = {files}
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[repository]
ROOT = {folder}/repositories
[security]
INSTALL_LOCK = true
SECRET_KEY = lab
[webhook]
ALLOWED_HOST_LIST = *
[log]
LEVEL = Error
",
        folder = folder.display(),
        files = files.display(),
    )
}
