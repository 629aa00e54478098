"""Write side: packs images into datasets that `readers` opens."""

from packer.compare import Comparison, compare
from packer.convert import convert
from packer.fault import Fault
from packer.image_policy import Decode, Keep, Reencode, Region, Resize
from packer.options import ConvertOptions
from packer.progress import Progress
from packer.sources.opening import open_source
from packer.verify import Report, verify
from readers.version import __version__

__all__ = [
    "Comparison",
    "ConvertOptions",
    "Decode",
    "Fault",
    "Keep",
    "Progress",
    "Reencode",
    "Region",
    "Report",
    "Resize",
    "__version__",
    "compare",
    "convert",
    "open_source",
    "verify",
]
