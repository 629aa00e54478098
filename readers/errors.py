"""Every deliberate error of both packages, sorted by what the person would do about it.

::

    PackError
    ├── DatasetNotFoundError    (also FileNotFoundError)  point at the right directory
    ├── DatasetExistsError      (also FileExistsError)    choose another place, or overwrite
    ├── DatasetBusyError        (also BlockingIOError)    wait for the run that holds it
    ├── UnknownFormatError      (also ValueError)         choose one of those listed
    ├── MissingDependencyError  (also ImportError)        install the named extra
    ├── OptionError             (also ValueError)         change the options
    ├── SourceError             (also ValueError)         mend the source as a whole
    ├── StorageFullError        (also OSError)            make room, then run again
    ├── StorageError            (also OSError)            see to the disk or the mount, run again
    ├── WorkerDiedError         (also RuntimeError)       see why: memory, a crash in a transform
    ├── SampleError             (also ValueError)         mend, skip or keep that one input
    │   ├── NotAnImageError                               nothing: the file never claimed to be one
    │   └── NotRecodableError                             nothing: the JPEG is kept as it is
    └── FormatError             (also ValueError)         the bytes on disk break the format
        ├── UnsupportedVersionError                       upgrade this library
        └── CorruptDatasetError                           pack again, or restore the shard
"""

from __future__ import annotations


class PackError(Exception):
    """Root of the tree.

    Attributes:
        message: What was found, what was expected, where, and what to do.
        path: File or directory, where one is concerned.
        shard: Name of the shard file.
        offset: Byte offset within the file.
        key: Key of the sample.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        shard: str | None = None,
        offset: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.shard = shard
        self.offset = offset
        self.key = key

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        facts = {"path": self.path, "shard": self.shard, "offset": self.offset, "key": self.key}
        return _rebuild, (type(self), self.message, facts)


def _rebuild(kind: type[PackError], message: str, facts: dict[str, object]) -> PackError:
    error = kind(message)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


class DatasetNotFoundError(PackError, FileNotFoundError):
    """There is no dataset at the path."""


class DatasetExistsError(PackError, FileExistsError):
    """Something stands at the destination already."""


class DatasetBusyError(PackError, BlockingIOError):
    """Another run holds the destination."""


class UnknownFormatError(PackError, ValueError):
    """No format has that name."""


class MissingDependencyError(PackError, ImportError):
    """A format's own library isn't installed."""


class OptionError(PackError, ValueError):
    """The options contradict each other, the source or the format."""


class SourceError(PackError, ValueError):
    """The source as a whole can't be read as what it claims to be."""


class StorageFullError(PackError, OSError):
    """The destination's storage can't hold what is to be written."""


class StorageError(PackError, OSError):
    """The storage refused an operation."""


class WorkerDiedError(PackError, RuntimeError):
    """A worker process of a loader ended without being asked to."""


class SampleError(PackError, ValueError):
    """One sample of the source can't be used."""


class NotAnImageError(SampleError):
    """A file that isn't an image and doesn't claim to be one by its suffix."""


class NotRecodableError(SampleError):
    """A JPEG that can't be rewritten with restart markers without risking its pixels."""


class FormatError(PackError, ValueError):
    """The bytes on disk break the format."""


class UnsupportedVersionError(FormatError):
    """The dataset was written by a newer version than this one understands."""


class CorruptDatasetError(FormatError):
    """The dataset is damaged."""
