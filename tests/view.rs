//! `packds view` serves a page about a pack, only on this machine and only with the key in its address.

#![cfg(test)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use packds_pixels::encode_png;
use serde_json::{Value, json};

use crate::support::{Folder, SamplePack, binary, pack, packds, signal, stderr, stdout, temp_dir};

/// A running `packds view`.
struct View {
    child: Child,
    /// `127.0.0.1:PORT`
    address: String,
    /// `/KEY/`
    root: String,
}

impl View {
    fn start(pack: &str) -> Self {
        Self::of(&[pack])
    }

    fn of(args: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(["view", "--no-browser"]).args(args).process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (address, key) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { child, address: address.to_owned(), root: format!("/{key}") }
    }

    /// The status and the body of the answer to a request.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), answer[end + 4..].to_vec())
    }

    fn get(&self, page: &str) -> (u16, Vec<u8>) {
        self.ask("GET", &format!("{}{page}", self.root), &self.address)
    }

    fn json(&self, page: &str) -> Value {
        let (status, body) = self.get(page);
        assert_eq!(status, 200, "{page}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    fn refusal(&self, page: &str) -> String {
        let (status, body) = self.get(page);
        assert_eq!(status, 400, "{page}");
        String::from_utf8(body).unwrap()
    }

    /// Sends a signal, and returns the exit status.
    fn stop(mut self, name: &str) -> Option<i32> {
        signal(&self.child, name);
        self.child.wait().unwrap().code()
    }
}

fn numbers(found: &Value) -> Vec<u64> {
    found["samples"].as_array().unwrap().iter().map(|one| one["sample"].as_u64().unwrap()).collect()
}

#[test]
fn the_page_lists_searches_and_draws_samples() {
    let (_dir, pack) = pack(&["--keep-order"]);
    let view = View::start(&pack);
    for page in ["", "page.css", "page.js"] {
        assert_eq!(view.get(page).0, 200, "{page}");
    }
    let about = view.json("pack");
    let n_samples = about["n_samples"].as_u64().unwrap();
    let classes = about["classes"].as_array().unwrap();
    assert_eq!(classes.iter().map(|class| class[1].as_u64().unwrap()).sum::<u64>(), n_samples);
    let all = view.json("samples?limit=500");
    assert_eq!(numbers(&all), (0..n_samples).collect::<Vec<_>>());
    // Every class has as many samples as its count says, and a search for its name finds as many.
    for (id, class) in classes.iter().enumerate() {
        let found = view.json(&format!("samples?class={id}"));
        assert_eq!(found["total"], class[1]);
        assert_eq!(view.json(&format!("samples?text={}", class[0].as_str().unwrap()))["total"], class[1]);
    }
    let part = view.json("samples?offset=1&limit=2");
    assert_eq!((numbers(&part), &part["total"]), (vec![1, 2], &all["total"]));
    let one = view.json("sample?sample=1");
    assert_eq!(one["path"], all["samples"][1]["path"]);
    let width = one["fields"].as_array().unwrap().iter().find(|field| field["name"] == "source_width").unwrap();
    let width = width["value"].as_str().unwrap();
    let found = view.json(&format!("samples?column=source_width&min={width}&max={width}&limit=500"));
    assert!(numbers(&found).contains(&1));
    assert_eq!(view.json("samples?column=source_width&min=1e9")["total"], 0);
    let (status, png) = view.get("picture?sample=0&field=image&side=32");
    assert_eq!((status, &png[..4]), (200, &b"\x89PNG"[..]));
    assert_eq!(view.stop("-INT"), Some(130));
}

/// The parts of a browser that the page needs. A search finds nothing, and too many requests end the program.
const BROWSER: &str = r#"
const elements = {};
const element = () => ({
  style: {setProperty() {}}, dataset: {}, append() {}, replaceChildren() {}, setAttribute() {}, addEventListener() {},
  querySelector: element, getBoundingClientRect: () => ({top: 0}),
});
globalThis.document = {
  getElementById: (id) => elements[id] ??= element(), createElement: element, querySelectorAll: () => [],
  documentElement: element(),
};
globalThis.innerWidth = globalThis.innerHeight = 800;
globalThis.addEventListener = () => {};
const pack = {name: "a", classes: [], columns: [], pictures: [], n_samples: 3, info: {n_samples: 3, stats: {}}};
let n_asked = 0;
globalThis.fetch = async (url) => {
  n_asked += 1;
  if (n_asked > 9) process.exit(1);
  return {ok: true, json: async () => url.startsWith("pack") ? pack : {total: 0, samples: []}};
};
process.on("exit", () => process.stdout.write(`${n_asked} requests: ${elements.more.textContent}`));
"#;

#[test]
fn a_search_that_finds_nothing_says_so_and_ends() {
    let page = include_str!("../crates/cli/src/view/page.js");
    let dir = temp_dir();
    let program = dir.path().join("page.js");
    std::fs::write(&program, format!("{BROWSER}\n{{\n{page}\n}}\n")).unwrap();
    // Without Node.js, the page cannot be run.
    let Ok(output) = Command::new("node").arg(&program).output() else { return };
    assert_eq!(stdout(&output), "2 requests: No samples match.", "{}", stderr(&output));
}

#[test]
fn the_page_names_mask_classes_and_substituted_samples() {
    let folder = Folder::new();
    for place in ["images", "masks"] {
        std::fs::create_dir(folder.path(place)).unwrap();
    }
    for name in ["a", "b"] {
        let pixels: Vec<u8> = (0..48).map(|i| i * 5).collect();
        std::fs::write(folder.path(&format!("images/{name}.png")), encode_png(4, 4, 3, &pixels).unwrap()).unwrap();
        let mask: Vec<u8> = (0..16).map(|i| if i < 9 { 0 } else { 7 }).collect();
        std::fs::write(folder.path(&format!("masks/{name}.png")), encode_png(4, 4, 1, &mask).unwrap()).unwrap();
    }
    std::fs::write(folder.path("images/b.png"), "none").unwrap();
    let ran = folder.packds(&["convert", ".", "out.pack", "--on-error", "substitute", "--keep-order"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let view = View::start(folder.path("out.pack").to_str().unwrap());
    let all = view.json("samples");
    let marks: Vec<&Value> = all["samples"].as_array().unwrap().iter().map(|one| &one["is_substituted"]).collect();
    assert_eq!(marks, [false, true]);
    let legends = &view.json("sample?sample=0")["legends"];
    let names: Vec<&Value> = legends["mask"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!((json!(names), &legends["image"]), (json!(["0", "7"]), &json!([])));
    assert!(legends["mask"][1]["color"].as_str().unwrap().starts_with('#'));
    assert_eq!(view.stop("-INT"), Some(130));
}

#[test]
fn words_of_a_file_replace_class_names_on_the_page() {
    let folder = Folder::new();
    SamplePack::default().write(&folder, "out.pack");
    std::fs::write(folder.path("names.txt"), "cat Katze\n").unwrap();
    let [pack, names] = ["out.pack", "names.txt"].map(|name| folder.path(name).display().to_string());
    let view = View::of(&[&pack, "--names", &names]);
    assert_eq!(view.json("pack")["classes"][0][0], "Katze");
    assert_eq!(view.json("samples?text=Katze")["total"], 4);
    assert_eq!(view.stop("-INT"), Some(130));
}

#[test]
fn only_the_chosen_samples_are_shown_and_counted() {
    let (_dir, pack) = pack(&["--keep-order"]);
    let view = View::of(&[&pack, "--where", "sample in (1, 4, 7)"]);
    assert_eq!(numbers(&view.json("samples?limit=500")), [1, 4, 7]);
    let about = view.json("pack");
    let counts = about["classes"].as_array().unwrap().iter().map(|class| class[1].as_u64().unwrap());
    assert_eq!((about["n_samples"].as_u64(), counts.sum::<u64>()), (Some(3), 3));
    let bins = about["columns"][0]["bins"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
    assert_eq!(bins.sum::<u64>(), 3);
    assert_eq!(view.stop("-INT"), Some(130));
}

#[test]
fn a_wrong_question_is_refused_with_the_reason() {
    let (_dir, pack) = pack(&[]);
    let view = View::start(&pack);
    assert!(view.refusal("sample?sample=999").starts_with("no sample 999: the pack has "));
    assert_eq!(view.refusal("sample"), "the parameter `sample` is missing");
    assert_eq!(view.refusal("samples?class=cat"), "class: expected a whole number, found `cat`");
    assert_eq!(view.refusal("samples?column=weight"), "no numeric column `weight`");
    assert_eq!(view.refusal("samples?column=source_width&min=x"), "min: expected a number, found `x`");
    assert_eq!(view.refusal("picture?sample=0&field=label"), "no field `label` that contains images");
    assert_eq!(view.stop("-TERM"), Some(143));
}

#[test]
fn only_get_requests_with_the_key_and_the_own_host_are_answered() {
    let (_dir, pack) = pack(&[]);
    let view = View::start(&pack);
    assert_eq!(view.ask("POST", &view.root, &view.address).0, 405);
    assert_eq!(view.ask("GET", &view.root, "example.com").0, 403);
    for path in ["/", "/pack", "/0123456789abcdef0123456789abcdef/pack"] {
        assert_eq!(view.ask("GET", path, &view.address).0, 404, "{path}");
    }
    assert_eq!(view.get("no-such-page").0, 404);
    assert_eq!(view.stop("-HUP"), Some(129));
}

#[test]
fn a_port_in_use_is_an_error_with_a_way_out() {
    let (_dir, pack) = pack(&[]);
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = packds(&["view", &pack, "--port", &port]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains(&format!("cannot listen on 127.0.0.1, port {port}")), "{message}");
    assert!(message.contains("--port"), "{message}");
}
