//! Mirrors of registries, for sites that cannot reach the public ones.

/// Images whose name begins with `from` are had under `to` instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub from: String,
    pub to: String,
}

impl Mirror {
    /// Where the mirror has an image; `None` if it does not mirror the image's registry.
    #[must_use]
    pub fn place_of(&self, image: &str) -> Option<String> {
        let full = full_name(image);
        let rest = below(&full, &self.from)?;
        Some(format!("{}{rest}", self.to.trim_end_matches('/')))
    }

    /// Whether an image is had from this mirror: under its own name, or under the mirror's.
    #[must_use]
    pub fn covers(&self, image: &str) -> bool {
        let full = full_name(image);
        below(&full, &self.from).is_some() || below(&full, &self.to).is_some()
    }
}

/// What follows a prefix of whole parts.
fn below<'a>(image: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = image.strip_prefix(prefix.trim_end_matches('/'))?;
    rest.starts_with(['/', ':', '@']).then_some(rest)
}

/// What container engines understand by a short name.
fn full_name(image: &str) -> String {
    match image.split_once('/') {
        None => format!("docker.io/library/{image}"),
        Some((host, _)) if host.contains('.') || host.contains(':') || host == "localhost" => {
            image.to_owned()
        }
        Some(_) => format!("docker.io/{image}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_has_what_is_below_its_prefix_in_whole_parts() {
        let of = |from: &str| Mirror { from: from.to_owned(), to: "m.example:5000/x/".to_owned() };
        for (from, image, place) in [
            ("quay.io", "quay.io/a/b:1", Some("m.example:5000/x/a/b:1")),
            ("quay.io/", "quay.io/a/b@sha256:0", Some("m.example:5000/x/a/b@sha256:0")),
            ("quay.io/a/b", "quay.io/a/b:1", Some("m.example:5000/x:1")),
            ("quay.io", "quay.io.example/a:1", None),
            ("quay.io/a", "quay.io/ab:1", None),
            ("docker.io", "redis:8", Some("m.example:5000/x/library/redis:8")),
            ("docker.io", "grafana/loki:3", Some("m.example:5000/x/grafana/loki:3")),
            ("docker.io", "localhost/a:1", None),
        ] {
            let mirror = of(from);
            assert_eq!(mirror.place_of(image).as_deref(), place, "{from} {image}");
            assert_eq!(mirror.covers(image), place.is_some(), "{from} {image}");
        }
    }

    #[test]
    fn an_image_that_names_the_mirror_needs_no_other() {
        let mirror = Mirror { from: "quay.io".to_owned(), to: "m.example/quay".to_owned() };
        assert!(mirror.covers("m.example/quay/a:1"));
        assert_eq!(mirror.place_of("m.example/quay/a:1"), None);
        assert!(!mirror.covers("m.example/other/a:1"));
    }
}
