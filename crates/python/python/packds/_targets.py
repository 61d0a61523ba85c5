"""Batches as torchvision's detection models and its transforms take them: images, and a dict of targets for each image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._dataset import Field
from ._errors import OptionError
from ._types import Ragged

#: The keys of torchvision's dicts for the roles of fields. Other fields keep their names.
_KEYS = {"boxes": "boxes", "box_labels": "labels"}
#: The keys of torchvision's dicts for the fields that `packds convert` names differently.
_NAMES = {"box_area": "area", "box_crowd": "iscrowd"}


def targets_conversion(
    form: Ragged, output: str, channels_first: bool, fields: Sequence[Field], several_views: bool
) -> Callable[[dict[str, Any], Any], Any] | None:
    """The function that turns the values of a batch and the positions of its samples into images and targets. None for other
    forms. `channels_first` says whether images are `[C, H, W]` already.

    Raises:
        OptionError: The batches have no images or boxes, or not in the form that torchvision needs.
    """
    if form not in ("targets", "tv_tensors"):
        return None
    roles = {field.role: field.name for field in fields}
    if output != "torch":
        raise OptionError(f"ragged {form!r} needs output 'torch', found {output!r}")
    if "image" not in roles or "boxes" not in roles:
        missing = [role for role in ("image", "boxes") if role not in roles]
        raise OptionError(f"ragged {form!r} needs a field of images and a field of boxes: found none with the role {' or '.join(missing)}")
    if several_views:
        raise OptionError(f"ragged {form!r} needs one view, found several", "leave views out of augment")
    # The keys of torchvision come last: no other field may replace them.
    others = [field for field in fields if field.role != "image" and field.role not in _KEYS]
    keys = {field.name: _NAMES.get(field.name, field.name) for field in others}
    keys |= {roles[role]: key for role, key in _KEYS.items() if role in roles}
    make = _Targets(roles["image"], channels_first, keys, roles)
    return make.tv_tensors if form == "tv_tensors" else make.dicts


class _Targets:
    def __init__(self, image: str, channels_first: bool, keys: Mapping[str, str], roles: Mapping[str | None, str]) -> None:
        self._image = image
        self._channels_first = channels_first
        self._keys = keys
        self._labels, self._mask = roles.get("box_labels"), roles.get("mask")

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
            if self._mask is not None:
                target[self._keys[self._mask]] = tv_tensors.Mask(target[self._keys[self._mask]])
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
