//! Shared by end-to-end tests: running the command, temporary folders, packs made without `convert`.

#![cfg(test)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use packds_format::{
    BlockBuilder, Classes, DType, Field, FieldStats, FooterParts, LabelStats, Pack, PackOptions, PackWriter, Paths,
    Role, Schema, Stats, Uuid, label_icc,
};
use tempfile::TempDir;

/// The output and exit status of the command.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Stdout of a command that must succeed with empty stderr.
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }

    /// Stdout as a single JSON document.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A temporary folder in which the command runs.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command, to run in this folder. Names in arguments are relative to it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packds"));
        command.args(args).current_dir(self.dir.path());
        command.env_remove("TERM_PROGRAM").env_remove("KITTY_WINDOW_ID").stdin(Stdio::null());
        command
    }

    /// Runs `packds` with these arguments.
    pub(crate) fn packds(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Every file below a folder, with relative paths, in order.
    pub(crate) fn files(&self, name: &str) -> Vec<String> {
        fn collect(dir: &Path, base: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, base, out);
                } else {
                    out.push(path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let (base, mut out) = (self.path(name), Vec::new());
        collect(&base, &base, &mut out);
        out.sort();
        out
    }

    /// Changes one byte of a file.
    pub(crate) fn flip(&self, name: &str, offset: u64) {
        let mut bytes = fs::read(self.path(name)).unwrap();
        bytes[usize::try_from(offset).unwrap()] ^= 0x10;
        fs::write(self.path(name), bytes).unwrap();
    }
}

/// A pack to write, with alternating classes, one path per sample, and images of 6 x 4 pixels.
pub(crate) struct SamplePack {
    pub(crate) n_samples: u32,
    pub(crate) chunk_samples: u32,
    pub(crate) classes: Vec<String>,
    /// Each sample's path. `CLASS/img-NUMBER.png` if `None`. An empty list means that the pack has no paths.
    pub(crate) paths: Option<Vec<Vec<u8>>>,
    /// Fields of the body. The first one is the image.
    pub(crate) body: Vec<Field>,
}

/// Width and height of the images of a [`SamplePack`].
pub(crate) const SIZE: (u32, u32) = (6, 4);

impl Default for SamplePack {
    fn default() -> Self {
        let (width, height) = SIZE;
        let mut image = Field::tensor("image", DType::U8, &[height.into(), width.into(), 3]);
        image.layout = Some("hwc".to_owned());
        image.color = Some("rgb".to_owned());
        Self {
            n_samples: 10,
            chunk_samples: 4,
            classes: ["cat", "dog", "sea lion"].map(str::to_owned).to_vec(),
            paths: None,
            body: vec![image.with_role(Role::Image)],
        }
    }
}

impl SamplePack {
    /// Byte `i` of sample `sample`'s item of any field.
    pub(crate) fn byte(sample: u32, i: usize) -> u8 {
        u8::try_from((usize::try_from(sample).unwrap() * 31 + i * 7) % 251).unwrap()
    }

    pub(crate) fn path(&self, sample: u32) -> Vec<u8> {
        match &self.paths {
            Some(paths) => paths[usize::try_from(sample).unwrap()].clone(),
            None => format!("{}/img-{sample}.png", self.class(sample)).into_bytes(),
        }
    }

    pub(crate) fn class(&self, sample: u32) -> &str {
        let n = u32::try_from(self.classes.len()).unwrap();
        &self.classes[usize::try_from(sample % n).unwrap()]
    }

    fn footer(&self) -> FooterParts {
        let n_classes = u32::try_from(self.classes.len().max(1)).unwrap();
        let labels = || (0..self.n_samples).map(|sample| i64::from(sample % n_classes));
        let count = |class| labels().filter(|label| *label == class).count();
        let counts = (0..i64::from(n_classes)).map(|class| u64::try_from(count(class)).unwrap());
        let mut stats = Stats::default();
        let pixels = FieldStats {
            n_pixels: 240,
            mean: vec![0.5, 0.25, 0.125],
            std: vec![0.1, 0.2, 0.3],
            min: vec![0; 3],
            max: vec![250; 3],
            histogram: vec![vec![0; 256]; 3],
        };
        stats.fields.insert("image".to_owned(), pixels);
        let icc = label_icc(labels(), self.chunk_samples);
        stats.labels.insert("label".to_owned(), LabelStats { icc });
        let provenance = serde_json::json!({
            "tool": "packds 0.1.0",
            "source": { "kind": "image_folder", "n_files": 11, "ignored": 1 },
            "options": { "filter": "bilinear" },
            "order": { "kind": "kept" },
            "skipped": [{ "path": "cat/bad.png", "reason": "empty file" }],
        });
        let mut paths = Paths::default();
        if self.paths.as_ref().is_none_or(|paths| !paths.is_empty()) {
            (0..self.n_samples).for_each(|sample| paths.push(&self.path(sample)).unwrap());
        }
        FooterParts { stats, classes: self.names(counts.collect()), provenance: provenance.to_string(), paths }
    }

    /// Class names and counts, unless the classes have no names.
    fn names(&self, counts: Vec<u64>) -> Vec<Classes> {
        let names = self.classes.clone();
        let classes = Classes { field: "label".to_owned(), names, counts };
        if classes.names.is_empty() { Vec::new() } else { vec![classes] }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut fields = self.body.clone();
        let (label, n_body) = (fields.len(), fields.len());
        fields.push(Field::column("label", DType::I32, &[]).with_role(Role::Label));
        fields.push(Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c));
        let mut options = PackOptions::new(Schema::new(fields).unwrap(), self.chunk_samples);
        options.pack_uuid = Uuid([0xab; 16]);
        options.dataset_uuid = Uuid([0xcd; 16]);
        let mut writer = PackWriter::new(Vec::new(), options).unwrap();
        let mut block = BlockBuilder::new(writer.schema());
        let n_classes = u32::try_from(self.classes.len().max(1)).unwrap();
        for sample in 0..self.n_samples {
            for field in 0..n_body {
                match self.body[field].item_bytes() {
                    Some(_) => {
                        let item = block.tensor_mut(field).unwrap();
                        item.iter_mut().enumerate().for_each(|(i, byte)| *byte = Self::byte(sample, i));
                    }
                    None => block.item_mut(field).unwrap().extend(format!("[{sample}]").bytes()),
                }
            }
            let id = i32::try_from(sample % n_classes).unwrap();
            block.set_column(label, &id.to_le_bytes()).unwrap();
            block.finish_sample().unwrap();
            if writer.block_room(block.n_samples()) == 0 {
                writer.append(block.finish().unwrap()).unwrap();
                block = BlockBuilder::new(writer.schema());
            }
        }
        writer.append(block.finish().unwrap()).unwrap();
        writer.finish(self.footer()).unwrap().0
    }

    /// Writes the pack and opens it, so that tests can find positions in it.
    pub(crate) fn write(&self, folder: &Folder, name: &str) -> Pack<Vec<u8>> {
        let bytes = self.bytes();
        fs::write(folder.path(name), &bytes).unwrap();
        Pack::open(bytes).unwrap()
    }
}

/// The path of the command.
pub(crate) fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_packds"))
}

/// Runs `packds` with these arguments in the current folder.
pub(crate) fn packds(args: &[&str]) -> Output {
    Command::new(binary()).args(args).stdin(Stdio::null()).output().unwrap()
}

/// The provenance that a pack stores.
pub(crate) fn provenance<D: AsRef<[u8]>>(pack: &Pack<D>) -> serde_json::Value {
    serde_json::from_str(&pack.provenance().unwrap()).unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file or folder in `fixtures/`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fs::canonicalize(fixtures).unwrap().join(name)
}

pub(crate) fn temp_dir() -> TempDir {
    TempDir::new().unwrap()
}

/// A pack of the fixtures' images, and its folder.
pub(crate) fn pack(options: &[&str]) -> (TempDir, String) {
    let dir = temp_dir();
    let path = dir.path().join("a.pack").to_str().unwrap().to_owned();
    let images = fixture("images/same_size");
    let mut args = vec!["convert", images.to_str().unwrap(), &path];
    args.extend(options);
    let result = packds(&args);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    (dir, path)
}

/// A new folder of links to one photograph.
pub(crate) fn many_links(folder: &Path, n: usize) {
    fs::create_dir_all(folder).unwrap();
    let image = fs::canonicalize(fixture("images/folder/cat/a.jpg")).unwrap();
    (0..n).for_each(|i| symlink(&image, folder.join(format!("{i:05}.jpg"))).unwrap());
}

/// Sends a signal, such as `-INT`.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}
