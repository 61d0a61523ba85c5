"""Batches on a GPU: on a simulated driver everywhere, and on a real GPU if there is one."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import packds

pytestmark = pytest.mark.usefixtures("torch")

FORMS = [
    {},
    {"normalize": "imagenet", "layout": "chw"},
    {"normalize": "imagenet", "dtype": "bf16", "layout": "channels_last"},
    {"dtype": "f16", "augment": "crop6+1,flip"},
    {"augment": "views:2,rrc8,jitter:0.4/0.4/0.4/0.1", "normalize": "imagenet"},
    {"augment": "erase", "normalize": "imagenet"},
    {"augment": "mixup:0.2", "normalize": "imagenet"},
    {"augment": "rrc8,cutmix:1,cutout:3", "normalize": "imagenet", "dtype": "f16", "layout": "chw"},
    {"augment": "rrc8,mixup:0.2,erase", "normalize": "imagenet", "dtype": "bf16", "layout": "channels_last"},
    {"layout": "chw"},
]


COLORS = "rrc12,flip,jitter:0.4/0.4/0.4/0.1,gray:0.2,solarize:128,mixup:0.2"


def assert_like_the_hosts(torch, pack, device: str, of_device=None, **options) -> None:
    options = {"batch_size": 48, "seed": 3, "output": "torch", "drop_last": False} | options
    host = packds.Loader(pack, **options)
    there = packds.Loader(pack, device=device, **(of_device or {}), **options)
    assert there.fields == host.fields
    for found, wanted in zip(there.batches(), host.batches(), strict=True):
        assert found.ids.tolist() == wanted.ids.tolist() and found.keys() == wanted.keys()
        for name in wanted.keys():
            pairs = zip(found[name], wanted[name]) if isinstance(wanted[name], tuple) else [(found[name], wanted[name])]
            for a, b in pairs:
                assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
                assert torch.equal(a.cpu(), b)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_simulated_gpu_gives_the_hosts_batches(numbered, torch, form):
    assert_like_the_hosts(torch, numbered, "simulated", **form)


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_gpu_gives_the_hosts_batches(numbered, torch, gpu, form):
    assert_like_the_hosts(torch, numbered, gpu, **form)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"augment": "crop6+1,flip", "normalize": "imagenet", "layout": "chw"},
        {"augment": "views:2,flip", "dtype": "bf16"},
        {"augment": "rrc12,flip,erase,mixup:0.2", "normalize": "imagenet"},
        {"augment": "rrc12,jitter:0.4/0.4/0.4/0.1,gray:0.2,solarize:128,cutmix:1", "normalize": "imagenet", "layout": "chw"},
        {"augment": "views:2,crop6+1,jitter:0.8/0.8/0.8/0.2/0.8", "dtype": "f16"},
    ],
    ids=str,
)
@pytest.mark.parametrize("tier", ["resident", "host"])
def test_every_tier_gives_the_hosts_batches(numbered, torch, form, tier):
    assert_like_the_hosts(torch, numbered, "simulated", {"tier": tier}, **form)


@pytest.mark.gpu
@pytest.mark.parametrize("tier", ["resident", "host"])
@pytest.mark.parametrize("augment", ["crop6+1,flip", "rrc12,flip,erase,mixup:0.2", "resize20,center16", COLORS])
def test_every_tier_of_a_gpu_gives_the_hosts_batches(numbered, torch, gpu, tier, augment):
    form = {"augment": augment, "normalize": "imagenet", "layout": "chw"}
    assert_like_the_hosts(torch, numbered, gpu, {"tier": tier}, **form)


def test_a_window_of_chunks_gives_the_hosts_batches(numbered, torch):
    form = {"augment": COLORS, "normalize": "imagenet", "order": "window", "window": 4}
    assert_like_the_hosts(torch, numbered, "simulated", {"tier": "gpu-window"}, **form)


@pytest.mark.gpu
def test_a_window_of_chunks_on_a_gpu_gives_the_hosts_batches(numbered, torch, gpu):
    form = {"augment": COLORS, "normalize": "imagenet", "order": "window", "window": 4}
    assert_like_the_hosts(torch, numbered, gpu, {"tier": "gpu-window"}, **form)


REGISTERED = {"tier": "gpu-window", "register": "file"}


def test_a_registered_file_gives_the_hosts_batches(numbered, torch):
    form = {"augment": "rrc12,flip", "normalize": "imagenet", "order": "chunks", "access": "mapped"}
    assert_like_the_hosts(torch, numbered, "simulated", REGISTERED, **form)


@pytest.mark.gpu
def test_a_registered_file_on_a_gpu_gives_the_hosts_batches(numbered, torch, gpu):
    form = {"augment": "rrc12,flip", "normalize": "imagenet", "order": "chunks", "access": "mapped"}
    assert_like_the_hosts(torch, numbered, gpu, REGISTERED, **form)


BATCHES_OF_FILE = {"tier": "host", "register": "file"}


@pytest.mark.parametrize("form", [{}, {"normalize": "imagenet", "layout": "chw"}, {"augment": "erase,mixup:0.2", "dtype": "f16"}], ids=str)
def test_batches_from_a_registered_file_are_the_hosts(numbered, torch, form):
    form = form | {"order": "sequential", "access": "mapped"}
    assert_like_the_hosts(torch, numbered, "simulated", BATCHES_OF_FILE, **form)
    loader = packds.Loader(numbered, 48, output="torch", device="simulated", **BATCHES_OF_FILE, **form)
    assert loader.stats()["copies"] == loader.notices()[-1] == "batches are copied from the registered file"
    assert not any(batch.is_lent for batch in loader.batches())


@pytest.mark.gpu
@pytest.mark.parametrize("form", [{}, {"normalize": "imagenet", "layout": "chw"}], ids=str)
def test_batches_from_a_registered_file_on_a_gpu_are_the_hosts(numbered, torch, gpu, form):
    form = form | {"order": "sequential", "access": "mapped"}
    assert_like_the_hosts(torch, numbered, gpu, BATCHES_OF_FILE, **form)


FROM_DISK = {"tier": "gpu-window", "register": "gds"}


@pytest.mark.parametrize("order", ["window", "chunks", "sequential"])
def test_chunks_from_the_disk_give_the_hosts_batches(numbered, torch, order):
    form = {"augment": "rrc12,flip", "normalize": "imagenet", "order": order, "checksums": "off"}
    assert_like_the_hosts(torch, numbered, "simulated", FROM_DISK, **form)
    loader = packds.Loader(numbered, 48, output="torch", device="simulated", **FROM_DISK, **form)
    told = loader.stats()["copies"]
    assert loader.notices()[-1] == told == "chunks are read from the disk into the GPU's memory"


@pytest.mark.gpu
def test_chunks_from_the_disk_on_a_gpu_give_the_hosts_batches(numbered, torch, gpu):
    form = {"augment": "rrc12,flip", "normalize": "imagenet", "order": "chunks", "checksums": "off"}
    assert_like_the_hosts(torch, numbered, gpu, FROM_DISK, **form)


def test_what_reads_from_the_disk_are_not_for_is_refused(numbered, torch):
    options = {"output": "torch", "device": "simulated", "augment": "flip", "order": "chunks"}
    for bad, said in [
        ({"tier": "gpu-window"}, "hint: use checksums='off'"),
        ({"tier": "host", "checksums": "off"}, "only tier 'gpu-window'"),
        ({"checksums": "off"}, "only tier 'gpu-window'"),
    ]:
        with pytest.raises(packds.OptionError, match=said):
            packds.Loader(numbered, register="gds", **options, **bad)


def test_whether_the_file_is_registered_is_told(numbered, torch):
    options = {"output": "torch", "device": "simulated", "augment": "flip", "order": "chunks"}
    for access, said in [("mapped", "from the registered file"), ("direct", "because the access is direct, as requested")]:
        loader = packds.Loader(numbered, access=access, **REGISTERED, **options)
        told = loader.stats()["copies"]
        assert said in told and loader.notices()[-1] == told
    loader = packds.Loader(numbered, tier="gpu-window", **options)
    assert loader.stats()["copies"] is None
    for bad, said in [({"register": "file"}, "for tiers 'gpu-window' and 'host'"), ({"register": "all"}, "staging, file or gds, found")]:
        with pytest.raises(packds.OptionError, match=said):
            packds.Loader(numbered, **options, **bad)
    with pytest.raises(packds.OptionError, match="register: .* needs batches on a GPU"):
        packds.Loader(numbered, register="file")


JPEG_FORMS = [
    {"augment": "rrc64,flip", "normalize": "imagenet", "layout": "chw"},
    {"augment": "rrc32,flip,jitter:0.4/0.4/0.4/0.1,erase,mixup:0.2", "normalize": "imagenet", "dtype": "bf16"},
    {"augment": "rrc48,vflip"},
]


@pytest.mark.parametrize("form", JPEG_FORMS, ids=str)
def test_jpeg_files_decoded_there_give_the_hosts_batches(file_pack, torch, form):
    assert_like_the_hosts(torch, file_pack, "simulated", {"jpeg": "gpu"}, batch_size=5, slots=3, **form)
    loader = packds.Loader(file_pack, 5, output="torch", device="simulated", jpeg="gpu", order="window", **form)
    assert loader.tier == "host-window"


@pytest.mark.gpu
def test_jpeg_files_decoded_on_a_gpu_are_nearly_the_hosts(file_pack, torch, gpu):
    options = {"batch_size": 5, "seed": 3, "output": "torch", "drop_last": False, "augment": "rrc64,flip"}
    there = packds.Loader(file_pack, device=gpu, jpeg="gpu", **options)
    for found, wanted in zip(there.batches(), packds.Loader(file_pack, **options).batches(), strict=True):
        assert found.ids.tolist() == wanted.ids.tolist()
        apart = (found["image"].cpu().float() - wanted["image"].float()).abs()
        print(f"mean {apart.mean():.3f}, most {apart.max():.0f} of 255")
        assert apart.mean() < 2
    assert there.stats()["host_decoded"] < there.stats()["samples"]


def test_which_jpeg_files_a_gpu_decodes_is_told(file_pack, torch):
    options = {"output": "torch", "device": "simulated", "augment": "rrc32", "batch_size": 4}
    loader = packds.Loader(file_pack, jpeg="gpu", **options)
    n = sum(len(images) for images, _ in loader)
    assert loader.tier == "host" and loader.stats()["host_decoded"] < n
    assert re.search("the GPU decodes JPEG files of up to [0-9]+ bytes", loader.notices()[-1])
    assert packds.Loader(file_pack, **options).stats()["host_decoded"] == 0


def test_what_a_gpu_decodes_no_files_for_is_refused(file_pack, numbered, torch):
    options = {"output": "torch", "device": "simulated", "jpeg": "gpu", "augment": "rrc8", "batch_size": 4}
    for pack, bad, said in [
        (numbered, {}, "hint: omit jpeg"),
        (file_pack, {"augment": "resize40,center32"}, "hint: omit jpeg"),
        (file_pack, {"augment": "views:2,rrc8"}, "hint: omit jpeg"),
        (file_pack, {"tier": "resident"}, "found tier=\"resident\": omit that option"),
        (file_pack, {"register": "file"}, "found register=\"file\": omit that option"),
        (file_pack, {"jpeg": "nvjpeg"}, "expected host or gpu, found"),
        (file_pack, {"device": "cpu"}, "jpeg: .* needs batches on a GPU.*\nhint: pass device='cuda' and output='torch'"),
        (file_pack, {"jpeg": None}, "jpeg: expected a string"),
    ]:
        with pytest.raises(packds.OptionError, match=said):
            packds.Loader(pack, **(options | bad))


def test_the_tier_is_chosen_and_told(numbered, torch):
    options = {"output": "torch", "device": "simulated"}
    for augment, tier in [(None, "resident"), (COLORS, "resident"), ("jitter:0.4/0.4/0.4/0.1,blur:3/0.1-2", "host")]:
        loader = packds.Loader(numbered, augment=augment, **options)
        assert loader.tier == loader.stats()["tier"] == tier and f"simulated ({tier})" in repr(loader)
    assert packds.Loader(numbered, augment="flip", tier="host", **options).tier == "host"
    assert packds.Loader(numbered, augment="flip", tier="host", order="window", **options).tier == "host"
    for asked in ("host-window", "auto"):
        loader = packds.Loader(numbered, augment="blur:3/0.1-2", order="window", tier=asked, **options)
        assert loader.tier == loader.stats()["tier"] == "host-window"
    with pytest.raises(packds.OptionError, match="needs order 'window'.*\nhint: use order='window'"):
        packds.Loader(numbered, order="chunks", tier="host-window", **options)
    assert packds.Loader(numbered, output="torch").tier is None
    for bad, said in [({"augment": "rotate:10", "tier": "resident"}, "hint: use tier='host'"), ({"tier": "window"}, "tier")]:
        with pytest.raises(packds.OptionError, match=said):
            packds.Loader(numbered, **options, **bad)
    with pytest.raises(packds.OptionError, match="tier: .* needs batches on a GPU"):
        packds.Loader(numbered, tier="resident")


def test_a_tier_that_is_chosen_or_refused_says_why(numbered, tmp_path, torch):
    options = {"output": "torch", "device": "simulated"}

    def chosen(pack=numbered, **more):
        return [notice for notice in packds.Loader(pack, **options, **more).notices() if notice.startswith("tier ")]

    assert chosen()[0].startswith("tier 'resident', because the images take")
    assert chosen(bad_samples="skip") == ["tier 'host', because a resident dataset is read completely, so a bad sample would be an error"]
    assert chosen(tier="resident") == []
    assert "neighbouring pixels" in chosen(augment="blur:3/0.1-2")[0]
    planar = tmp_path / "chw.pack"
    packds.from_dataset({"image": torch.zeros(8, 3, 4, 4, dtype=torch.uint8).numpy()}, planar, layout="chw", progress=False)
    many = ",".join(["jitter:0.4/0.4/0.4/0.1"] * 8 + ["gray"])
    for pack, augment, said in [(numbered, many, "more than 32 colour operations"), (planar, None, "chw"), (numbered, "blur:3/0.1-2", "neighbouring pixels")]:
        with pytest.raises(packds.OptionError, match=f"cannot be kept on the GPU: .*{said}.*\nhint: use tier='host'"):
            packds.Loader(pack, tier="resident", augment=augment, **options)
    with pytest.raises(packds.OptionError, match="no loaded field contains images"):
        packds.Loader(numbered, tier="resident", fields=["label"], **options)


def test_a_resident_set_is_checked_as_asked_for(numbered, tmp_path, torch):
    content = bytearray(numbered.read_bytes())
    image = packds.open(numbered)[5]["image"]
    content[bytes(content).index(image.tobytes())] ^= 1
    damaged = tmp_path / "damaged.pack"
    damaged.write_bytes(content)
    options = {"output": "torch", "device": "simulated", "tier": "resident"}
    with pytest.raises(packds.FormatError, match="sample 5"):
        packds.Loader(damaged, **options)
    unchecked = packds.Loader(damaged, order="sequential", checksums="off", **options)
    images, _ = next(iter(unchecked))
    assert not torch.equal(images[5], torch.from_numpy(image.copy()))


def test_a_library_that_is_no_driver_is_an_error(numbered, tmp_path):
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("there is a driver")
    maths = next(line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "/libm.so" in line)
    program = f"import packds\ntry: packds.Loader({str(numbered)!r}, output='torch', device='cuda:0')\nexcept packds.OptionError as error: print(error)"
    for content, said in [(pathlib.Path(maths).read_bytes(), "lacks cu"), (b"hi", "file too short")]:
        (tmp_path / "libcuda.so.1").write_bytes(content)
        command = [sys.executable, "-c", program]
        ended = subprocess.run(command, env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}, capture_output=True, text=True)
        assert "no CUDA driver: " in ended.stdout and said in ended.stdout and "panicked" not in ended.stderr, ended


@pytest.mark.parametrize("device", ["cuda:", "cuda:00", "cuda:x", "cuda:-1"])
def test_devices_that_pytorch_does_not_write_so_are_refused(numbered, torch, device):
    with pytest.raises(packds.OptionError, match=f"found '{device}'"):
        packds.Loader(numbered, output="torch", device=device)


def test_fields_of_every_type_arrive(tmp_path, torch):
    import numpy as np

    fields = {"image": "image", "label": "label", "u16": ("u16", [3]), "u32": ("u32", [2]), "mask": ("bool", [5]), "text": "text"}
    rng = np.random.default_rng(0)
    with packds.write(tmp_path / "a.pack", fields) as writer:
        for number in range(40):
            writer.add(
                image=rng.integers(0, 256, (8, 8, 3), np.uint8),
                label=number % 7,
                u16=rng.integers(0, 1 << 16, 3, np.uint16),
                u32=rng.integers(0, 1 << 32, 2, np.uint32),
                mask=rng.integers(0, 2, 5).astype(bool),
                text=str(number),
            )
    for found, wanted in zip(
        packds.Loader(tmp_path / "a.pack", 8, output="torch", device="simulated"),
        packds.Loader(tmp_path / "a.pack", 8, output="torch"),
        strict=True,
    ):
        assert found["text"] == wanted["text"]
        for name in ["image", "label", "u16", "u32", "mask"]:
            assert found[name].dtype == wanted[name].dtype and torch.equal(found[name], wanted[name]), name


def test_a_simulated_gpu_goes_on_from_a_state(numbered, torch):
    options = {"batch_size": 50, "output": "torch", "device": "simulated", "normalize": "imagenet"}
    loader = packds.Loader(numbered, **options)
    batches = iter(loader)
    for _ in range(7):
        next(batches)
    state = loader.state_dict()
    wanted = [labels.tolist() for _, labels in batches]
    again = packds.Loader(numbered, **options)
    again.load_state_dict(state)
    assert [labels.tolist() for _, labels in again] == wanted


def test_without_a_gpu_the_error_says_what_is_missing(numbered, torch):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(packds.OptionError, match="no CUDA (driver|device)"):
        packds.Loader(numbered, output="torch", device="cuda:0")
    with pytest.raises(packds.OptionError, match="no CUDA (driver|device)"):
        packds.Loader(numbered, output="torch", device="cuda")


def test_what_a_gpu_cannot_have_is_said(numbered, torch):
    for options, said in [
        ({"device": "cuda:one"}, "found 'cuda:one'"),
        ({"device": "simulated", "lend": True}, "lend"),
        ({"device": "cuda:0", "output": "numpy"}, "needs output 'torch'"),
    ]:
        with pytest.raises(packds.OptionError, match=re.escape(said)):
            packds.Loader(numbered, **({"output": "torch"} | options))


def test_a_forked_process_is_told_to_make_its_own_loader(numbered, torch):
    loader = packds.Loader(numbered, output="torch", device="simulated")
    child = os.fork()
    if child == 0:
        try:
            next(iter(loader))
        except packds.OptionError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.gpu
def test_tensors_are_whole_whatever_streams_do(numbered, torch, gpu):
    device = gpu
    options = {"batch_size": 40, "seed": 1, "output": "torch", "normalize": "imagenet", "layout": "chw", "slots": 2}
    wanted = list(packds.Loader(numbered, **options))
    other = torch.cuda.Stream(device)
    for epoch in range(20):
        kept = []
        for step, batch in enumerate(packds.Loader(numbered, device=device, **options)):
            # Delayed work on the current stream, with memory that is freed and reallocated around
            # it.
            torch.cuda._sleep(1_000_000 if step % 3 == epoch % 3 else 1000)
            del_me = torch.empty(1 << 20, device=device)
            with torch.cuda.stream(other):
                other.wait_stream(torch.cuda.current_stream(device))
                kept.append((batch[0].clone(), batch[1].clone()))
            torch.cuda.current_stream(device).wait_stream(other)
            del del_me
        torch.cuda.synchronize()
        for (images, labels), (host_images, host_labels) in zip(kept, wanted, strict=True):
            assert torch.equal(images.cpu(), host_images) and torch.equal(labels.cpu(), host_labels)
