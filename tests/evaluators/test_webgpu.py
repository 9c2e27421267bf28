"""WebGPU without a GPU, on SwiftShader: a device that is none of the CPU's, though its speed means nothing.

The library must be found when a process begins, so the cases (webgpu_cases.py) run in a pytest of their own.
Debian's package chromium-common has SwiftShader and a loader of Vulkan.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from models import probe_model
from running import ended, program

CHROMIUM = Path(os.environ.get("AZPY_CHROMIUM", "/usr/lib/chromium"))
CASES = Path(__file__).parents[1] / "support/webgpu_cases.py"
ENVIRONMENT: dict[str, Any] = {
    "VK_DRIVER_FILES": str(CHROMIUM / "vk_swiftshader_icd.json"),
    "LD_LIBRARY_PATH": str(CHROMIUM),
    "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
}

pytestmark = pytest.mark.skipif(
    not (CHROMIUM / "libvk_swiftshader.so").exists(), reason="SwiftShader is not here: apt-get install chromium-common"
)


def test_webgpu_matches_the_cpu(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(probe_model((2, 6, 7), 7, layers=1, channels=8))
    text = """
        import sys
        import numpy as np
        from azpy.evaluators.onnx import OnnxEvaluator
        cpu, webgpu = OnnxEvaluator(sys.argv[1]), OnnxEvaluator(sys.argv[1], "webgpu", buckets=(4, 16))
        for count in (1, 3, 4, 5, 16, 17, 40):
            rows = np.random.default_rng(count).integers(0, 2, (count, 2, 6, 7)).astype(np.float32)
            for ours, theirs in zip(cpu.evaluate_batch(rows), webgpu.evaluate_batch(rows), strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-4, strict=True)
        print(webgpu.device, webgpu.notes, webgpu.description)
    """
    done = program(text, path, **ENVIRONMENT)
    assert (done.code, done.out) == (0, "webgpu () WebGPU, fp32, batches of 4, 16 rows\n"), done.errors


@pytest.mark.slow
def test_all_of_azpy_on_webgpu() -> None:
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "faulthandler_timeout=1200"]
    done = ended([sys.executable, "-m", "pytest", *options, CASES], env=os.environ | ENVIRONMENT, patience=1500)
    assert done.code == 0, done.out + done.errors
