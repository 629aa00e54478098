"""OpenCV, kept from starting threads of its own. Loaded only when something asks for it.

OpenCV would resample each picture in a pool of threads, which workers that are threads would wait
for in turn, and which a fork doesn't survive. `cv2.setNumThreads` is of the whole process: who
wants OpenCV's threads elsewhere may set their number again after making the transform.
"""

import cv2

cv2.setNumThreads(0)

__all__ = ["cv2"]
