"""Conversion on many machines: a plan, its shards, and the set. The examples for schedulers run here without a scheduler."""

import os
import shutil
import subprocess
import sysconfig

import pytest

import packds
from conftest import REPOSITORY, module_or_skip

#: Options with which the photographs become four shards.
OPTIONS = {"shards": 4, "chunk": 4, "resize": (32, 32), "progress": False}


def contents(folder) -> dict[str, bytes]:
    """The bytes of every file."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def source(photos, tmp_path):
    """A copy of the photographs, which the test may change."""
    return shutil.copytree(photos, tmp_path / "photos")


@pytest.fixture(scope="session")
def converted(photos, tmp_path_factory) -> dict[str, bytes]:
    """The set that one call of `convert` writes."""
    folder = tmp_path_factory.mktemp("sets") / "c.packs"
    packds.convert(photos, folder, **OPTIONS)
    return contents(folder)


@pytest.fixture
def planned(photos, tmp_path):
    """A plan of the photographs."""
    report = packds.plan(photos, tmp_path / "p.plan", **OPTIONS)
    assert (report["n_samples"], report["n_shards"], report["shard_samples"]) == (28, 4, 8)
    return tmp_path / "p.plan"


def test_the_shards_are_those_that_convert_writes(planned, converted, tmp_path):
    folder = tmp_path / "p.packs"
    for shard in (3, 1, 0, 2):
        report = packds.build(planned, folder, shard=shard, jobs=2, progress=False)
        assert (report["shard"], report["is_kept"], report["n_samples"]) == (shard, False, 4 if shard == 3 else 8)
        with pytest.raises(packds.Error):
            packds.open(folder)
    report = packds.commit(planned, folder, progress=False)
    assert (report["n_samples"], report["n_shards"], report["is_kept"]) == (28, 4, False)
    assert contents(folder) == converted
    assert packds.build(planned, folder, shard=1, progress=False)["is_kept"]
    assert packds.commit(planned, folder, progress=False)["is_kept"]
    assert contents(folder) == converted


def test_missing_shards_are_listed(planned, tmp_path):
    packds.build(planned, tmp_path / "p.packs", shard=2, progress=False)
    with pytest.raises(packds.ConvertError, match="3 of 4 shards missing: 0-1,3"):
        packds.commit(planned, tmp_path / "p.packs", progress=False)


def test_wrong_arguments_are_refused(photos, planned, tmp_path):
    with pytest.raises(TypeError, match="packds.plan has no option 'num_workers': pass jobs="):
        packds.plan(photos, tmp_path / "q.plan", shards=2, num_workers=3)
    with pytest.raises(TypeError, match="packds.plan has no option 'cropp': did you mean crop?"):
        packds.plan(photos, tmp_path / "q.plan", shards=2, cropp=8)
    with pytest.raises(packds.OptionError, match="mode"):
        packds.plan(photos, tmp_path / "q.plan", shards=2, mode="files", progress=False)
    with pytest.raises(TypeError, match="shards"):
        packds.plan(photos, tmp_path / "q.plan")
    with pytest.raises(packds.ConvertError, match="p.plan: this file already exists"):
        packds.plan(photos, planned, **OPTIONS)
    with pytest.raises(packds.Error, match="the plan has 4 shards, so there is no shard 4"):
        packds.build(planned, tmp_path / "p.packs", shard=4, progress=False)
    with pytest.raises(packds.Error, match="expected the name of a set"):
        packds.build(planned, tmp_path / "p.pack", shard=0, progress=False)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["p.plan"]


def test_bad_samples_stop_a_shard_or_are_listed_by_the_commit(source, tmp_path):
    (source / "cat" / "bad.jpg").write_bytes(b"no image")
    packds.plan(source, tmp_path / "stop.plan", **OPTIONS)
    failed = []
    for shard in range(4):
        try:
            packds.build(tmp_path / "stop.plan", tmp_path / "stop.packs", shard=shard, progress=False)
        except packds.ConvertError as error:
            failed.append(str(error))
    assert len(failed) == 1 and "cat/bad.jpg" in failed[0]
    packds.plan(source, tmp_path / "skip.plan", **OPTIONS, on_error="skip")
    reports = [packds.build(tmp_path / "skip.plan", tmp_path / "s.packs", shard=shard, progress=False) for shard in range(4)]
    assert sum(len(report["skipped"]) for report in reports) == 1
    report = packds.commit(tmp_path / "skip.plan", tmp_path / "s.packs", progress=False)
    assert (report["n_samples"], report["n_skipped"]) == (28, 1)
    assert [bad["path"] for bad in report["skipped"]] == ["cat/bad.jpg"]
    assert packds.open(tmp_path / "s.packs").verify()["ok"]


def test_a_source_that_changed_is_refused(source, tmp_path):
    packds.plan(source, tmp_path / "p.plan", **OPTIONS | {"shards": 1})
    (source / "cat" / "face.jpg").write_bytes(b"changed")
    with pytest.raises(packds.ConvertError, match="face.jpg"):
        packds.build(tmp_path / "p.plan", tmp_path / "p.packs", shard=0, progress=False)
    assert not (tmp_path / "p.packs").exists()


def shell(command, folder, **variables) -> str:
    """Runs a command as a scheduler would, in the folder of the user, with its variables. `packds` is this package's command."""
    environment = os.environ | {"PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_for_slurm_writes_the_set(planned, converted, tmp_path):
    examples = REPOSITORY / "examples"
    for task in range(4):
        shell(["bash", examples / "slurm_build.sh", "p.plan", "p.packs"], tmp_path, SLURM_ARRAY_TASK_ID=str(task))
    # The second job of the guide, after the array.
    assert "28 samples" in shell(["bash", examples / "slurm_commit.sh", "p.plan", "p.packs"], tmp_path)
    assert contents(tmp_path / "p.packs") == converted


def test_the_example_for_kubernetes_writes_the_set(planned, converted, tmp_path):
    yaml = module_or_skip("yaml", "scripts/setup installs it")
    job = yaml.safe_load((REPOSITORY / "examples" / "kubernetes_build.yaml").read_text())
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    # Kubernetes accepts a limit for each index only with this policy.
    assert spec["backoffLimitPerIndex"] > 0 and pod["restartPolicy"] == "Never"
    (container,), (volume,) = pod["containers"], pod["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"]
    (mount,) = container["volumeMounts"]
    assert mount["name"] == volume["name"]
    planned.rename(tmp_path / "train.plan")
    command = [word.replace(mount["mountPath"], str(tmp_path)) for word in container["command"] + container["args"]]
    for index in range(4):
        shell(command, tmp_path, JOB_COMPLETION_INDEX=str(index))
    packds.commit(tmp_path / "train.plan", tmp_path / "train.packs", progress=False)
    assert contents(tmp_path / "train.packs") == converted


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_dask_builds_the_shards(planned, converted, tmp_path):
    distributed = module_or_skip("distributed", "scripts/setup installs it")
    folder = tmp_path / "p.packs"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            # As in docs/how-to/distributed.md.
            built = client.map(lambda shard: packds.build(planned, folder, shard=shard, jobs=1, progress=False), range(4))
            reports = client.gather(built)
    assert [report["n_samples"] for report in reports] == [8, 8, 8, 4]
    packds.commit(planned, folder, progress=False)
    assert contents(folder) == converted
