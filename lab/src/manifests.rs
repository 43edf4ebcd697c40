//! Manifests as upstream publishes them, and the images that they name.

use crate::error::LabError;

/// Lets the cluster use the images that it has: there is no registry to pull from.
pub(crate) fn without_pulling(manifests: &str) -> String {
    manifests.replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent")
}

/// The first image whose name has `part` in it.
pub(crate) fn image(manifests: &str, part: &str) -> Result<String, LabError> {
    let mut images = manifests.lines().filter_map(|line| line.trim().strip_prefix("image: "));
    let found = images.find(|image| image.contains(part)).map(str::to_owned);
    found.ok_or_else(|| LabError::Other(format!("the manifests name no image with {part} in it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_and_kept() {
        let manifests = "  image: host/argocd:1\n  imagePullPolicy: Always\n  image: host/dex:2\n";
        assert_eq!(image(manifests, "/dex:").unwrap(), "host/dex:2");
        assert!(image(manifests, "/redis:").is_err());
        assert_eq!(
            without_pulling(manifests),
            "  image: host/argocd:1\n  imagePullPolicy: IfNotPresent\n  image: host/dex:2\n"
        );
    }
}
