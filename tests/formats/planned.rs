//! Sources that are unpacked while they are listed, planned and built shard by shard. A shard reads only what it needs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use super::{python, python_of_peers};
use crate::distributed::assert_planned;
use crate::support::Folder;

/// The sources that a script writes.
fn written(script: &str) -> Folder {
    let folder = Folder::new();
    python(&[script, "write", folder.path("").to_str().unwrap()]);
    folder
}

fn plan(folder: &Folder, source: &str, options: &[&str]) {
    let options =
        [&["plan", source, "-o", "p.plan", "--force", "-q", "--chunk", "2", "--shards", "3"], options].concat();
    let ran = folder.packds(&options);
    assert_eq!(ran.code, 0, "{source}: {}", ran.stderr);
}

fn build(folder: &Folder, shard: &str) -> crate::support::Ran {
    folder.packds(&["build", "p.plan", "--shard", shard, "-o", "p.packs", "--json"])
}

#[test]
fn archives_of_images_masks_and_tables() {
    let folder = written("archive.py");
    for source in [
        "classes.zip",
        "stored.zip",
        "bzip2.zip",
        "classes.tar",
        "classes.tar.gz",
        "classes.tar.zst",
        "download",
        "pairs.zip",
        "pairs.tar",
        "pairs.tar.gz",
        "beside.zip",
        "beside.tar.gz",
    ] {
        assert_planned(&folder, source, &[]);
    }
    assert_planned(&folder, "classes.zip/pets", &["--keep-order"]);
    assert_planned(&folder, "splits.tar.gz", &["--split", "train"]);
}

#[test]
fn archives_that_cannot_be_planned_are_refused_with_commands_that_help() {
    let folder = written("archive.py");
    for (source, reason, hint, unpacked) in [
        ("nested.zip", "it contains another archive", "unzip nested.zip -d nested", "nested"),
        (
            "pairs_of_arrays.tar",
            "its files contain arrays",
            "mkdir pairs_of_arrays && tar -xf pairs_of_arrays.tar -C pairs_of_arrays",
            "pairs_of_arrays",
        ),
        ("x.npy.gz", "it is one compressed file", "gunzip -k x.npy.gz", "x.npy"),
    ] {
        let ran = folder.packds(&["plan", source, "-o", "x.plan", "--shards", "2"]);
        assert!(ran.code == 2 && ran.stderr.contains(reason), "{source}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{source}: {}", ran.stderr);
        // Python follows the hint, because there may be no such programs.
        let code = "
import gzip, os, shutil, sys
os.chdir(sys.argv[1])
source, out = sys.argv[2:]
if source.endswith('.gz'):
    open(out, 'wb').write(gzip.open(source).read())
else:
    shutil.unpack_archive(source, out)
";
        fs::remove_dir_all(folder.path(unpacked))
            .or_else(|_| fs::remove_file(folder.path(unpacked)))
            .unwrap_or_default();
        python(&["-c", code, folder.path("").to_str().unwrap(), source, unpacked]);
        assert_planned(&folder, unpacked, &[]);
    }
}

#[test]
fn files_with_one_sample_each() {
    let folder = written("one_per_file.py");
    for format in ["npy", "npz", "npz.gz", "safetensors", "h5", "zarr"] {
        assert_planned(&folder, &format!("classes/{format}"), &[]);
        assert_planned(&folder, &format!("pairs/{format}"), &["--keep-order"]);
    }
    let code = "
import numpy as np, os, sys
os.chdir(sys.argv[1])
for n in range(7):
    for folder, array in [('images', np.full((9, 9), n, '>f4')), ('masks', np.full((9, 9), n, 'i4'))]:
        os.makedirs(f'wide/{folder}', exist_ok=True)
        np.save(f'wide/{folder}/{n}.npy', array)
";
    python(&["-c", code, folder.path("").to_str().unwrap()]);
    assert_planned(&folder, "wide", &[]);
}

#[test]
fn tables_of_images() {
    let folder = written("table.py");
    for source in [
        "hf.parquet",
        "array3d.parquet",
        "file.arrow",
        "stream.arrow",
        "lz4.arrow",
        "zstd_stream.arrow",
        "tensor.parquet",
    ] {
        assert_planned(&folder, source, &[]);
    }
    assert_planned(&folder, "hf_saved", &["--split", "train"]);
    assert_planned(&folder, "set", &["--split", "train", "--keep-order"]);
}

#[test]
fn compressed_shards() {
    let folder = written("webdataset.py");
    let compressed: Vec<String> = folder.files("").into_iter().filter(|name| name.ends_with(".tar.gz")).collect();
    assert!(!compressed.is_empty());
    compressed.iter().for_each(|source| assert_planned(&folder, source, &[]));
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    if python_of_peers("streaming", &["mds.py", "write", &here]).is_some() {
        ["raw", "zstd", "gz", "bz2", "merged"].iter().for_each(|source| assert_planned(&folder, source, &[]));
    }
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    if python_of_peers("litdata", &["lit.py", "write", &here]).is_some() {
        ["raw", "chunk", "batch", "sample"].iter().for_each(|source| assert_planned(&folder, source, &[]));
    }
    let folder = Folder::new();
    let here = folder.path("").to_str().unwrap().to_owned();
    if python_of_peers("array_record", &["arrayrecord.py", "write", &here]).is_some() {
        let files = ["none", "zstd", "snappy"].map(|name| format!("{name}.array_record"));
        files.iter().for_each(|source| assert_planned(&folder, source, &[]));
    }
}

/// Writes 12 images in row groups, batches, chunks or members of two.
const IN_TWOS: &str = "
import io, os, sys, zipfile
import h5py, numpy as np, pyarrow as pa, pyarrow.parquet as pq, zarr
from PIL import Image
os.chdir(sys.argv[1])
images = np.random.default_rng(0).integers(0, 256, (12, 64, 64, 3), dtype=np.uint8)
def png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, 'PNG')
    return out.getvalue()
table = pa.table({'image': [png(image) for image in images], 'label': list(range(12))})
pq.write_table(table, 'x.parquet', row_group_size=2, compression='snappy', use_dictionary=False)
with pa.OSFile('x.arrow', 'w') as out, pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression='zstd')) as to:
    to.write_table(table, max_chunksize=2)
with h5py.File('x.h5', 'w') as out:
    out.create_dataset('images', data=images, chunks=(2, 64, 64, 3), compression='gzip')
zarr.create_array('x.zarr', data=images, chunks=(2, 64, 64, 3), compressors=zarr.codecs.GzipCodec())
with zipfile.ZipFile('x.zip', 'w', zipfile.ZIP_DEFLATED) as out:
    for n, image in enumerate(images):
        out.writestr(f'data/{n:02}.png', png(image))
";

/// Overwrites the middle of a file from `start` on, and keeps its size and its times.
fn damage(path: &std::path::Path, start: f64, end: f64) {
    let file = File::options().write(true).open(path).unwrap();
    let there = file.metadata().unwrap();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a small file")]
    let [start, end] = [start, end].map(|share| (there.len() as f64 * share) as u64);
    file.write_all_at(&vec![0x5a; usize::try_from(end - start).unwrap()], start).unwrap();
    file.set_modified(there.modified().unwrap()).unwrap();
}

#[test]
fn a_shard_reads_only_the_parts_with_its_samples() {
    let folder = Folder::new();
    python(&["-c", IN_TWOS, folder.path("").to_str().unwrap()]);
    for (source, damaged) in [
        ("x.parquet", "x.parquet"),
        ("x.arrow", "x.arrow"),
        ("x.h5", "x.h5"),
        ("x.zip", "x.zip"),
        ("x.zarr", "x.zarr/c/4/0/0/0"),
    ] {
        assert_planned(&folder, source, &["--keep-order"]);
        plan(&folder, source, &["--keep-order"]);
        let (start, end) = if source == damaged { (0.7, 0.73) } else { (0.3, 0.9) };
        damage(&folder.path(damaged), start, end);
        for shard in ["0", "1"] {
            build(&folder, shard).ok();
        }
        let ran = build(&folder, "2");
        assert!(ran.code == 1 && ran.stderr.contains(source), "{source}: {}", ran.stderr);
        // Nothing of a shard that failed is left.
        assert_eq!(folder.files("p.packs").len(), 2, "{source}");
        fs::remove_dir_all(folder.path("p.packs")).unwrap();
    }
}

#[test]
fn a_changed_archive_table_or_chunk_is_named() {
    let folder = Folder::new();
    python(&["-c", IN_TWOS, folder.path("").to_str().unwrap()]);
    for (source, changed) in
        [("x.parquet", "x.parquet"), ("x.h5", "x.h5"), ("x.zip", "x.zip"), ("x.zarr", "x.zarr/c/4/0/0/0")]
    {
        plan(&folder, source, &["--keep-order"]);
        let file = File::options().append(true).open(folder.path(changed)).unwrap();
        let bytes = file.metadata().unwrap().len();
        file.write_all_at(&[0], bytes).unwrap_or_default();
        file.set_len(bytes + 1).unwrap();
        let ran = build(&folder, "2");
        let expected = format!("{changed}: expected {bytes} bytes as in the plan, found {}", bytes + 1);
        assert!(ran.code == 1 && ran.stderr.contains(&expected), "{source}: {}", ran.stderr);
    }
}

#[test]
fn bad_images_in_tables_follow_the_policy() {
    let folder = Folder::new();
    let code = "
import io, os, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from PIL import Image
os.chdir(sys.argv[1])
out = io.BytesIO()
Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(out, 'PNG')
images = [out.getvalue()] * 12
images[3], images[8] = None, images[8][:40]
table = pa.table({'image': images, 'label': list(range(12))})
pq.write_table(table, 'x.parquet', row_group_size=5)
with pa.OSFile('x.arrow', 'w') as out, pa.ipc.new_file(out, table.schema) as to:
    to.write_table(table)
";
    python(&["-c", code, folder.path("").to_str().unwrap()]);
    for source in ["x.parquet", "x.arrow"] {
        for (policy, key) in [("skip", "skipped"), ("substitute", "substituted")] {
            plan(&folder, source, &["--on-error", policy, "--mode", "raw"]);
            for shard in ["0", "1", "2"] {
                build(&folder, shard).ok();
            }
            let done = folder.packds(&["commit", "p.plan", "-o", "p.packs", "--json"]);
            assert_eq!(done.code, 1, "{}", done.stderr);
            let done: Value = serde_json::from_str(&done.stdout).unwrap();
            assert_eq!(done[format!("n_{key}")], json!(2), "{source}: {done}");
            folder.packds(&["verify", "p.packs", "-q"]).ok();
            fs::remove_dir_all(folder.path("p.packs")).unwrap();
        }
    }
}
