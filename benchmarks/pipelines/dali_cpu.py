"""NVIDIA DALI on the processor: the parts of its ResNet example, without antialiasing."""

from __future__ import annotations

from nvidia.dali import fn, pipeline_def, types

from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import RATIO, SCALE, Batches, Task

_BUFFER = 1000


def batches(task: Task) -> Batches:
    """Reads the folder."""

    def graph() -> tuple[object, object]:
        files, labels = fn.readers.file(
            file_root=task.source, random_shuffle=True, initial_fill=_BUFFER, name="files"
        )
        images = fn.decoders.image_random_crop(
            files,
            device="cpu",
            output_type=types.RGB,
            random_area=list(SCALE),
            random_aspect_ratio=list(RATIO),
        )
        images = fn.resize(
            images,
            size=[task.side, task.side],
            interp_type=types.INTERP_LINEAR,
            antialias=False,
        )
        return fn.flip(images, horizontal=fn.random.coin_flip()), labels

    pipe = pipeline_def(graph)(batch_size=task.batch, num_threads=task.workers, device_id=None)
    pipe.build()
    while True:
        images, labels = pipe.run()
        yield images.as_array(), labels.as_array()


if __name__ == "__main__":
    serve(batches, libraries=("nvidia-dali-cuda130",))
