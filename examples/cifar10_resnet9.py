#!/usr/bin/env python3
"""Trains a small ResNet-9 on CIFAR-10 with one of three loaders: packds, PyTorch's DataLoader, or tensors in memory.

    python examples/cifar10_resnet9.py DATA                              # packds, 24 epochs: to about 93.5 %
    python examples/cifar10_resnet9.py DATA --loaders packds,dataloader,memory --workers 4
    python examples/cifar10_resnet9.py DATA --until 93.5                 # stops after the epoch that reaches 93.5 %
    python examples/cifar10_resnet9.py DATA --steps 20 --batch-size 64   # a quick try on a CPU

DATA has the folders train/CLASS/ and test/CLASS/ with 32x32 images. The first run makes the packs, next to DATA or in
--packs. All loaders train the same net from the same weights and seed with the same settings: shifts of up to 2 pixels, flips,
and a square of 4x4 set to the mean. Each loader has its own sample order and random numbers.

Net and schedule are those of FFCV's CIFAR example; GPUs compute in bfloat16. Needs PyTorch, and torchvision for `dataloader`.
Prints a line per epoch; --json FILE writes the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

import packds

SIDE, SHIFT, CUT = 32, 2, 4
EPOCHS, PEAK_EPOCH, PEAK_RATE, MOMENTUM, DECAY, SMOOTHING = 24, 5, 0.5, 0.9, 5e-4, 0.1
TEST_BATCH = 500


class Batches(Protocol):
    """A loader: an iteration is an epoch of `(images [n, 3, 32, 32], labels [n])` on the device."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]: ...


@dataclass
class Data:
    train: Batches
    test: Batches
    n_classes: int


# The net.


def convolution(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.path = nn.Sequential(convolution(channels, channels), convolution(channels, channels))

    def forward(self, images: Tensor) -> Tensor:
        return images.add(self.path(images))


class ResNet9(nn.Module):
    """Eight convolutions and a linear layer."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            convolution(3, 64),
            convolution(64, 128, kernel=5, stride=2, padding=2),
            Residual(128),
            convolution(128, 256),
            nn.MaxPool2d(2),
            Residual(256),
            convolution(256, 128, padding=0),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(128, n_classes, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.features(images)) * 0.2
        return scores


# The three loaders.


def packs(options: argparse.Namespace) -> tuple[packds.Dataset, packds.Dataset]:
    """The training and the test set as packs with the same class ids. The first run makes them."""
    folder = options.packs or options.data.parent
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{options.data.resolve().name}-{SIDE}"
    paths = [folder / f"{stem}.{split}.pack" for split in ("train", "test")]
    if not all(path.exists() for path in paths):
        packds.convert(options.data, folder / f"{stem}.pack", split="all", force=True)
    train, test = map(packds.open, paths)
    return train, test


def normalization(train: packds.Dataset) -> tuple[list[float], list[float]]:
    """Mean and std of each channel, scaled to 0..1. All loaders use these."""
    stats = train.stats["fields"]["image"]
    return stats["mean"], stats["std"]


def of_packds(options: argparse.Namespace, device: torch.device) -> Data:
    train, test = packs(options)
    common: dict[str, Any] = {"normalize": normalization(train), "layout": "channels_last", "output": "torch"}
    common |= {"dtype": "bf16" if device.type == "cuda" else "f32", "device": device}
    return Data(
        train=packds.Loader(
            train,
            options.batch_size,
            order="random",
            seed=options.seed,
            augment=f"crop{SIDE}+{SHIFT}:reflect,flip,cutout:{CUT}",
            **common,
        ),
        test=packds.Loader(test, TEST_BATCH, order="sequential", drop_last=False, **common),
        n_classes=len(train.classes),
    )


@dataclass
class Moved:
    """Batches of a DataLoader, moved to the device."""

    loader: torch.utils.data.DataLoader[tuple[Tensor, Tensor]]
    device: torch.device

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in self.loader:
            images = images.to(self.device, non_blocking=True, memory_format=torch.channels_last)
            yield images, labels.to(self.device, non_blocking=True)


def of_dataloader(options: argparse.Namespace, device: torch.device) -> Data:
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import Compose, Normalize, RandomCrop, RandomErasing, RandomHorizontalFlip, ToTensor

    mean, std = normalization(packs(options)[0])
    augment = [RandomCrop(SIDE, SHIFT, padding_mode="reflect"), RandomHorizontalFlip()]
    finish = [ToTensor(), Normalize(mean, std)]
    share = CUT**2 / SIDE**2
    cut = RandomErasing(1.0, (share, share), (1.0, 1.0))
    train = ImageFolder(str(options.data / "train"), Compose([*augment, *finish, cut]))
    test = ImageFolder(str(options.data / "test"), Compose(finish))
    common: dict[str, Any] = {"num_workers": options.workers, "pin_memory": device.type == "cuda"}
    common["persistent_workers"] = options.workers > 0
    order = torch.Generator().manual_seed(options.seed)
    return Data(
        train=Moved(DataLoader(train, options.batch_size, shuffle=True, drop_last=True, generator=order, **common), device),
        test=Moved(DataLoader(test, TEST_BATCH, **common), device),
        n_classes=len(train.classes),
    )


class Resident:
    """Batches of tensors that are kept on the device, and augmented there one batch at a time."""

    def __init__(self, images: Tensor, labels: Tensor, batch_size: int, seed: int) -> None:
        self.padded, self.labels, self.batch_size = pad(images, (SHIFT,) * 4, mode="reflect"), labels, batch_size
        self.draws = torch.Generator(images.device).manual_seed(seed)

    def __len__(self) -> int:
        return len(self.labels) // self.batch_size

    def below(self, most: int) -> Tensor:
        """A random number per image, `[n, 1]`."""
        return torch.randint(most, (self.batch_size, 1), device=self.labels.device, generator=self.draws)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        side = torch.arange(SIDE, device=self.labels.device)
        order = torch.randperm(len(self.labels), device=self.labels.device, generator=self.draws)
        for chosen in order[: len(self) * self.batch_size].split(self.batch_size):
            rows = side + self.below(2 * SHIFT + 1)
            columns = torch.where(self.below(2) == 1, side.flip(0), side) + self.below(2 * SHIFT + 1)
            # [n, height, width, channels], the memory layout of channels_last.
            images = self.padded[chosen[:, None, None], :, rows[:, :, None], columns[:, None, :]]
            top, left = (self.below(SIDE) - CUT // 2 for _ in "yx")
            in_rows, in_columns = (side >= top) & (side < top + CUT), (side >= left) & (side < left + CUT)
            images = images.masked_fill((in_rows[:, :, None] & in_columns[:, None, :])[..., None], 0.0)
            yield images.permute(0, 3, 1, 2), self.labels[chosen]


def of_memory(options: argparse.Namespace, device: torch.device) -> Data:
    train, test = packs(options)
    mean, std = (torch.tensor(one, device=device).view(1, 3, 1, 1) for one in normalization(train))

    def on_device(split: packds.Dataset) -> tuple[Tensor, Tensor]:
        samples = split[:]
        pixels = torch.from_numpy(samples["image"]).to(device).permute(0, 3, 1, 2)
        return (pixels / 255 - mean) / std, torch.from_numpy(samples["label"]).long().to(device)

    whole = on_device(test)
    return Data(
        train=Resident(*on_device(train), options.batch_size, options.seed),
        test=list(zip(*(half.split(TEST_BATCH) for half in whole), strict=True)),
        n_classes=len(train.classes),
    )


LOADERS: dict[str, Callable[[argparse.Namespace, torch.device], Data]] = {
    "packds": of_packds,
    "dataloader": of_dataloader,
    "memory": of_memory,
}


# Training.


class Trainer:
    def __init__(self, net: nn.Module, steps: int, device: torch.device) -> None:
        self.net, self.device, self.done = net, device, 0
        self.weights = torch.optim.SGD(net.parameters(), PEAK_RATE, momentum=MOMENTUM, weight_decay=DECAY)
        peak = max(1.0, steps * PEAK_EPOCH / EPOCHS)

        def rate(step: int) -> float:
            """The learning rate: linear to the peak, then linear to 0."""
            return min(step / peak, max(0.0, (steps - step) / max(1.0, steps - peak)))

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.weights, rate)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def epoch(self, batches: Batches, limit: int | None) -> dict[str, float]:
        """Trains one epoch, or `limit` steps of it. Returns the duration and the mean loss."""
        self.net.train()
        losses: list[Tensor] = []
        n_images, began = 0, time.perf_counter()
        for images, labels in itertools.islice(batches, limit):
            with self.autocast():
                loss = cross_entropy(self.net(images), labels, label_smoothing=SMOOTHING)
            self.weights.zero_grad(set_to_none=True)
            loss.backward()
            self.weights.step()
            self.schedule.step()
            losses.append(loss.detach())
            n_images += len(labels)
        mean_loss = float(torch.stack(losses).float().mean())  # Waits for the GPU.
        seconds = time.perf_counter() - began
        self.done += len(losses)
        return {"seconds": seconds, "images_per_s": n_images / seconds, "loss": mean_loss}

    @torch.no_grad()
    def accuracy(self, batches: Batches) -> float:
        """The accuracy, averaged over each image and its mirror image."""
        self.net.eval()
        right, total = torch.zeros((), device=self.device), 0
        for images, labels in batches:
            with self.autocast():
                scores = self.net(images) + self.net(images.flip(3))
            right += (scores.argmax(1) == labels).sum()
            total += len(labels)
        return float(right) / total


def run(name: str, options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    torch.zeros((), device=device)  # CUDA starts here, before any time is measured.
    began = time.perf_counter()
    data = LOADERS[name](options, device)
    startup = time.perf_counter() - began
    if len(data.train) == 0:
        raise SystemExit(f"there are fewer images than --batch-size {options.batch_size}")
    torch.manual_seed(options.seed)
    net = ResNet9(data.n_classes).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    # A short run fits the whole schedule in its steps.
    steps = options.steps or options.epochs * len(data.train)
    trainer = Trainer(net, steps, device)
    epochs = []
    for number in range(math.ceil(steps / len(data.train))):
        figures = trainer.epoch(data.train, steps - trainer.done)
        print(f"{name}: epoch {number}: {'{seconds:.2f} s, {images_per_s:,.0f} images/s, loss {loss:.3f}'.format(**figures)}")
        epochs.append(figures)
        if options.until and trainer.done < steps and 100 * trainer.accuracy(data.test) >= options.until:
            break
    accuracy = trainer.accuracy(data.test)
    seconds = sum(one["seconds"] for one in epochs)
    print(f"{name}: {100 * accuracy:.2f} % correct after {trainer.done} steps in {seconds:.1f} s", flush=True)
    times = {"startup": startup, "seconds": seconds, "epochs": epochs}
    return {"loader": name, "accuracy": accuracy, "steps": trainer.done} | times


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("data", type=Path, metavar="DATA")
    add("--loaders", default="packds", help=f"comma-separated: {', '.join(LOADERS)} [packds]")
    add("--packs", type=Path, metavar="FOLDER", help="folder for the packs [next to DATA]")
    add("--epochs", type=int, default=EPOCHS, help=f"[{EPOCHS}]")
    add("--steps", type=int, help="train for this many steps instead of epochs")
    add("--until", type=float, metavar="PERCENT", help="test after each epoch, and stop at this accuracy")
    add("--batch-size", type=int, default=512, help="[512]")
    add("--workers", type=int, default=0, help="processes of the DataLoader [0]")
    add("--seed", type=int, default=0, help="[0]")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="[cuda if available, else cpu]")
    add("--json", type=Path, metavar="FILE", help="write the results")
    options = parser.parse_args()
    options.loaders = options.loaders.split(",")
    if unknown := set(options.loaders) - set(LOADERS):
        parser.error(f"unknown loader {', '.join(sorted(unknown))}; the loaders are {', '.join(LOADERS)}")
    if not all((options.data / split).is_dir() for split in ("train", "test")):
        parser.error(f"{options.data} has no folders train and test")
    return options


def main() -> None:
    options = arguments()
    device = torch.device(options.device)
    about = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"{device}: {about}, batches of {options.batch_size}, seed {options.seed}, PyTorch {torch.__version__}")
    report = {"device": about, "batch_size": options.batch_size, "seed": options.seed, "torch": torch.__version__}
    packs(options)  # The packs must exist before anything is timed.
    report["runs"] = [run(name, options, device) for name in options.loaders]
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
