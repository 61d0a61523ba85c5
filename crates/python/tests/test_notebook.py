"""Notebooks: the quick start runs from top to bottom, and objects show themselves."""

import pytest

import packds
from conftest import REPOSITORY, module_or_skip


@pytest.mark.filterwarnings("ignore")
def test_the_quick_start_notebook_runs():
    nbclient = module_or_skip("nbclient", "scripts/setup installs it")
    module_or_skip("ipykernel", "scripts/setup installs it")
    import nbformat

    path = REPOSITORY / "examples" / "quickstart.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    # The kernel is this Python interpreter, which has the wheel.
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    printed = "".join(
        output.get("text", "") + str(output.get("data", ""))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert "<img src='data:image/png" in printed
    assert any(f"a {path.name}'" in printed for path in (path.parent / "photos").iterdir())
    assert "loss" in printed or "SKIPPED: no PyTorch" in printed


def test_a_loader_is_shown_as_a_table(numbered):
    loader = packds.Loader(numbered, batch_size=4, seed=7)
    shown = loader._repr_html_()
    assert shown.startswith("<table>")
    dtype, shape = loader.fields["label"]
    for name, value in {"epoch": f"{len(loader)} batches of 4", "seed": "7", "label": f"{dtype} {list(shape)}"}.items():
        assert f">{name}</th>" in shown and f">{value}</td>" in shown, name
    assert ">reads</th>" in shown
    assert "<img src='data:image/png" in shown and "values of image, 0 to 255" in shown
