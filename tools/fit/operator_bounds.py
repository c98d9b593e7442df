"""The least time of an operator by a GPU's data sheet, in microseconds."""

# Bytes of a weight, and the peak it is multiplied at. Scales: one of 8 bits for 16 weights in NVFP4,
# for 32 in MXFP4.
WEIGHTS = {
    "bf16": (2, "peak_bf16_tflops"),
    "fp8": (1, "peak_fp8_tflops"),
    "nvfp4": (0.5625, "peak_fp4_tflops"),
    "mxfp4": (0.53125, "peak_bf16_tflops"),
}
HEAD = 128  # width of the heads that were measured


class Bounds:
    def __init__(self, hardware):
        self.hardware = hardware
        self.bandwidth = hardware["memory_bandwidth_gb_s"] * 1e3  # bytes a microsecond

    def _longer(self, kind, flops, weights):
        width, peak = WEIGHTS[kind]
        rate = (self.hardware.get(peak) or self.hardware["peak_bf16_tflops"]) * 1e6
        return max(flops / rate, weights * width / self.bandwidth)

    def gemm(self, kind, m, n, k):
        return self._longer(kind, 2 * m * n * k, n * k)

    def touched(self, shape, tokens):
        _, experts, active = shape
        return experts * (1 - (1 - active / experts) ** tokens)

    def experts(self, kind, shape, tokens, width):
        hidden, _, active = shape
        return self._longer(kind, 6 * tokens * active * hidden * width, 3 * self.touched(shape, tokens) * hidden * width)

    def decode(self, kind, group, streams, context):
        read = 2 * streams * context * HEAD * (1 if kind == "fp8" else 2)
        return max(read / self.bandwidth, self.prefill(group * streams * context))

    def prefill(self, pairs):
        return 4 * HEAD * pairs / (self.hardware["peak_bf16_tflops"] * 1e6)

    def prefill_rows(self, rows):
        """A query is read and an output written for each."""
        return 4 * HEAD * rows / self.bandwidth

    def all_reduce(self, gpus, elements):
        return 2 * (gpus - 1) / gpus * 2 * elements / (self.hardware["interconnect_gb_s"] * 1e3)
