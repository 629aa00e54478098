"""Rewrites a JPEG without loss so that regions of it can be decoded by themselves.

The quantised coefficients stay what they are. They are coded anew as one baseline scan (T.81, F.1)
with Huffman tables of the shortest code, and restart markers every few MCUs, at which a decoder can
begin. Baseline and progressive JPEGs of 8 bits with one component or three come out the same way;
everything else is refused, and so is whatever libjpeg would warn of or mend, since two decoders may
mend it in two ways.

Application data and comments stay, in order. What follows the end of the image is dropped, and with
it an index of further pictures there (MPF, CIPA DC-007). The kernels need numba; nothing
else of the package does.
"""
