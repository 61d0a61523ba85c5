"""The bottleneck, the possible speed, and what to change."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import packds

STAGES = ["step", "copy", "transform", "decode", "read"]
LEVELS = ["device_batch", "host_batch", "processed_sample", "decoded_sample", "raw_sample", "page_cache", "source"]


def compute(seconds: float) -> None:
    """Keeps the CPU busy."""
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass


def test_a_slow_step_is_named(numbered):
    with packds.Loader(numbered, batch_size=100) as loader:
        report = packds.doctor(loader, lambda batch: time.sleep(0.03), seconds=1.5)
        assert report.binds == "step" and report.advice == []
        assert list(report.stages) == STAGES and list(report.ladder) == LEVELS
        assert report.stages["step"] >= 30 and report.stages["copy"] == 0
        assert 0 < report.images_per_s <= 100 / 0.03
        # The doctor used its own batches.
        assert loader.epoch == 0 and loader.stats()["batches"] == 0


def test_slow_augmentation_is_named(photo_pack):
    loader = packds.Loader(photo_pack, batch_size=8, augment="rrc384,jitter:0.4/0.4/0.4/0.1", threads=1)
    report = packds.doctor(loader, lambda batch: None, seconds=2)
    assert report.binds == "transform"


def test_a_prediction_is_checked(photo_pack):
    loader = packds.Loader(photo_pack, batch_size=8, augment="rrc384", normalize="imagenet", threads=1)
    report = packds.doctor(loader, lambda batch: None, seconds=2, check=True)
    if report.checked is not None:
        assert report.checked["change"] in [advice["change"] for advice in report.advice]
        assert report.checked["measured_images_per_s"] > 0


def test_a_report_is_text_a_dict_and_a_picture(numbered, tmp_path):
    with packds.Loader(numbered, batch_size=100) as loader:
        report = packds.doctor(loader, lambda batch: None, seconds=0.5, plot=tmp_path / "a.svg")
    assert repr(report).startswith(f"binds    {report.binds}")
    assert report._repr_html_().startswith("<svg")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    report.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(json.dumps(report.to_dict()))["binds"] == report.binds
    with pytest.raises(packds.OptionError, match="svg or .png"):
        report.plot(tmp_path / "a.gif")


def test_what_is_no_loader_is_refused(numbered):
    with pytest.raises(packds.OptionError, match="found list"):
        packds.doctor([1, 2], lambda batch: None)
    with pytest.raises(packds.OptionError, match="seconds"):
        packds.doctor(packds.Loader(numbered), lambda batch: None, seconds=0)
    steps = []
    with pytest.raises(packds.OptionError, match="no folder"):
        packds.doctor(packds.Loader(numbered), steps.append, plot="no-such-folder/a.png")
    with pytest.raises(packds.OptionError, match="found 'a.gif'"):
        packds.doctor(packds.Loader(numbered), steps.append, plot="a.gif")
    assert steps == [], "the error must come before anything is measured"


def test_a_device_that_is_not_there_is_refused(torch, numbered):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(packds.OptionError, match="finds no GPU for 'cuda:1'"):
        packds.doctor(packds.Loader(numbered), lambda batch: None, device="cuda:1")
    for device in ["junk", 3, "simulated"]:
        with pytest.raises(packds.OptionError, match="device: expected"):
            packds.doctor(packds.Loader(numbered), lambda batch: None, device=device)


class Slow:
    """A dataset whose samples take this many seconds to read, decode and transform."""

    def __init__(self, read: float = 0, decode: float = 0, transform: float = 0) -> None:
        self.read, self.decode, self._transform = read, decode, transform
        self.transform = self.transformed

    def transformed(self, image):
        compute(self._transform)
        return image

    def __len__(self):
        return 32

    def __getitem__(self, index):
        time.sleep(self.read)
        compute(self.decode)
        return self.transform(np.full((8, 8, 3), index, np.uint8)), index


@pytest.mark.parametrize("stage", ["read", "decode", "transform"])
@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_slow_in_a_dataloader_is_named(torch, stage, workers):
    loader = torch.utils.data.DataLoader(Slow(**{stage: 0.004}), batch_size=8, num_workers=workers)
    report = packds.doctor(loader, lambda batch: None, seconds=2)
    assert report.binds == stage, report
    convert = [advice for advice in report.advice if advice["change"] == "convert"]
    assert convert and convert[0]["images_per_s"] > report.images_per_s
    assert "estimate" in convert[0]["text"]


def test_a_busy_machine_is_not_taken_for_a_slow_disk(torch):
    loader = torch.utils.data.DataLoader(Slow(decode=0.004), batch_size=8)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * len(os.sched_getaffinity(0)))]
    try:
        # The kernel does not report all CPU time of other programs, especially not of other virtual machines on the
        # same host.
        reports = [packds.doctor(loader, lambda batch: None, seconds=2) for _ in range(3)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert "decode" in [report.binds for report in reports], reports


@pytest.mark.parametrize(("workers", "start"), [(2, "fork"), (1, "spawn")])
def test_short_epochs_of_workers_are_no_faster_than_their_samples(torch, workers, start):
    loader = torch.utils.data.DataLoader(Slow(read=0.03), batch_size=4, num_workers=workers, multiprocessing_context=start)
    report = packds.doctor(loader, lambda batch: None, seconds=3)
    assert report.binds == "read", report
    # Each sample takes 30 ms, so no rate may exceed `most`, even if some samples were ready when a batch was requested.
    most = workers / 0.03
    assert all(rate <= most * 1.05 for rate in (report.images_per_s, report.ladder["source"], report.ladder["page_cache"])), report
    if start == "spawn":
        assert any("starting workers" in note for note in report.notes)


def test_a_slow_step_of_a_dataloader_is_named(torch):
    loader = torch.utils.data.DataLoader(Slow(), batch_size=8)
    report = packds.doctor(loader, lambda batch: time.sleep(0.02), seconds=2)
    assert report.binds == "step" and report.stages["step"] >= 20


def test_an_iterable_data_set_is_examined_too(torch):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            for index in range(64):
                time.sleep(0.02)
                yield np.zeros((4, 4), np.float32), index

    report = packds.doctor(torch.utils.data.DataLoader(Stream(), batch_size=8), lambda batch: None, seconds=1)
    assert report.binds == "read"
    assert any("iterable" in note for note in report.notes)
    # The cause of waiting is unknown.
    assert not {"memory", "disk"} & {advice["change"] for advice in report.advice}


@pytest.mark.parametrize("tier", ["host", "gpu-window", "resident"])
def test_a_loader_onto_a_gpu_copies_beside_the_step(torch, numbered, tier):
    options = {"normalize": "imagenet", "order": "window", "output": "torch", "device": "simulated", "tier": tier}
    with packds.Loader(numbered, batch_size=50, **options) as loader:
        report = packds.doctor(loader, lambda batch: time.sleep(0.02), seconds=1)
    assert report.binds == "step"
    assert "step | copy | transform + decode | read" in repr(report)
    assert report.stages["copy"] > 0
    # With images on the GPU, nothing is decoded. With the whole dataset there, nothing is read; with chunks, only
    # reading remains.
    there = {"host": set(), "gpu-window": {"transform", "decode"}, "resident": {"decode", "read"}}[tier]
    assert there <= {stage for stage, ms in report.stages.items() if ms == 0}
    assert report.stages["transform" if tier == "resident" else "read"] > 0
    # Images are copied to the GPU as bytes, whatever type they become there.
    assert "dtype" not in {advice["change"] for advice in report.advice}


def test_files_that_a_gpu_decodes_are_only_read_here(torch, file_pack):
    options = {"augment": "rrc16,flip", "output": "torch", "device": "simulated", "jpeg": "gpu"}
    with packds.Loader(file_pack, batch_size=4, **options) as loader:
        report = packds.doctor(loader, lambda batch: time.sleep(0.05), seconds=1)
    assert report.stages["decode"] == report.stages["transform"] == 0 < report.stages["read"]
    assert "image size" not in {advice["change"] for advice in report.advice}


def test_samples_without_batches_count_as_one(torch):
    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, index):
            return torch.zeros(3, 32, 32)

    report = packds.doctor(torch.utils.data.DataLoader(Pictures(), batch_size=None), lambda batch: None, seconds=0.5)
    assert report.to_dict()["batch"] == 1
    assert any("one image" in note for note in report.notes)


def test_batches_of_a_packds_data_set_count_their_samples(torch, numbered):
    import packds.torch

    dataset = packds.torch.IterableDataset(numbered, batch_size=50)
    report = packds.doctor(torch.utils.data.DataLoader(dataset, batch_size=None), lambda batch: None, seconds=0.5)
    assert report.to_dict()["batch"] == 50
    assert any("own batches" in note for note in report.notes)


def test_options_of_other_loaders_cannot_be_checked(torch):
    steps = []
    with pytest.raises(packds.OptionError, match="check"):
        packds.doctor(torch.utils.data.DataLoader(Slow()), steps.append, check=True)
    assert steps == [], "the error must come before anything is measured"


def test_a_check_without_advice_to_follow_says_so(numbered):
    with packds.Loader(numbered, batch_size=100) as loader:
        report = packds.doctor(loader, lambda batch: time.sleep(0.03), seconds=1.5, check=True)
    assert report.checked is None
    assert "no recommended change is a loader option" in repr(report)


class Drawn:
    """A dataset with samples that change each time for no visible reason."""

    def __init__(self, transform=None) -> None:
        self.rng = np.random.default_rng(1)
        if transform is not None:
            self.transform = transform

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index):
        import torch

        compute(0.001)
        image = torch.full((3, 8, 8), index % 5, dtype=torch.uint8)
        return self.transform(image) if hasattr(self, "transform") else image + int(self.rng.integers(0, 100))


def conversion_of(torch, dataset) -> str:
    """The text of the advice to convert."""
    loader = torch.utils.data.DataLoader(dataset, batch_size=8)
    report = packds.doctor(loader, lambda batch: None, seconds=1.5)
    return next(advice["text"] for advice in report.advice if advice["change"] == "convert")


def test_random_transforms_that_a_pack_does_not_have_are_named(torch, torchvision):
    from torchvision import transforms

    steps = [transforms.RandomResizedCrop(8), transforms.Compose([transforms.ColorJitter(0.4), transforms.RandomHorizontalFlip()])]
    pipeline = transforms.Compose([*steps, transforms.Lambda(lambda image: compute(0.001) or image)])
    assert "it does not include RandomResizedCrop, ColorJitter, RandomHorizontalFlip, which augment=" in conversion_of(torch, Drawn(pipeline))
    part = torch.utils.data.Subset(Drawn(pipeline), range(16))
    assert "it does not include RandomResizedCrop" in conversion_of(torch, part)


def test_samples_that_differ_each_time_are_named(torch):
    assert "it does not include what makes samples differ each time" in conversion_of(torch, Drawn())


def test_a_conversion_that_leaves_nothing_out_says_nothing(torch):
    assert "without" not in conversion_of(torch, Drawn(lambda image: image * 2))


TRAINING = """
import sys, time, packds
loader = packds.Loader(sys.argv[1], batch_size=50, order="window", window=3, augment="center6", threads=1)
for _ in range(1000):
    for images, labels in loader:
        time.sleep(0.01)
"""


def test_the_command_learns_the_step_of_a_training(numbered):
    command = [sys.executable, "-m", "packds", "doctor", str(numbered), "--seconds", "1", "--json", "--"]
    done = subprocess.run([*command, sys.executable, "-c", TRAINING, str(numbered)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["binds"] == "step" and told["batch"] == 50
    assert 10 <= told["training"]["step_ms"] < 100
    # The command learned these options from the training's loader.
    learned = told["training"]["options"]
    assert (learned["order"], learned["window"], learned["augment"]) == ("window", 3, "center6")
    assert told["threads"] == learned["threads"] == 1 and told["is_rough"] in (True, False)
