//! The kubeconfig of a lab, and its one credential.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use crate::error::LabError;
use crate::home::Home;

/// A random token for the administrator, the same until the lab goes down.
pub(crate) fn token(home: &Home) -> Result<String, LabError> {
    let path = home.path("pki/admin.token");
    if let Ok(token) = fs::read_to_string(&path) {
        return Ok(token);
    }
    let token = random()?;
    home.write("pki/admin.token", &token)?;
    home.write("pki/tokens.csv", format!("{token},admin,admin,\"system:masters\"\n"))?;
    Ok(token)
}

/// Something that nobody guesses.
pub(crate) fn random() -> Result<String, LabError> {
    let mut bytes = [0u8; 24];
    let source = "/dev/urandom";
    fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(LabError::file("could not read", source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) fn write(home: &Home, server: &str) -> Result<(), LabError> {
    let token = token(home)?;
    let authority = home.path("pki/ca.crt");
    let text = format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: lab\n  cluster:\n    server: {server}\n    certificate-authority: {}\n\
         users:\n\
         - name: admin\n  user:\n    token: {token}\n\
         contexts:\n\
         - name: lab\n  context: {{ cluster: lab, user: admin }}\n\
         current-context: lab\n",
        authority.display(),
    );
    let path = home.write("admin.kubeconfig", text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
        .map_err(LabError::file("could not protect", &path))
}
