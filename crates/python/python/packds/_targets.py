"""Batches as torchvision's detection models and its transforms take them: images, and a dict of targets for each image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._checks import text, truth
from ._dataset import Dataset, Field
from ._errors import OptionError
from ._types import Ragged

#: The keys of torchvision's dicts for the roles of fields. Other fields keep their names.
_KEYS = {"boxes": "boxes", "box_labels": "labels", "keypoints": "keypoints", "polygons": "masks"}
#: The keys of torchvision's dicts for the fields that `packds convert` names differently.
_NAMES = {"box_area": "area", "box_crowd": "iscrowd"}
#: The forms of `ragged` that give images and targets.
_FORMS = ("targets", "tv_tensors")


def makes_masks(dataset: Dataset, fields: Sequence[str] | None, form: Ragged, asked: bool | None) -> bool:
    """Whether polygons become masks: as requested, or else if targets have polygons."""
    if asked is not None:
        return truth("instance_masks", asked)
    loaded = dataset.fields.values() if fields is None else [dataset.fields[name] for name in fields if name in dataset.fields]
    return text("ragged", form) in _FORMS and any(field.role == "polygons" for field in loaded)


def targets_conversion(
    form: Ragged, output: str, channels_first: bool, fields: Sequence[Field], made: tuple[bool, bool]
) -> Callable[[dict[str, Any], Any], Any] | None:
    """The function that turns the values of a batch and the positions of its samples into images and targets. None for other
    forms. `channels_first` says whether images are `[C, H, W]` already. `made` says whether there are several views, and whether
    polygons are masks.

    Raises:
        OptionError: The batches have no images or boxes, or not in the form that torchvision needs.
    """
    if form not in _FORMS:
        return None
    several_views, has_masks = made
    roles = {field.role: field.name for field in fields}
    if output != "torch":
        raise OptionError(f"ragged {form!r} needs output 'torch', found {output!r}")
    if "image" not in roles or "boxes" not in roles:
        missing = [role for role in ("image", "boxes") if role not in roles]
        raise OptionError(f"ragged {form!r} needs a field of images and a field of boxes: found none with the role {' or '.join(missing)}")
    if several_views:
        raise OptionError(f"ragged {form!r} needs one view, found several", "leave views out of augment")
    # The keys of torchvision come last: no other field may replace them.
    known = {role: key for role, key in _KEYS.items() if has_masks or role != "polygons"}
    others = [field for field in fields if field.role != "image" and field.role not in known]
    keys = {field.name: _NAMES.get(field.name, field.name) for field in others}
    keys |= {roles[role]: key for role, key in known.items() if role in roles}
    masks = ["mask", "polygons"] if has_masks else ["mask"]
    make = _Targets(roles["image"], channels_first, keys, roles, masks)
    return make.tv_tensors if form == "tv_tensors" else make.dicts


class _Targets:
    def __init__(
        self, image: str, channels_first: bool, keys: Mapping[str, str], roles: Mapping[str | None, str], masks: Sequence[str]
    ) -> None:
        self._image = image
        self._channels_first = channels_first
        self._keys = keys
        self._labels = roles.get("box_labels")
        self._masks = [keys[roles[role]] for role in masks if role in roles]

    def dicts(self, values: dict[str, Any], ids: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Images as floats from 0 to 1, and a dict for each image."""
        images = [image if image.is_floating_point() else image / 255 for image in self._images(values)]
        return images, self._targets(values, ids)

    def tv_tensors(self, values: dict[str, Any], ids: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Like `dicts`, but with the classes of `torchvision.tv_tensors`. Images keep their type."""
        from torchvision import tv_tensors

        images = [tv_tensors.Image(image) for image in self._images(values)]
        targets = self._targets(values, ids)
        for image, target in zip(images, targets):
            size = tuple(image.shape[-2:])
            target["boxes"] = tv_tensors.BoundingBoxes(target["boxes"], format="XYXY", canvas_size=size)
            for key in self._masks:
                target[key] = tv_tensors.Mask(target[key])
            if "keypoints" in target:
                if not hasattr(tv_tensors, "KeyPoints"):
                    raise OptionError("ragged 'tv_tensors' needs torchvision 0.23 for keypoints", "pass ragged='targets'")
                points = target["keypoints"]
                target["keypoints"] = tv_tensors.KeyPoints(points[..., :2], canvas_size=size)
                target["visibility"] = points[..., 2]
        return images, targets

    def _images(self, values: dict[str, Any]) -> list[Any]:
        return [self._channels_come_first(image) for image in values[self._image]]

    def _channels_come_first(self, image: Any) -> Any:
        if image.ndim == 2:
            return image[None]
        return image if self._channels_first else image.permute(2, 0, 1)

    def _targets(self, values: dict[str, Any], ids: Any) -> list[dict[str, Any]]:
        import torch

        targets = [{"image_id": torch.tensor(int(id))} for id in ids]
        for name, key in self._keys.items():
            for target, value in zip(targets, values[name]):
                # torchvision's models take class 0 as the background.
                target[key] = value + 1 if name == self._labels else value
        return targets
