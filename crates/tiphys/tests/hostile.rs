//! Text of others on a real terminal: it moves no cursor, clears nothing, and is no line of ours.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

#[path = "common/terminal.rs"]
mod terminal;

use std::fs;

use crate::terminal::{nonzero, on_a_terminal};

/// Title, clear, home, up, overwrite, a forged line, turned writing, the C1 forms.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[1;1H\u{1b}[5A\u{1b}[8m\rerror: forged\n\
                       error: forged\u{85}\u{202e}x\u{9b}2J\u{9d}0;owned\u{9c}";

const SCRIPT: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: { name: argocd-cm }
data:
  resource.customizations.health.acme.org_Widget: |
    return { status = "Degraded", message = obj.status.message }
"#;

/// As YAML writes it, with every character escaped.
fn quoted(text: &str) -> String {
    let escaped: String = text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
    format!("\"{escaped}\"")
}

#[test]
fn hostile_text_does_nothing_to_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
    let hostile = quoted(HOSTILE);
    write("argocd-cm.yaml", SCRIPT.to_owned());
    write(
        "object.yaml",
        format!(
            "apiVersion: acme.org/v1\nkind: Widget\n\
             metadata: {{ name: {hostile}, namespace: {hostile} }}\n\
             status: {{ message: {hostile} }}\n"
        ),
    );
    write(
        "platform.yaml",
        format!(
            "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{ name: {hostile} }}\n\
             spec: {{ stacks: [{{ name: s, apps: [{{ name: a }}] }}] }}\n{hostile}: 1\n"
        ),
    );
    write("kubeconfig", "apiVersion: v1\nkind: Config\n".to_owned());
    let no_context =
        ["status", "--platform", "a", "--kubeconfig", "kubeconfig", "--context", HOSTILE];
    for (args, code, said) in [
        (&["health", "object.yaml", "--argocd-cm", "argocd-cm.yaml"][..], 0, "Widget a"),
        (&["plan", "-f", "platform.yaml"], 3, "problems"),
        (&["plan", "-f", HOSTILE], 3, "error: "),
        (&no_context, 3, "error: "),
    ] {
        let (rows, columns) = (100, 1000);
        let (stream, ended) = on_a_terminal(directory.path(), rows, columns, args);
        let mut screen = vt100::Parser::new_with_callbacks(
            nonzero(rows),
            nonzero(columns),
            0,
            Titles::default(),
        );
        screen.process(b"what was there before\r\n");
        screen.process(&stream);
        let contents = screen.screen().contents();
        let lines: Vec<&str> = contents.lines().collect();
        assert_eq!(ended, code, "{args:?}:\n{contents}");
        assert_eq!(lines[0], "what was there before", "{args:?}:\n{contents}");
        assert!(contents.contains(said), "{args:?}:\n{contents}");
        let forged = lines.iter().find(|line| line.starts_with("error: forged"));
        assert_eq!(forged, None, "{args:?}:\n{contents}");
        assert_eq!(screen.callbacks().0, Vec::<Vec<u8>>::new(), "{args:?}");
        // Everything that was written is still to be seen, and the cursor is below it.
        let (row, column) = screen.screen().cursor_position();
        assert_eq!((usize::from(row), column), (lines.len(), 0), "{args:?}:\n{contents}");
        let commands = stream.windows(2).filter(|pair| *pair == b"\x1b[").count();
        let colours = colours(&stream);
        assert_eq!(commands, colours, "{args:?}: {:?}", String::from_utf8_lossy(&stream));
    }
}

/// How many escape sequences are colours.
fn colours(stream: &[u8]) -> usize {
    let text = String::from_utf8_lossy(stream);
    let parts = text.split("\u{1b}[").skip(1);
    let is_colour = |part: &&str| {
        part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    };
    parts.filter(is_colour).count()
}

/// The titles that a terminal was given.
#[derive(Default)]
struct Titles(Vec<Vec<u8>>);

impl vt100::Callbacks for Titles {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(title.to_owned());
    }
}
