//! Which versions of Argo CD are supported.

use std::fmt;

use crate::preflight::Version;

const OLDEST: Version = Version::new(3, 2, 0);
const NEWEST: Version = Version::new(3, 5, 0);

/// Whether a version of Argo CD is supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    Supported(Version),
    /// Older or newer than the supported ones.
    Unsupported(Version),
    /// There is no version in what was read.
    Unknown(String),
}

impl Support {
    /// From what Argo CD says of itself, such as `v3.5.6+d1b39d1`. A patch release does not matter.
    #[must_use]
    pub fn of(said: &str) -> Self {
        let Some(version) = Version::find(said) else { return Support::Unknown(said.to_owned()) };
        let minor = Version::new(version.major, version.minor, 0);
        if (OLDEST..=NEWEST).contains(&minor) {
            Support::Supported(version)
        } else {
            Support::Unsupported(version)
        }
    }

    /// From the image that is run. Only its tag counts: a registry may have a version in its name.
    #[must_use]
    pub fn of_image(image: &str) -> Self {
        let named = image.split('@').next().unwrap_or_default();
        let name = named.rsplit('/').next().unwrap_or_default();
        match name.split_once(':') {
            Some((_, tag)) => Self::of(tag),
            None => Support::Unknown(image.to_owned()),
        }
    }

    /// What a person should know before relying on it.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Support::Supported(_) => None,
            Support::Unsupported(_) | Support::Unknown(_) => {
                Some(format!("{self} is not supported: use {}", supported()))
            }
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Support::Supported(version) | Support::Unsupported(version) => {
                write!(f, "Argo CD {version}")
            }
            Support::Unknown(said) => write!(f, "Argo CD with an unknown version ({said})"),
        }
    }
}

/// The supported versions, in words.
#[must_use]
pub fn supported() -> String {
    format!("{OLDEST} to {NEWEST}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_release_of_a_supported_version_is_supported() {
        let (supported, unsupported) = (Support::Supported, Support::Unsupported);
        for (said, support) in [
            ("v3.2.0", supported(Version::new(3, 2, 0))),
            ("v3.2.6+unknown", supported(Version::new(3, 2, 6))),
            ("v3.5.99", supported(Version::new(3, 5, 99))),
            ("v3.1.9", unsupported(Version::new(3, 1, 9))),
            ("v3.6.0-rc1", unsupported(Version::new(3, 6, 0))),
            ("v2.14.2", unsupported(Version::new(2, 14, 2))),
            ("v4.3.0", unsupported(Version::new(4, 3, 0))),
            ("latest", Support::Unknown("latest".to_owned())),
        ] {
            assert_eq!(Support::of(said), support, "{said}");
        }
    }

    #[test]
    fn of_an_image_only_the_tag_counts() {
        let digest = "@sha256:0123";
        for (image, support) in [
            ("quay.io/argoproj/argocd:v3.5.6", Support::Supported(Version::new(3, 5, 6))),
            ("10.3.4.5:5000/argocd:v3.6.0", Support::Unsupported(Version::new(3, 6, 0))),
            ("argocd:v3.2.6@sha256:0123", Support::Supported(Version::new(3, 2, 6))),
            ("10.3.4.5:5000/argocd", Support::Unknown("10.3.4.5:5000/argocd".to_owned())),
            ("argocd@sha256:0123", Support::Unknown(format!("argocd{digest}"))),
        ] {
            assert_eq!(Support::of_image(image), support, "{image}");
        }
    }

    #[test]
    fn what_is_not_supported_is_told() {
        assert_eq!(Support::of("v3.5.6").warning(), None);
        assert_eq!(
            Support::of("v3.6.1").warning().unwrap(),
            "Argo CD 3.6.1 is not supported: use 3.2 to 3.5"
        );
        assert_eq!(
            Support::of("dev").warning().unwrap(),
            "Argo CD with an unknown version (dev) is not supported: use 3.2 to 3.5"
        );
    }
}
