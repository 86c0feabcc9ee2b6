"""Nodes for ComfyUI: align depth maps and masks with the edges of a photograph.

Copy this folder into ComfyUI's ``custom_nodes`` and install the package into ComfyUI's Python:
``pip install 'bilateral[torch]'``. The nodes appear below "image/bilateral" and "mask/bilateral".

ComfyUI's images are (B, H, W, C) tensors from 0 to 1, its masks (B, H, W).
"""

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import interpolate

import bilateral.torch

Inputs = dict[str, dict[str, tuple[Any, ...]]]

OPTIONS: dict[str, tuple[Any, ...]] = {
    "sigma_xy": ("FLOAT", {"default": 8.0, "min": 1.0, "max": 256.0, "step": 1.0}),
    "sigma_colour": ("FLOAT", {"default": 8.0, "min": 1.0, "max": 256.0, "step": 1.0}),
    "smoothness": ("FLOAT", {"default": 16.0, "min": 0.1, "max": 4096.0, "step": 0.1}),
}


def solve(photo: Tensor, maps: Tensor, sigma_xy: float, sigma_colour: float, weight: float) -> Any:
    """Smooth (B, K, h, w) maps along the edges of ComfyUI's photographs, at their size.

    A single photograph or a single map serves the whole batch.
    """
    reference = photo[..., :3].movedim(-1, 1).clamp(0, 1)
    size = reference.shape[-2:]
    if maps.shape[-2:] != size:
        maps = interpolate(maps, size, mode="bilinear", align_corners=False)
    batch = max(len(reference), len(maps))
    if not {len(reference), len(maps)} <= {1, batch}:
        raise ValueError(f"got {len(reference)} photographs for {len(maps)} maps. Give as many.")
    return bilateral.torch.solve(
        reference.to(maps.device),
        maps.expand(batch, *maps.shape[1:]),
        sigma_xy=sigma_xy,
        sigma_luma=sigma_colour,
        sigma_chroma=sigma_colour,
        smoothness=weight,
    )


class AlignDepth:
    """Align a depth map, an image of three equal channels, with a photograph."""

    RETURN_TYPES: ClassVar = ("IMAGE",)
    FUNCTION: ClassVar = "run"
    CATEGORY: ClassVar = "image/bilateral"

    @classmethod
    def INPUT_TYPES(cls) -> Inputs:  # noqa: N802
        return {"required": {"photo": ("IMAGE",), "depth": ("IMAGE",), **OPTIONS}}

    def run(
        self,
        photo: Tensor,
        depth: Tensor,
        sigma_xy: float,
        sigma_colour: float,
        smoothness: float,
    ) -> tuple[Tensor]:
        gray = depth[..., :3].mean(dim=-1)[:, None]
        smooth = solve(photo, gray, sigma_xy, sigma_colour, smoothness)
        return (smooth.movedim(1, -1).expand(-1, -1, -1, 3).contiguous(),)


class AlignMask:
    """Align a mask with a photograph; `hard` gives 0 and 1 only."""

    RETURN_TYPES: ClassVar = ("MASK",)
    FUNCTION: ClassVar = "run"
    CATEGORY: ClassVar = "mask/bilateral"

    @classmethod
    def INPUT_TYPES(cls) -> Inputs:  # noqa: N802
        hard = ("BOOLEAN", {"default": False})
        return {"required": {"photo": ("IMAGE",), "mask": ("MASK",), **OPTIONS, "hard": hard}}

    def run(
        self,
        photo: Tensor,
        mask: Tensor,
        sigma_xy: float,
        sigma_colour: float,
        smoothness: float,
        hard: bool,
    ) -> tuple[Tensor]:
        smooth = solve(photo, mask[:, None], sigma_xy, sigma_colour, smoothness)[:, 0]
        return ((smooth > 0.5).to(torch.float32) if hard else smooth,)


NODE_CLASS_MAPPINGS = {"BilateralAlignDepth": AlignDepth, "BilateralAlignMask": AlignMask}
NODE_DISPLAY_NAME_MAPPINGS = {
    "BilateralAlignDepth": "Align depth with photo (bilateral solver)",
    "BilateralAlignMask": "Align mask with photo (bilateral solver)",
}
