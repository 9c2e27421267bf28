"""WebGPU without a GPU, on SwiftShader: a device that is none of the CPU's, though its speed means nothing.

The library must be found when a process begins, so the cases (webgpu_cases.py) run in a pytest of their own.
Debian's package chromium-common has SwiftShader and a loader of Vulkan.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHROMIUM = Path(os.environ.get("AZPY_CHROMIUM", "/usr/lib/chromium"))
CASES = Path(__file__).parents[1] / "support/webgpu_cases.py"

pytestmark = pytest.mark.skipif(
    not (CHROMIUM / "libvk_swiftshader.so").exists(), reason="SwiftShader is not here: apt-get install chromium-common"
)


def run(*chosen: str) -> None:
    """Runs cases, and shows what they say if one fails."""
    environment = os.environ | {
        "VK_DRIVER_FILES": str(CHROMIUM / "vk_swiftshader_icd.json"),
        "LD_LIBRARY_PATH": str(CHROMIUM),
        "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
    }
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "faulthandler_timeout=1200"]
    command = [sys.executable, "-m", "pytest", *options, str(CASES), *chosen]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_webgpu_matches_the_cpu() -> None:
    run("-k", "says_what_the_cpu_says or says_where_it_runs")


@pytest.mark.slow
def test_all_of_azpy_on_webgpu() -> None:
    run()
