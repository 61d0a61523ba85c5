"""Writes datasets with the files and names that their publishers use: published.py DIR. Prints the labels and masks."""

import json
import sys
import zipfile
from pathlib import Path

from real_tfrecord import tfrecord

import lmdb
import numpy as np
import pandas as pd
import zarr
from PIL import Image

from records import png

N = 12
LABELS = [i % 3 for i in range(N)]
PIXELS = np.random.default_rng(5).integers(0, 256, (N, 8, 9, 3), dtype=np.uint8)


def image(path, i):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(PIXELS[i % N]).save(path)


def text(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def tables(root):
    pixels = pd.DataFrame(PIXELS[..., 0].reshape(N, -1)[:, :64], columns=[f"pixel{i}" for i in range(64)])
    (root / "alone").mkdir()
    pixels.assign(label=LABELS).to_csv(root / "alone/train.csv", index=False)
    text(root / "alone/cite.bib", ["@article{x}"])
    for i in range(N):
        image(root / f"boneage/boneage-training-dataset/{1377 + i}.png", i)
        image(root / f"boneage/boneage-test-dataset/{4360 + i}.png", i)
        image(root / f"fashion/images/{i}.jpg", i)
        image(root / f"isic/ISIC_Training_Input/ISIC_{i:07}.jpg", i)
        image(root / f"flickr/flickr30k_images/{1000 + i}.jpg", i)
        image(root / f"words/word_{i}.png", i)
        image(root / f"llava/images/{i:012}.jpg", i)
        image(root / f"fgvc/images/{1025794 + i}.jpg", i)
        image(root / f"tags/{i}.jpg", i)
    boneage = root / "boneage"
    pd.DataFrame({"id": range(1377, 1377 + N), "boneage": range(90, 90 + N)}).to_csv(
        boneage / "boneage-training-dataset.csv", index=False)
    pd.DataFrame({"Case ID": range(4360, 4360 + N), "Sex": ["M", "F"] * (N // 2)}).to_csv(
        boneage / "boneage-test-dataset.csv", index=False)
    url = "http://assets.example/v1/images/style"
    pd.DataFrame({"filename": [f"{i}.jpg" for i in range(N)], "link": [f"{url}/{i}.jpg" for i in range(N)]}).to_csv(
        root / "fashion/images.csv", index=False)
    pd.DataFrame({"id": range(N), "gender": ["Men", "Women"] * (N // 2), "articleType": LABELS}).to_csv(
        root / "fashion/styles.csv", index=False)
    truth = pd.DataFrame(np.eye(3)[LABELS], columns=["MEL", "NV", "BCC"])
    truth.insert(0, "image", [f"ISIC_{i:07}" for i in range(N)])
    truth.to_csv(root / "isic/ISIC_Training_GroundTruth.csv", index=False)
    pd.DataFrame({"image": truth.image, "age_approx": 55.0, "lesion_id": range(N)}).to_csv(
        root / "isic/ISIC_Training_Metadata.csv", index=False)
    text(root / "flickr/results.csv", ["image_name| comment_number| comment"] + [
        f"{1000 + i}.jpg| {k}| A dog , number {i} , runs ." for i in range(N) for k in range(2)])
    text(root / "words/gt.txt", [f'word_{i}.png, "Word {i}"' for i in range(N)])
    text(root / "words/coords.txt", [f"word_{i}.png,0,1,2,3" for i in range(N)])
    chat = [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "A cat"}]
    (root / "llava/chat.json").write_text(json.dumps(
        [{"id": f"{i:012}", "image": f"{i:012}.jpg", "conversations": chat} for i in range(N)]))
    variants = ["707-320", "727-200", "737-200"]
    text(root / "fgvc/images_variant_train.txt", [f"{1025794 + i} {variants[LABELS[i]]}" for i in range(N)])
    tags = ["haze primary", "clear primary", "haze water", "clear water"]
    pd.DataFrame({"path": [f"{i}.jpg" for i in range(N)], "label": [tags[i % 4] for i in range(N)]}).to_csv(
        root / "tags/pairs.csv", index=False)
    findings = ["Effusion|Hernia", "Mass", "Nodule"]
    pd.DataFrame({"path": [f"{i}.jpg" for i in range(N)], "label": [findings[i % 3] for i in range(N)]}).to_csv(
        root / "tags/bars.csv", index=False)
    names = ["n01443537", "n01629819"]
    for i in range(N):
        image(root / f"tiny/train/{names[i % 2]}/images/{names[i % 2]}_{i}.JPEG", i)
        image(root / f"tiny/val/images/val_{i}.JPEG", i)
    text(root / "tiny/val/val_annotations.txt", [f"val_{i}.JPEG\t{names[i % 2]}\t0\t32\t44\t62" for i in range(N)])


def masks(root):
    rows = []
    for i in range(N):
        split = ["train", "valid", "test"][i // 4]
        image(root / f"globe/{split}/{i}_sat.jpg", i)
        mask = ""
        if split == "train":
            mask = f"{split}/{i}_mask.png"
            Image.fromarray(PIXELS[i, ..., 0] % 3).save(root / "globe" / mask)
        rows.append([i, split, f"{split}/{i}_sat.jpg", mask])
        image(root / f"salt/images/{i:02}.png", i)
        (root / "salt/masks").mkdir(exist_ok=True)
        wide = np.where(PIXELS[i, ..., 0] > 99, 65535, 0).astype(np.uint16)
        Image.fromarray(wide).save(root / f"salt/masks/{i:02}.png")
    pd.DataFrame(rows, columns=["image_id", "split", "sat_image_path", "mask_path"]).to_csv(
        root / "globe/metadata.csv", index=False)
    return np.where(PIXELS[..., 0] > 99, 255, 0).astype(np.uint8).tobytes().hex()


def records(root):
    def write(name, features):
        (root / name).parent.mkdir(exist_ok=True)
        writer = tfrecord.TFRecordWriter(str(root / name))
        for i in range(N):
            writer.write({"image/encoded": (png(i), "byte"), **features(i)})
        writer.close()

    hot = lambda i: [float(LABELS[i] == k) for k in range(3)]
    write("hot/a.tfrecord", lambda i: {"one_hot": (hot(i), "float")})
    write("named/a.tfrecord", lambda i: {"label": ([int(k) for k in hot(i)], "int"), "box": ([0.5, 1.0], "float")})
    write("not/a.tfrecord", lambda i: {"box": ([float(i % 2), 1.0], "float")})
    label = lambda i: {"image/class/label": (LABELS[i], "int")}
    for split in ["train", "validation"]:
        write(f"slim/flowers_{split}_00000-of-00001.tfrecord", label)
        write(f"few/flowers_{split}_00000-of-00001.tfrecord", label)
    text(root / "slim/labels.txt", ["0:daisy", "1:roses", "2:tulips"])
    text(root / "few/labels.txt", ["0:daisy", "1:roses"])
    for split in ["train", "val"]:
        (root / "lmdbs").mkdir(exist_ok=True)
        env = lmdb.open(str(root / f"lmdbs/{split}_lmdb"), map_size=1 << 24)
        with env.begin(write=True) as txn:
            for i in range(N):
                txn.put(b"image-%09d" % i, png(i))
                txn.put(b"label-%09d" % i, b"%d" % LABELS[i])
        env.close()


def arrays(root):
    for folder in ["olivetti", "robust/CIFAR-10-C"]:
        (root / folder).mkdir(parents=True)
    np.save(root / "olivetti/olivetti_faces.npy", PIXELS[..., 0].astype(np.float32))
    np.save(root / "olivetti/olivetti_faces_target.npy", np.array(LABELS))
    for name in ["fog", "snow"]:
        np.save(root / f"robust/CIFAR-10-C/{name}.npy", PIXELS)
    np.save(root / "robust/CIFAR-10-C/labels.npy", np.array(LABELS))
    group = zarr.open_group(root / "zarr/data.zarr", mode="w")
    group.create_array("images", data=PIXELS)
    group.create_array("labels", data=np.array(LABELS))
    text(root / "zarr/README.md", ["Data"])
    (root / "zip").mkdir()
    with zipfile.ZipFile(root / "zip/archive.zip", "w") as archive:
        for i in range(N):
            archive.writestr(f"{['cat', 'dog', 'owl'][LABELS[i]]}/{i:02}.png", png(i))
    columns = pd.DataFrame(np.arange(N * 32332).reshape(N, -1) % 251, columns=[str(i) for i in range(32332)])
    columns.astype(np.uint8).assign(image_id=[f"Train_{i}" for i in range(N)]).to_parquet(root / "x.parquet")
    (root / "stl").mkdir()
    for split in ["train", "test"]:
        whole = np.tile(np.arange(3 * 96 * 96) // 96 % 251, 3).astype(np.uint8)
        whole.tofile(root / f"stl/{split}_X.bin")
        np.array([1, 2, 3], np.uint8).tofile(root / f"stl/{split}_y.bin")
    text(root / "stl/class_names.txt", ["airplane", "bird", "car"])


if __name__ == "__main__":
    root = Path(sys.argv[1])
    tables(root)
    records(root)
    arrays(root)
    print(json.dumps({"labels": LABELS, "salt": masks(root)}))
