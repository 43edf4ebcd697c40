//! Real servers as processes of a test, and a way from the cluster to them.
//!
//! A pod in the network of the lab's machine stands for them: what is forwarded to a port of that
//! pod arrives at the same port here. So a test can start, freeze and stop what answers there.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tiphys_lab::packages;

use crate::Site;

const PACKAGES: [(&str, &str); 3] = [
    ("redis-server", "/usr/bin/redis-server"),
    ("nginx-light", "/usr/sbin/nginx"),
    ("postgresql", "/usr/lib/postgresql"),
];
const SERVICES: [(&str, &str); 3] = [
    ("redis-server", "redis-server.service"),
    ("nginx-light", "nginx.service"),
    ("postgresql", "postgresql.service"),
];

/// A server that a test has started.
pub struct Server {
    process: Child,
    _folder: TempDir,
}

/// Installs what the tests of criteria need.
pub fn install() {
    packages::ensure(&PACKAGES, &SERVICES).expect("Debian's packages can be installed");
}

/// A port that nobody listens on.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A Service that leads to ports of this machine, in a namespace of its own.
pub async fn service(site: &Site, namespace: &str, ports: &[u16]) {
    let namespaced = |name: &str| json!({ "name": name, "namespace": namespace });
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    }))
    .await;
    let mut metadata = namespaced("here");
    metadata["labels"] = json!({ "app": "here" });
    let container = json!({ "name": "pause", "image": tiphys_lab::PAUSE_IMAGE });
    site.apply(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": { "hostNetwork": true, "containers": [container] },
    }))
    .await;
    let ports: Vec<_> =
        ports.iter().map(|port| json!({ "name": format!("p{port}"), "port": port })).collect();
    site.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": namespaced("here"),
        "spec": { "selector": { "app": "here" }, "ports": ports },
    }))
    .await;
    let pods = site.objects("v1", "Pod", Some(namespace));
    let began = Instant::now();
    loop {
        let pod = pods.get("here").await.expect("the pod is there");
        let conditions = pod.data.pointer("/status/conditions").and_then(|c| c.as_array().cloned());
        let ready =
            conditions.iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True");
        if ready {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the pod is not ready: {:?}", pod.data);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

impl Server {
    #[must_use]
    pub fn redis(port: u16, options: &[&str]) -> Server {
        let mut command = Command::new("/usr/bin/redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(options);
        Server::start(command, folder())
    }

    /// Answers `/` with 200 and `/down` with 503, on the second port over TLS.
    #[must_use]
    pub fn nginx(port: u16, tls_port: u16) -> Server {
        let places = format!(
            "listen 127.0.0.1:{port};
    location / {{ return 200; }}
    location /down {{ return 503; }}"
        );
        Server::nginx_with(tls_port, "nobody.example", &places).0
    }

    /// The files of a folder over TLS, also after a redirect from `/moved/`; and the authority
    /// that has signed its certificate.
    #[must_use]
    pub fn files(tls_port: u16, root: &Path) -> (Server, String) {
        let places = format!(
            "location / {{ root {}; }}
    location /moved/ {{ rewrite ^/moved/(.*)$ https://127.0.0.1:{tls_port}/$1 redirect; }}",
            root.display()
        );
        Server::nginx_with(tls_port, "127.0.0.1", &places)
    }

    /// The files of a folder at an address of this machine, without TLS.
    #[must_use]
    pub fn plain_files(host: &str, port: u16, root: &Path) -> Server {
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(root, open).expect("our own folder");
        let places = format!("listen {host}:{port};\n    root {};", root.display());
        Server::nginx_at(host, free_port(), host, &places).0
    }

    /// Git over HTTPS at an address of this machine, for who has the password, and the authority
    /// that has signed its certificate.
    #[must_use]
    pub fn git(
        host: &str,
        tls_port: u16,
        repositories: &Path,
        login: (&str, &str),
    ) -> ([Server; 2], String) {
        packages::ensure(&[("fcgiwrap", "/usr/sbin/fcgiwrap")], &[("fcgiwrap", "fcgiwrap.socket")])
            .expect("Debian's packages can be installed");
        let home = folder();
        let (socket, users) = (home.path().join("socket"), home.path().join("users"));
        fs::write(&users, format!("{}:{{PLAIN}}{}\n", login.0, login.1)).expect("a file");
        let mut command = Command::new("/usr/sbin/fcgiwrap");
        command.arg("-s").arg(format!("unix:{}", socket.display()));
        let places = format!(
            "auth_basic git; auth_basic_user_file {users};
    location ~ ^/git(/.*)$ {{
      fastcgi_pass unix:{socket};
      fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
      fastcgi_param GIT_PROJECT_ROOT {root};
      fastcgi_param GIT_HTTP_EXPORT_ALL 1;
      fastcgi_param PATH_INFO $1;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
      fastcgi_param REMOTE_USER $remote_user;
    }}",
            users = users.display(),
            socket = socket.display(),
            root = repositories.display(),
        );
        let scripts = Server::start(command, home);
        let (nginx, authority) = Server::nginx_at(host, tls_port, host, &places);
        ([nginx, scripts], authority)
    }

    fn nginx_with(tls_port: u16, name: &str, places: &str) -> (Server, String) {
        Server::nginx_at("127.0.0.1", tls_port, name, places)
    }

    fn nginx_at(address: &str, tls_port: u16, name: &str, places: &str) -> (Server, String) {
        let folder = folder();
        let at = folder.path().display();
        let key = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("the file can be written");
        };
        write("tls.crt", &key.cert.pem());
        write("tls.key", &key.signing_key.serialize_pem());
        write(
            "nginx.conf",
            &format!(
                "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;
user root;
events {{}}
http {{
  access_log off;
  client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at};
  uwsgi_temp_path {at}; scgi_temp_path {at};
  server {{
    listen {address}:{tls_port} ssl;
    ssl_certificate {at}/tls.crt;
    ssl_certificate_key {at}/tls.key;
    {places}
  }}
}}
"
            ),
        );
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-c").arg(folder.path().join("nginx.conf"));
        (Server::start(command, folder), key.cert.pem())
    }

    /// A database; as a standby that takes no queries it is there, and lets nobody in.
    #[must_use]
    pub fn postgres(port: u16, standby: bool) -> Server {
        let folder = folder();
        let data = folder.path().join("data");
        run(Command::new("install").args(["-d", "-o", "postgres"]).arg(&data));
        run(as_postgres("initdb").args(["-A", "trust", "-D"]).arg(&data));
        if standby {
            let signal = data.join("standby.signal");
            fs::write(&signal, "").expect("the file can be written");
            run(Command::new("chown").arg("postgres").arg(&signal));
        }
        let mut command = as_postgres("postgres");
        command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
        let settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "hot_standby=off",
        ];
        for setting in settings {
            command.args(["-c", setting]);
        }
        Server::start(command, folder)
    }

    fn start(mut command: Command, folder: TempDir) -> Server {
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("the server can be started");
        Server { process, _folder: folder }
    }

    /// From now on connections are accepted, and nothing is answered.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        run(Command::new("kill").args(["-s", signal, &self.process.id().to_string()]));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Postgres ends its children with this one, and the others have none.
        let id = self.process.id().to_string();
        Command::new("kill").args(["-s", "CONT", &id]).status().ok();
        Command::new("kill").args(["-s", "INT", &id]).status().ok();
        let began = Instant::now();
        while !matches!(self.process.try_wait(), Ok(Some(_))) {
            // fcgiwrap waits for one more request if the signal comes at the wrong moment.
            if began.elapsed() > Duration::from_secs(10) {
                self.process.kill().ok();
                self.process.wait().ok();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Where a server of another user can keep its files.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("our own folder");
    folder
}

/// PostgreSQL does not let root run it.
fn as_postgres(program: &str) -> Command {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let newest = versions.filter_map(|entry| Some(entry.ok()?.path())).max().expect("a version");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(newest.join(Path::new("bin")).join(program));
    command.env("LC_ALL", "C").current_dir("/");
    command
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
