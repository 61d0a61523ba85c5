"""Measures what loading costs a training step on a GPU: a ResNet is fed from one cached batch, by packds loaders and by DataLoader.

    python bench/python/gpu_step.py [--model resnet18] [--images 4096] [--batch 256] [--steps 60] [--side 224]
                                    [--workers 16] [--device cuda:0]

The images are parts of photographs in examples/photos: in a pack, in an array, and as JPEG files in a temporary folder,
all in the page cache. Prints one line per loader: milliseconds per step (median), images per second, the extra time per
step compared with the cached batch, the share of time that the program waited for batches, CPU microseconds per image
including worker processes, and image bytes per second. The lines below the table show how chunks reached the GPU if
registering the file was requested, and the reason if JPEG files could not be decoded on the GPU. Packs of JPEG files
are loaded as random crops. `--model none` takes batches and does nothing with them.
"""

import argparse
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np
import torch

import packds

PHOTOS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "photos"
# ImageNet's, as for normalize="imagenet".
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Number of steps between synchronizations with the GPU. Training also synchronizes only occasionally.
GROUP = 5


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18", choices=["resnet18", "resnet50", "small", "none"])
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--device", default="cuda:0", help="also `simulated`, to test this program without measuring")
    options = parser.parse_args()
    if options.steps < GROUP:
        parser.error(f"--steps: expected {GROUP} or more, found {options.steps}")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: PyTorch {torch.__version__} finds no GPU")
    return options


class Files(torch.utils.data.Dataset):
    """JPEG files, read as in training with torchvision."""

    def __init__(self, folder: pathlib.Path, n: int) -> None:
        self.paths = [folder / f"{number}.jpg" for number in range(n)]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int):
        import PIL.Image

        with PIL.Image.open(self.paths[number]) as image:
            return as_input(np.asarray(image.convert("RGB")), number), number % 1000


class Rows(torch.utils.data.Dataset):
    """Rows of an array in a mapped file."""

    def __init__(self, path: pathlib.Path) -> None:
        self.array = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, number: int):
        return as_input(self.array[number], number), number % 1000


def as_input(pixels: np.ndarray, number: int) -> torch.Tensor:
    """Normalizes an image to f32 `[channels, height, width]`, and flips it if its number is odd."""
    image = torch.from_numpy(np.array(pixels)).permute(2, 0, 1).float().div_(255)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    image = (image - mean) / std
    return image.flip(2) if number % 2 else image


def photographs(side: int) -> np.ndarray:
    """All photographs side by side, `[side + 64, width, 3]` u8."""
    import PIL.Image

    height, images = side + 64, []
    for path in sorted(PHOTOS.rglob("*.jpg")):
        with PIL.Image.open(path) as image:
            width = max(1, round(image.width * height / image.height))
            images.append(np.asarray(image.convert("RGB").resize((width, height))))
    return np.concatenate(images, axis=1)


def written(folder: pathlib.Path, n: int, side: int) -> None:
    """Writes the same images as a pack, an array, JPEG files, and a pack of these files."""
    import PIL.Image

    strip = photographs(side)
    array = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, (n, side, side, 3))
    fields = {"image": "image", "label": "label"}
    with (
        packds.write(folder / "images.pack", fields) as writer,
        packds.write(folder / "files.pack", fields, mode="encoded") as file_writer,
    ):
        for number in range(n):
            y, x = number % 64, number * 61 % (strip.shape[1] - side)
            image = np.ascontiguousarray(strip[y : y + side, x : x + side])
            array[number] = image
            PIL.Image.fromarray(image).save(folder / f"{number}.jpg", quality=90)
            writer.add(image=image, label=number % 1000)
            file_writer.add(image=folder / f"{number}.jpg", label=number % 1000)


def model_of(name: str, device: torch.device):
    if name == "small":
        # For tests without torchvision or a GPU.
        layers = [torch.nn.Conv2d(3, 8, 3, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 1000)]
        model = torch.nn.Sequential(*layers)
    else:
        import torchvision

        model = getattr(torchvision.models, name)(num_classes=1000)
    return model.to(device, memory_format=torch.channels_last)


def repeated(loader):
    """The batches of consecutive epochs."""
    while True:
        yield from loader


def moved(batches, device: torch.device):
    """Batches of a loader on the host, copied by PyTorch."""
    for images, labels in batches:
        images = images.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        yield images, labels.to(device, non_blocking=True)


def processor_seconds() -> float:
    """CPU time of this process and its workers so far."""
    ticks = 0
    for process in multiprocessing.active_children():
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def measured(step, batches, n_steps: int, settle) -> tuple[float, float, float]:
    """Returns the median milliseconds of a step, the share of time spent waiting for batches, and the CPU seconds per step. The
    first fifth of the groups does not count."""
    times, waited, elapsed, used = [], 0.0, 0.0, 0.0
    left_out, n_groups = n_steps // GROUP // 5, n_steps // GROUP
    for group in range(n_groups):
        if group == left_out:
            used = processor_seconds()
        settle()
        started, waits = time.perf_counter(), 0.0
        for _ in range(GROUP):
            asked = time.perf_counter()
            batch = next(batches)
            waits += time.perf_counter() - asked
            step(*batch)
        settle()
        if group >= left_out:
            took = time.perf_counter() - started
            times.append(1000 * took / GROUP)
            waited, elapsed = waited + waits, elapsed + took
    return statistics.median(times), waited / elapsed, (processor_seconds() - used) / (GROUP * (n_groups - left_out))


def main() -> None:
    options = parsed()
    is_gpu = options.device.startswith("cuda")
    where = torch.device(options.device if is_gpu else "cpu")
    trains = options.model != "none"
    model = model_of(options.model, where) if trains else torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(images, labels) -> None:
        if not trains:
            return
        with torch.autocast(where.type, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def settle() -> None:
        if is_gpu:
            torch.cuda.synchronize(where)

    common = {
        "batch_size": options.batch, "augment": "flip", "normalize": "imagenet", "dtype": "bf16",
        "layout": "channels_last", "output": "torch",
    }  # fmt: skip
    workers = {"batch_size": options.batch, "shuffle": True, "drop_last": True, "pin_memory": is_gpu}
    if options.workers:
        workers |= {"num_workers": options.workers, "persistent_workers": True}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        written(folder, options.images, options.side)
        path = folder / "images.pack"
        cached = next(iter(packds.Loader(path, device=options.device, **common)))
        told = []

        def of_tier(tier: str, **more):
            loader = packds.Loader(path, device=options.device, tier=tier, **(common | more))
            copies = loader.stats()["copies"]
            told.extend([copies] if copies else [])
            return repeated(loader)

        def of_files(jpeg: str):
            path = folder / "files.pack"
            try:
                return repeated(packds.Loader(path, device=options.device, jpeg=jpeg, **(common | {"augment": areas})))
            except packds.OptionError as error:
                told.append(f"not measured: jpeg={jpeg!r}: {error}")
                return None

        def of_torch(dataset):
            return moved(repeated(torch.utils.data.DataLoader(dataset, **workers)), where)

        n, areas = options.workers, f"rrc{options.side},flip"
        colors = f"{areas},jitter:0.4/0.4/0.4/0.1,gray:0.2"
        registered = {"order": "window", "register": "file", "access": "mapped"}
        # Each loader exists only while it is measured, so that it cannot take memory or CPU time from the others.
        ways = {
            **({"one batch cached on the GPU": lambda: repeated([cached])} if trains else {}),
            "packds, tier resident": lambda: of_tier("resident"),
            "packds, tier gpu-window": lambda: of_tier("gpu-window", order="window"),
            "packds, tier gpu-window, registered file": lambda: of_tier("gpu-window", **registered),
            "packds, tier host": lambda: of_tier("host"),
            "packds, tier resident, random areas": lambda: of_tier("resident", augment=areas),
            "packds, tier host, random areas": lambda: of_tier("host", augment=areas),
            "packds, tier resident, and colours": lambda: of_tier("resident", augment=colors),
            "packds, tier host, and colours": lambda: of_tier("host", augment=colors),
            "packds, JPEG files by the GPU": lambda: of_files("gpu"),
            "packds, JPEG files by the host": lambda: of_files("host"),
            "packds on the host, then .to(device)": lambda: moved(repeated(packds.Loader(path, **common)), where),
            f"DataLoader, {n} workers, mapped array": lambda: of_torch(Rows(folder / "images.npy")),
            f"DataLoader, {n} workers, JPEG files": lambda: of_torch(Files(folder, options.images)),
        }
        print(f"{options.model}, batch {options.batch}, {options.side} x {options.side}, bf16")
        print(f"{'':<40}{'ms':>9}{'images/s':>11}{'longer':>10}{'waited':>9}{'CPU us/image':>14}{'GB/s of u8':>12}")
        first = None
        for name, made in ways.items():
            batches = made()
            if batches is None:
                continue
            took, waited, seconds = measured(step, batches, options.steps, settle)
            first = first or took
            # The slowdown is shown only if there is a training step to compare with.
            longer = f"{100 * (took / first - 1):+.1f}%" if trains else "-"
            print(
                f"{name:<40}{took:9.2f}{1000 * options.batch / took:11.0f}{longer:>10}"
                f"{100 * waited:8.1f}%{1e6 * seconds / options.batch:14.1f}{3e-6 * options.batch * options.side**2 / took:12.2f}",
                flush=True,
            )
        print(*told, sep="\n")


if __name__ == "__main__":
    main()
