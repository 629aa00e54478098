"""Decoded pixels, kept at first access."""

from readers.pixel_cache.cache import PixelCache

__all__ = ["PixelCache"]
