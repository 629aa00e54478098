"""Transforms that decode only what they need: crops, resizing, flips, and what follows them."""

from readers.transforms.compose import Compose
from readers.transforms.crops import CenterCrop, RandomResizedCrop
from readers.transforms.flip import RandomHorizontalFlip
from readers.transforms.generator import sample_generator
from readers.transforms.pixel_values import ChannelsFirst, Normalize
from readers.transforms.resize import Resize

__all__ = [
    "CenterCrop",
    "ChannelsFirst",
    "Compose",
    "Normalize",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "Resize",
    "sample_generator",
]
